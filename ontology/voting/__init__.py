"""The class of a page, by a vote of all sources."""
