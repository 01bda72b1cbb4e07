"""Makes a corpus from a Wikipedia dump: the same command as `nerbert corpus`.

python run_pipeline.py                                  the demo dump, in a minute
python run_pipeline.py --dump 'enwiki-*.xml.bz2' --output enwiki-corpus
python run_pipeline.py domain --documents enwiki-corpus --domain music --output music-corpus
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nerbert.commands.table import run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["domain"]:
        return run_command("domain", given[1:], "python run_pipeline.py domain")
    return run_command("corpus", given, "python run_pipeline.py")


if __name__ == "__main__":
    sys.exit(main())
