"""Tags, column files, tokens, words, scores, and overlap between texts."""
