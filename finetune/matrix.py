r"""Fine-tunes a tagger on each of several sets, and scores each tagger on all of them.

    nerbert matrix --model xlm-roberta-base --data btc re3d wikigold sec_filings
    nerbert matrix --model xlm-roberta-base --data wikiann/en wikiann/es wikiann/ru \
        --train wikiann/en wikiann/en+wikiann/es --output wikiann

All results are kept in --output. If the command is stopped, run it again: it does the missing runs.
`python -m finetune.matrix` is the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from finetune.options import MatrixOptions
from finetune.settings import RECIPES, FitSettings
from nerbert.command import Command

COMMAND = Command(__doc__, MatrixOptions, FitSettings, recipes=RECIPES)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(options: MatrixOptions, settings: FitSettings) -> None:
    from finetune.evaluation.matrix import fill_matrix  # loads numpy and matplotlib

    print(fill_matrix(options, settings))


if __name__ == "__main__":
    sys.exit(main())
