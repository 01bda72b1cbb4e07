r"""Plots how encoders represent the entities of a set: t-SNE, one panel for each model.

    nerbert tsne --models bert-base-cased ner-bert --data crossner/ai --output ai.png

    nerbert tsne --models dual/seed-555/multitask dual/seed-555/dual --words first-last \
        --data wikiann/en wikiann/ru --types LOC --output languages.png

A point is an entity of the test split: the last hidden state of its first sub-word. Several sets
have their own colours.
`python -m finetune.tsne` is the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from finetune.options import TsneOptions
from nerbert.command import Command

COMMAND = Command(__doc__, TsneOptions)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(options: TsneOptions) -> None:
    from finetune.evaluation.tsne import draw_entities  # loads torch, which takes seconds

    print(draw_entities(options))


if __name__ == "__main__":
    sys.exit(main())
