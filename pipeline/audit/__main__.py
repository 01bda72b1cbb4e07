"""Measures the labels of a corpus: people judge sampled mentions on a web page.

    nerbert audit demo-corpus --sample 150 --seed 1 --output audit.html
    nerbert audit demo-corpus --judged audit.json

The first command makes the page, one HTML file that works offline. Keys judge each mention, the
browser keeps the judgements, and a button downloads them as JSON. The second command prints the
rates with 95 % intervals, by source and by category. `python -m pipeline.audit` is the same
command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nerbert.command import Command
from pipeline.audit.settings import AuditSettings

COMMAND = Command(__doc__, AuditSettings)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(settings: AuditSettings) -> None:
    from pipeline.audit.run import audit  # loads pyarrow

    print(audit(settings))


if __name__ == "__main__":
    sys.exit(main())
