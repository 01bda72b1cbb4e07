"""Renders wikitext as the text that a reader sees, with its links."""
