"""Runs of fine-tuning, their scores, and their reports."""
