"""Tagging heads and models."""
