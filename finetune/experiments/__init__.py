"""Runs of taggers on data sets: `evaluate` and `search`."""
