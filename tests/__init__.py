"""The tests: the same tree as the packages."""
