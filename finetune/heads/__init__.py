"""Heads on an encoder: linear, CRF, spans; windows over long texts."""
