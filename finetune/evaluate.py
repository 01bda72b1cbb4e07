r"""Fine-tunes taggers on named-entity sets, and scores them on the test splits.

    nerbert evaluate --model ner-bert --data crossner/politics --seeds 5
    nerbert evaluate --models bert-base-cased ner-bert --data 'crossner/*' \
        --regime source-target --source conll2003-crossner --output report
    nerbert evaluate --models bert-base-cased ner-bert --data crossner/ai --shots 10 25 50 all
    nerbert evaluate --model tagger --data btc --regime zero-shot --label-map unified

All results are kept in --output. If the command is stopped, run it again: it does the missing runs.
`python -m finetune.evaluate` is the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from finetune.options import EvaluateOptions
from finetune.settings import RECIPES, FitSettings
from nerbert.command import Command

COMMAND = Command(__doc__, EvaluateOptions, FitSettings, recipes=RECIPES)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(options: EvaluateOptions, settings: FitSettings) -> None:
    from finetune.evaluation.evaluate import evaluate  # loads numpy and matplotlib

    print(evaluate(options, settings))


if __name__ == "__main__":
    sys.exit(main())
