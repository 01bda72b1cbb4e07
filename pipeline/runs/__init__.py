"""A run of `nerbert corpus`: its stages, what is up to date, and where they run."""
