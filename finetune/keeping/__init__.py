"""Trains a tagger to keep: checkpoint, scores, model card, and the hub."""
