r"""Fine-tunes a tagger, and keeps it: an ordinary Hugging Face checkpoint with a model card.

    nerbert train --base-model ner-bert --data crossner/politics --output politics-tagger

Trains on the train split, keeps the weights with the best F1 on the dev split, and scores the test
split. If it is stopped, run the same command again: it continues from its last checkpoint and gets
the same weights. `python -m finetune.train` is the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from finetune.options import TrainOptions
from finetune.settings import RECIPES, FitSettings
from nerbert.command import Command

COMMAND = Command(__doc__, TrainOptions, FitSettings, recipes=RECIPES)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(options: TrainOptions, settings: FitSettings) -> None:
    from finetune.keeping.run import train  # loads torch, which takes seconds

    print(train(options, settings))


if __name__ == "__main__":
    sys.exit(main())
