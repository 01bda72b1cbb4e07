"""Metrics, tables with published numbers, plots, and test sentences in training text."""
