"""Heads on an encoder: linear, CRF, spans; windows, and LoRA."""
