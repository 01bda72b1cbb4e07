r"""Searches the settings of fine-tuning that give the best F1 on the dev split.

    nerbert search --base-model bert-base-cased --data crossner/politics --output search \
        --space learning_rate=1e-5,5e-5,1e-4 head=linear,crf
    nerbert search --base-model bert-base-cased --data crossner/politics --output search \
        --method tpe --trials 30 --space learning_rate=1e-5..1e-3 batch_size=8,16,32

The method grid is that of T-NER: all settings are trained for a few epochs, the best of them to
the end, and the best one of these until its dev F1 drops. The best tagger is in OUTPUT/model, its
settings are in OUTPUT/best.toml, a recipe for nerbert train. If it is stopped, run it again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from finetune.options import SearchOptions
from finetune.settings import RECIPES, FitSettings
from nerbert.command import Command

COMMAND = Command(__doc__, SearchOptions, FitSettings, recipes=RECIPES)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(options: SearchOptions, settings: FitSettings) -> None:
    from finetune.searching.run import search  # loads torch, which takes seconds

    print(search(options, settings))


if __name__ == "__main__":
    sys.exit(main())
