r"""Runs the experiments of CrossNER: domain-adaptive pre-training, then fine-tuning.

    nerbert crossner --base-model bert-base-cased --dapt bert-music --domain music --output out
    nerbert crossner --base-model bert-base-cased --corpus music-corpus --domain music \
        --masking token span --level domain entity task integrated --output out

    nerbert crossner --base-model bert-base-cased --domain music --systems all --output out

--dapt takes checkpoints of nerbert dapt; --corpus makes such checkpoints in the output folder. All
results are kept there. If the command is stopped, run it again: it does the missing runs.
`python -m finetune.crossner` is the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from finetune.crossner.settings import RECIPES, CrossnerOptions
from finetune.settings import FitSettings
from nerbert.command import Command
from nerbert.options import options_of

COMMAND = Command(__doc__, CrossnerOptions, FitSettings, recipes=RECIPES)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""

    def work(options: CrossnerOptions, settings: FitSettings) -> None:
        from finetune.crossner.grid import fill_grid  # loads numpy and matplotlib

        names = {entry.name for entry in options_of(FitSettings)}
        given = COMMAND.parse(argv, prog).given
        flags = {k: v for k, v in given.items() if k in names and v.where.startswith("--")}
        print(fill_grid(options, settings, flags))

    return COMMAND.main(work, argv, prog)


if __name__ == "__main__":
    sys.exit(main())
