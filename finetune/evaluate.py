"""`python -m finetune.evaluate`: the same as the command `nerbert evaluate`."""

import sys

from nerbert.commands.table import run_command

if __name__ == "__main__":
    sys.exit(run_command("evaluate"))
