"""Pre-training of entity taggers on a corpus."""
