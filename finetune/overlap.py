r"""Measures how many of their most frequent words data sets and domain corpora share, in per cent.

    nerbert overlap --data 'crossner/*' conll2003-crossner --output overlap
    nerbert overlap --data politics-corpus music-corpus ai-corpus --output overlap

`python -m finetune.overlap` is the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from finetune.options import OverlapOptions
from nerbert.command import Command

COMMAND = Command(__doc__, OverlapOptions)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(options: OverlapOptions) -> None:
    from finetune.evaluation.overlap import compare_words  # loads numpy and matplotlib

    print(compare_words(options), end="")


if __name__ == "__main__":
    sys.exit(main())
