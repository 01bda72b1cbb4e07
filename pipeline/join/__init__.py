"""Several wikis in one corpus."""
