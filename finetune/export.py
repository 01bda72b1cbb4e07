r"""Exports a tagger as ONNX, or labelled texts in the formats of other tools.

    nerbert export --format onnx --model politics-tagger
    nerbert export --format spacy --data crossner/politics --part train --output train.spacy
    nerbert export --format label-studio --model politics-tagger --input texts.txt \
        --output tasks.json

ONNX files lie in the checkpoint, where nerbert predict, nerbert demo and Tagger.load find them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from finetune.options import ExportOptions
from nerbert.command import Command

COMMAND = Command(__doc__, ExportOptions)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(options: ExportOptions) -> None:
    from finetune.exporting.run import export  # loads numpy and pyarrow

    print(export(options))


if __name__ == "__main__":
    sys.exit(main())
