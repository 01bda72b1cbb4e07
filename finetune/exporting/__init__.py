"""Writes taggers as ONNX, and labelled texts in the formats of other tools."""
