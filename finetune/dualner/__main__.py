r"""Trains zero-shot cross-lingual taggers by dual teaching of tags and spans (DualNER).

    nerbert dualner --base-model xlm-roberta-base --source wikiann/en \
        --targets wikiann/de wikiann/es wikiann/nl wikiann/ru --output dual
    nerbert dualner --recipe dualner-debug --source wikiann/en --targets wikiann/es \
        --method all --seeds 3 --source-share 0.2 1 --output dual

All models are kept in --output. If the command is stopped, run it again: it makes the missing
models, and continues from the last checkpoint. Each model is a tagger for nerbert predict, evaluate
and demo. `python -m finetune.dualner` is the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from finetune.dualner.settings import RECIPES, DualOptions, DualSettings
from nerbert.command import Command

COMMAND = Command(__doc__, DualOptions, DualSettings, recipes=RECIPES)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(options: DualOptions, settings: DualSettings) -> None:
    from finetune.dualner.runs import run_all  # loads torch, which takes seconds

    print(run_all(options, settings))


if __name__ == "__main__":
    sys.exit(main())
