"""Cases of `benchmarks.attack` that need servers or models."""

import sys
from pathlib import Path

# Stand-ins of the hub, of mirrors and of stores, and toy sets, are those of the tests.
sys.path.append(str(Path(__file__).parent.parent.parent / "tests"))
