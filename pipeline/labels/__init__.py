"""Labels the sentences of documents: mentions, filters, examples, balancing."""
