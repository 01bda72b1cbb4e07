"""Domain corpora: the sentences of the pages in some wiki categories."""
