r"""Tags the entities in texts, with character offsets.

    nerbert predict --model MODEL 'Dante was born in Florence.'
    nerbert predict --model MODEL --input texts.txt --format conll > tagged.txt
    nerbert predict --model MODEL --input texts.txt --format html > tagged.html

Prints JSON lines: {"text": ..., "entities": [{"start", "end", "type", "score", "text"}, ...]}.
`python -m finetune.predict` is the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from finetune.options import PredictOptions
from finetune.serving.lines import print_predictions
from nerbert.command import Command

COMMAND = Command(__doc__, PredictOptions)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(print_predictions, argv, prog)


if __name__ == "__main__":
    sys.exit(main())
