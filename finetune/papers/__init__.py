"""Wing: what only the experiments of the papers need. It registers by `seams.toml`."""
