"""Runs of taggers on data sets: evaluate, matrix, search, overlap, t-SNE."""
