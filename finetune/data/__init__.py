"""Data sets: by name, from files, or from the Hugging Face hub."""
