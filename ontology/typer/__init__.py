"""The page typer: classes of pages from their words, titles and wiki categories."""
