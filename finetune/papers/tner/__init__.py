"""The T-NER paper: its matrix of sets; overlap of words; t-SNE."""
