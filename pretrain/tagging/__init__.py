"""Pre-training by entity tagging."""
