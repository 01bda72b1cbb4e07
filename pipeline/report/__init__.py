"""The report of a corpus: numbers, plots and dataset card."""
