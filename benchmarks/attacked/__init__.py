"""Cases of `benchmarks.attack` that need servers or models."""
