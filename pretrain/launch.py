r"""Continues pre-training an encoder by entity tagging on a corpus.

    nerbert pretrain --corpus demo-corpus/corpus --recipe paper-debug --output demo-bert
    nerbert pretrain --corpus enwiki-corpus/corpus --output ner-bert
    torchrun --nproc-per-node 8 -m pretrain.launch --corpus enwiki-corpus/corpus --output ner-bert

Our flags come first, those of transformers.TrainingArguments follow. `python -m pretrain.launch` is
the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nerbert.command import Command, is_first, only_run
from nerbert.options import Recipes
from pretrain.settings import PretrainSettings

RECIPES = Recipes("pretrain.tagging", "paper")

COMMAND = Command(
    __doc__,
    PretrainSettings,
    recipes=RECIPES,
    rest="Every other flag goes to transformers.TrainingArguments, for example --learning-rate, "
    "--num-train-epochs, --bf16, --torch-compile, --report-to tensorboard, --push-to-hub, "
    "--resume-from-checkpoint DIR.",
)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(settings: PretrainSettings, rest: list[str]) -> None:
    from pretrain.tagging.run import run  # loads torch, which takes seconds

    with only_run(settings.output):
        summary = run(settings, rest)
    if is_first():
        print(summary)


if __name__ == "__main__":
    sys.exit(main())
