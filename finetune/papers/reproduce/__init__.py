"""The experiments of a paper by one command: plans, steps, claims, and one page."""
