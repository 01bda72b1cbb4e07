"""Runs of taggers on data sets: evaluate, matrix, overlap, t-SNE."""
