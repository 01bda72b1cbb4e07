r"""Continues pre-training an encoder by masked language modelling on a domain corpus.

    nerbert dapt --corpus music-corpus --level integrated --masking span \
        --base-model bert-base-cased --output bert-music
    nerbert dapt --corpus music-corpus --fraction 0.01 0.25 0.5 1 --output bert-music

Our flags come first, those of transformers.TrainingArguments follow. `python -m pretrain.dapt` is
the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nerbert.command import Command, is_first, only_run
from nerbert.options import Recipes
from pretrain.settings import DaptSettings

RECIPES = Recipes("pretrain.mlm", "crossner-paper")

COMMAND = Command(
    __doc__,
    DaptSettings,
    recipes=RECIPES,
    rest="Every other flag goes to transformers.TrainingArguments, for example --learning-rate, "
    "--num-train-epochs, --bf16, --report-to tensorboard, --resume-from-checkpoint DIR.",
)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(settings: DaptSettings, rest: list[str]) -> None:
    from pretrain.mlm.run import run  # loads torch, which takes seconds

    for one in settings.runs():
        with only_run(one.output):
            summary = run(one, rest)
        if is_first():
            print(summary)


if __name__ == "__main__":
    sys.exit(main())
