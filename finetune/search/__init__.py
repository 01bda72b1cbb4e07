"""nerbert search: settings by grid, at random, or by TPE."""
