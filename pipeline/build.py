r"""Makes a weakly-labelled, balanced named-entity corpus in Parquet from a Wikipedia dump.

    nerbert corpus                                                  the demo dump, in a minute
    nerbert corpus --dump 'enwiki-*.xml.bz2' --output enwiki-corpus
    nerbert corpus --dump gs://bucket/enwiki/ --output gs://bucket/corpus \
        --runner DataflowRunner --project P --region R --temp_location gs://bucket/tmp

Our flags come first, Beam's follow. `python run_pipeline.py` is the same command.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nerbert import files
from nerbert.command import Command
from nerbert.errors import RunError
from nerbert.options import Recipes, build_from_python
from pipeline.settings import DEMO_OUTPUT, CorpusSettings

if TYPE_CHECKING:
    from pipeline.report.corpus_report import CorpusReport

COMMAND = Command(
    __doc__,
    CorpusSettings,
    recipes=Recipes("pipeline"),
    rest="Every other flag goes to Beam, for example --runner and what that needs.",
)


def build_corpus(*, beam_flags: Sequence[str] = (), **options: Any) -> CorpusReport | None:
    """Makes a corpus like the command `nerbert corpus`: runs the stages that are not up to date.

    Args:
        beam_flags: flags of Beam, such as `["--runner=DataflowRunner", ...]`; none for local runs.
        options: fields of `pipeline.settings.CorpusSettings`, such as `dump`, `output`, `types`,
            `workers`. Without `dump` the demo dump is used.

    Returns:
        The report of the corpus; None if an earlier `stage` was the last to run.

    Raises:
        UserError: an option or an input is wrong.
        OSError: the disk is full, or a folder cannot be written.
    """
    return _run(build_from_python(CorpusSettings, options), beam_flags)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return COMMAND.main(_work, argv, prog)


def _work(settings: CorpusSettings, beam_flags: list[str]) -> None:
    report = _run(settings, beam_flags)
    output = settings.output or DEMO_OUTPUT
    if report is not None:
        print(f"{report}\ncorpus     {files.join(output, 'corpus')}")
        if not report.funnel.sentences.out["train"]:
            raise RunError(
                "No train example: give --types (in other languages than English with "
                "--page-props), a larger dump, or a lower --min-entities"
            )
    elif settings.stage != "corpus":
        print(f"Done up to {settings.stage}: {output}")


def _run(settings: CorpusSettings, beam_flags: Sequence[str] = ()) -> CorpusReport | None:
    from pipeline.run import run  # loads numpy, pyarrow and the parsers

    return run(settings, beam_flags)
