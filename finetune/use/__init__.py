"""The commands that make and use one tagger: train, predict, export, demo."""
