"""Searches the settings of fine-tuning."""
