r"""Makes a domain corpus: sentences of some wiki categories, from the documents of a corpus run.

    nerbert domain --documents enwiki-corpus --domain music --output music-corpus
    nerbert domain --documents enwiki-corpus --roots "Rock music" --depth 2 --special Band Song \
        --output rock-corpus

Our flags come first, Beam's follow. `python run_pipeline.py domain` is the same command.
"""

from __future__ import annotations

from collections.abc import Sequence

from nerbert.command import Command
from pipeline.domain.settings import DomainSettings

COMMAND = Command(
    __doc__,
    DomainSettings,
    rest="Every other flag goes to Beam, for example --runner and what that needs.",
)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(settings: DomainSettings, beam_flags: list[str]) -> None:
    from pipeline.domain.run import run  # loads numpy and pyarrow

    print(run(settings, beam_flags))
