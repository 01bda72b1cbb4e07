"""`python -m pretrain.launch`: the same as the command `nerbert pretrain`, for torchrun."""

import sys

from nerbert.commands.table import run_command

if __name__ == "__main__":
    sys.exit(run_command("pretrain"))
