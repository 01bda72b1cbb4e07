r"""Serves a web page that tags text: it shows coloured entities with types and scores.

    nerbert demo --model MODEL
    nerbert demo --models MODEL OTHER --port 8080

It only listens on this machine, unless --host is given. Texts are neither stored nor logged.
`python -m finetune.demo` is the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from finetune.options import DemoOptions
from nerbert.command import Command

COMMAND = Command(__doc__, DemoOptions)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(options: DemoOptions) -> None:
    from finetune.serving.app import serve  # loads torch, which takes seconds

    serve(options)


if __name__ == "__main__":
    sys.exit(main())
