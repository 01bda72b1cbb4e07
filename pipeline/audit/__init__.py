"""Audits: people judge sampled mentions of a corpus."""
