"""Runs the stages of a corpus that are not up to date, on the executor that the flags name."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files as resource_files
from typing import Any

from nerbert.commands.values import build_from_python, with_options
from nerbert.errors import RunError, UserError
from nerbert.reports import versions
from nerbert.storage.folders import Folder
from nerbert.storage.places import Place
from pipeline.documents.extract import extract_stage, share_of_extract
from pipeline.documents.previous import check_previous
from pipeline.entities.resolve import resolve_stage
from pipeline.entities.types_files import types_stage
from pipeline.examples.corpus import corpus_stage
from pipeline.examples.report import CorpusReport
from pipeline.execution.local import Local
from pipeline.execution.part_pass import Stage
from pipeline.plan import MANIFEST, VERSIONS, Plan, make_plan
from pipeline.runs.driver import PlannedStage, drive, executor
from pipeline.runs.outlook import outlook
from pipeline.settings import DECIDED, DEMO_OUTPUT, STAGES, CorpusSettings, deciding

DEMO_MIN_ENTITIES, MIN_ENTITIES = 2, 10
_LIBRARIES = ("nltk", "numpy", "pyarrow")
_LOGGER = logging.getLogger("nerbert")


@with_options(CorpusSettings)
def build_corpus(*, beam_flags: Sequence[str] = (), **options: Any) -> CorpusReport | None:
    """Makes a corpus like the command `nerbert corpus`: runs the stages that are not up to date.

    Args:
        beam_flags: flags of Beam, such as `["--runner=DataflowRunner", ...]`; none for local runs.
        options: the options below. Without `dump` the demo dump is used.

    Returns:
        The report of the corpus; None if an earlier `stage` was the last to run.

    Raises:
        UserError: an option or an input is wrong.
        OSError: the disk is full, or a folder cannot be written.
    """
    return run(build_from_python(CorpusSettings, options), beam_flags)


def make_corpus(settings: CorpusSettings, beam_flags: Sequence[str] = ()) -> None:
    """Runs the stages that are not up to date, and prints what they made.

    Raises:
        RunError: the corpus has no train example.
    """
    report = run(settings, beam_flags)
    output = settings.output or Place(DEMO_OUTPUT)
    if report is not None:
        print(f"{report}\ncorpus     {output / 'corpus'}")
        if not report.funnel.sentences.out["train"]:
            raise RunError(
                f"No train example in {output}: give --types (in other languages than English "
                "with --page-props), a larger dump, or a lower --min-entities"
            )
    elif settings.share is not None:
        print(f"Done {settings.share} of the documents: {output}; then the same without --share")
    elif settings.stage != "corpus":
        print(f"Done up to {settings.stage}: {output}")


def run(settings: CorpusSettings, beam_flags: Sequence[str] = ()) -> CorpusReport | None:
    """Runs the stages that are not up to date.

    Args:
        settings: settings of the corpus.
        beam_flags: flags of Beam. With `--runner` among them, Beam runs the stages instead of
            local processes.

    Returns:
        The report of the corpus; None if the stage `corpus` was not run.

    Raises:
        UserError: an input is missing or unreadable, or the output folder holds something else.
    """
    runs = executor(settings, beam_flags)
    plan = make_plan(runs.adapted(_with_demo(settings)))
    if plan.settings.previous:
        check_previous(plan.settings.previous, plan.documents)
    inputs = [source.path for source in plan.inputs]
    if settings.share is not None:
        if beam_flags:
            raise UserError("--share: for local workers, not with --runner")
        _make_share(plan, settings.share)
        return None
    with plan.output.locked():
        is_done = drive(plan.output, inputs, runs, partial(write_manifest, plan), _steps(plan))
    if not is_done or settings.stage != "corpus":
        return None
    return CorpusReport.from_json((plan.corpus.path / "report.json").read_json())


def _with_demo(settings: CorpusSettings) -> CorpusSettings:
    """The settings; if no dump is named, those of the demo.

    Raises:
        UserError: there is a dump but no output.
    """
    least = settings.min_entities
    if settings.dump:
        if not settings.output:
            raise UserError("--output is missing: name the folder for the outputs")
        return replace(settings, min_entities=MIN_ENTITIES if least is None else least)
    settings = replace(
        settings,
        dump=(Place(str(resource_files("pipeline") / "data" / "demo.xml")),),
        output=settings.output or Place(DEMO_OUTPUT),
        min_entities=DEMO_MIN_ENTITIES if least is None else least,
    )
    _LOGGER.info(
        "No --dump: the demo dump, with --min-entities %d, into %s",
        settings.min_entities,
        settings.output,
    )
    return settings


def _make_share(plan: Plan, share: str) -> None:
    """Makes a share of the parts of documents, beside other runs that make the others.

    Raises:
        UserError: the share is none, the output is remote, or it holds something else.
    """
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", share)
    number, of = map(int, match.groups()) if match else (1, 0)
    if number > of:
        raise UserError(f"--share {share}: give K/N, such as 2/3 for the second of three")
    if plan.output.is_remote:
        raise UserError(f"--share: {plan.output} is remote; give a folder that all hosts see")
    with plan.output.locked(is_shared=True):
        write_manifest(plan)  # first: by it another task knows the folder
        plan.documents.join()
        stage = share_of_extract(plan, number, of)
        Local(plan.settings.workers).run("extract", stage, plan.documents.path)
        _check_unchanged(plan, [plan.documents], None)


def _steps(plan: Plan) -> Iterator[PlannedStage]:
    """The stages up to the last that is wanted, each with the checks after it."""
    plan.identities.save()
    settings = plan.settings
    are_used = not (plan.documents.is_complete() and plan.entities.is_complete())
    if settings.types and are_used and not plan.types.is_complete():
        # Here and not on a cluster: a damaged file must end the run before the dump is read.
        Local(settings.workers).make("types", types_stage(plan), plan.types)
        _check_unchanged(plan, [plan.types], settings.types)

    dumps = [source.path for source in plan.inputs]
    steps: dict[str, tuple[Callable[[Plan], Stage], list[Folder], list[Place] | None]] = {
        "extract": (_extract_stage, [plan.documents], dumps),
        "resolve": (resolve_stage, [plan.entities], None),
        "corpus": (corpus_stage, [plan.examples, plan.corpus], None),
    }
    for name in STAGES[: STAGES.index(settings.stage) + 1]:
        stage, folders, inputs = steps[name]
        check = partial(_check_unchanged, plan, folders, inputs)
        yield PlannedStage(name, folders, partial(stage, plan), check)
        if name == "extract":
            check_set_aside(plan)


def _extract_stage(plan: Plan) -> Stage:
    _LOGGER.info(outlook(plan))
    return extract_stage(plan)


def _check_unchanged(plan: Plan, folders: Sequence[Folder], inputs: Collection[str] | None) -> None:
    """Checks that some inputs, or all, are what they were when the run began.

    Raises:
        UserError: one has changed, and nobody knows which of its bytes were read.
    """
    for path in plan.identities.changed():
        if inputs is None or path in inputs:
            for folder in folders:
                folder.spoil()
            raise UserError(f"{path}: changed while the run read it; run the same command again")


def check_set_aside(plan: Plan) -> None:
    """Checks that not too many pages of the dump were set aside.

    Raises:
        UserError: the share is larger than the settings tolerate.
    """
    counts = plan.documents.on_disk().get("counts")
    if counts is None:
        raise UserError(
            f"{plan.documents.path}: the run left nothing here; do its workers see this folder?"
        )
    reasons, read = dict(counts["set_aside"]), counts["pages"].get("read", 0)
    if lost := counts["lost_pages"]:
        reasons["lost where the dump is corrupt, by estimate"] = lost
    if counts["damage"].get("truncated") and not plan.settings.max_set_aside:
        reasons["or more behind the end of truncated files"] = counts["damage"]["truncated"]
    aside = sum(reasons.values())
    if aside > plan.settings.max_set_aside * (read + lost):
        listed = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
        raise UserError(
            f"{plan.documents.path / 'quarantine'}: {aside:,} of {read + lost:,} pages "
            f"were set aside ({listed}); repair the dump, or give a --max-set-aside above "
            f"{plan.settings.max_set_aside:g}"
        )


def write_manifest(plan: Plan) -> None:
    """Writes the manifest: inputs, settings, versions, and the state of each folder."""
    settings = plan.settings
    types = [plan.types] if settings.types else []
    folders = (plan.documents, *types, plan.entities, plan.examples, plan.corpus)
    value = {
        "inputs": [
            {
                "file": source.path.name,
                "bytes": source.size,
                "digest": source.digest,
                "compression": source.compression,
                "language": source.site.language,
            }
            for source in plan.inputs
        ],
        "units": len(plan.units),
        "sentence_model": plan.sentence_model,
        "settings": {stage: _option_values(settings, stage) for stage in DECIDED},
        "versions": {**versions(*_LIBRARIES), **VERSIONS},
        "stages": {folder.path.name: folder.on_disk() or None for folder in folders},
    }
    (plan.output / MANIFEST).write_json(value)


def _option_values(settings: CorpusSettings, output: str) -> dict[str, Any]:
    """The options that decide an output, for the manifest; of files only the names."""
    values = settings.decide(output)
    for entry in deciding(output):
        path = values[entry.name]
        if entry.facts["path"] and entry.is_list:
            values[entry.name] = [file.name for file in path]
        elif entry.facts["path"]:
            values[entry.name] = Place(path).name if path else "shipped"
    return values
