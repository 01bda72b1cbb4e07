"""From a Wikipedia dump to a labelled corpus, in three stages: extract, resolve, corpus."""
