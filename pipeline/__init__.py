"""Makes a labelled corpus from a Wikipedia dump, in three stages: extract, resolve, corpus."""
