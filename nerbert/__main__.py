"""`python -m nerbert`: the same as the command `nerbert`."""

import sys

from nerbert.commands.table import main

if __name__ == "__main__":
    sys.exit(main())
