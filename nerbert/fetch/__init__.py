"""Downloads what a corpus is made from, and the evaluation sets."""
