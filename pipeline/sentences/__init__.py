"""Sentence boundaries by Punkt models, and their training."""
