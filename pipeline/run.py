"""Runs the stages of a corpus that are not up to date, on local processes or on a Beam runner."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files as resource_files
from typing import TYPE_CHECKING

from nerbert import files, progress
from nerbert.errors import UserError
from nerbert.folders import Folder, prepared
from nerbert.parts import Report, report_path
from nerbert.process import cores
from nerbert.reports import versions
from pipeline.outlook import outlook
from pipeline.plan import MANIFEST, VERSIONS, Plan, make_plan
from pipeline.report.corpus_report import CorpusReport
from pipeline.settings import (
    DECIDE_BALANCE,
    DECIDE_DOCUMENTS,
    DECIDE_ENTITIES,
    DECIDE_EXAMPLES,
    DEMO_OUTPUT,
    STAGES,
    CorpusSettings,
)
from pipeline.stages import local
from pipeline.stages.corpus import corpus_stage
from pipeline.stages.extract import extract_stage
from pipeline.stages.part_pass import Stage, part_passes
from pipeline.stages.resolve import resolve_stage

if TYPE_CHECKING:
    from pipeline.stages.beam import BeamRunner

DEMO_MIN_ENTITIES, MIN_ENTITIES = 2, 10

_PAUSE_S, _REMOTE_PAUSE_S = 0.5, 10.0
_LIBRARIES = ("nltk", "numpy", "pyarrow")
_LOGGER = logging.getLogger("nerbert")


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
    runner = chosen_runner(beam_flags)
    settings = _with_demo(settings)
    if runner is not None:
        settings = for_other_machines(settings, runner.is_dataflow)
    plan = make_plan(settings)
    with files.locked(plan.output):
        is_done = _run_stages(plan, Launcher(settings.workers, runner))
    if not is_done or settings.stage != "corpus":
        return None
    return CorpusReport.from_json(files.read_json(files.join(plan.corpus.path, "report.json")))


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
        dump=(str(resource_files("pipeline") / "data" / "demo.xml"),),
        output=settings.output or DEMO_OUTPUT,
        min_entities=DEMO_MIN_ENTITIES if least is None else least,
    )
    _LOGGER.info(
        "No --dump: the demo dump, with --min-entities %d, into %s",
        settings.min_entities,
        settings.output,
    )
    return settings


def _run_stages(plan: Plan, launcher: Launcher) -> bool:
    """Runs the stages that are not up to date, in order.

    Returns:
        Whether all stages are finished; false if one was only written as a Dataflow template.
    """
    write_manifest(plan)
    plan.identities.save()
    steps: dict[str, tuple[Callable[[Plan], Stage], list[Folder]]] = {
        "extract": (extract_stage, [plan.documents]),
        "resolve": (resolve_stage, [plan.entities]),
        "corpus": (corpus_stage, [plan.examples, plan.corpus]),
    }
    for name in STAGES[: STAGES.index(plan.settings.stage) + 1]:
        stage, folders = steps[name]
        if all(folder.is_complete() for folder in folders):
            _LOGGER.info("%s: up to date", name)
        else:
            if name == "extract":
                _LOGGER.info(outlook(plan))
            with prepared(*folders):
                if not launcher.run(name, stage(plan)):
                    return False
        if name == "extract":
            check_set_aside(plan)
    write_manifest(plan)
    return True


def check_set_aside(plan: Plan) -> None:
    """Checks that not too many pages of the dump were set aside.

    Raises:
        UserError: the share is larger than the settings tolerate.
    """
    counts = plan.documents.found().get("counts")
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
            f"{files.join(plan.documents.path, 'quarantine')}: {aside:,} of {read + lost:,} pages "
            f"were set aside ({listed}); repair the dump, or give a --max-set-aside above "
            f"{plan.settings.max_set_aside:g}"
        )


def write_manifest(plan: Plan) -> None:
    """Writes the manifest: inputs, settings, versions, and the state of each folder."""
    settings = plan.settings
    folders = (plan.documents, plan.entities, plan.examples, plan.corpus)
    value = {
        "inputs": [
            {
                "file": files.name(source.path),
                "bytes": source.size,
                "digest": source.digest,
                "compression": source.compression,
                "language": source.site.language,
            }
            for source in plan.inputs
        ],
        "units": len(plan.units),
        "sentence_model": plan.sentence_model,
        "settings": {
            "extract": settings.facts(DECIDE_DOCUMENTS),
            "resolve": {
                **settings.facts(DECIDE_ENTITIES),
                "types": [files.name(path) for path in settings.types],
                "page_props": [files.name(path) for path in settings.page_props],
                "langlinks": [files.name(path) for path in settings.langlinks],
                "ontology": files.name(settings.ontology or "shipped"),
                "infobox_mapping": files.name(settings.infobox_mapping or "shipped"),
            },
            "select": {
                **settings.facts(DECIDE_EXAMPLES),
                "categories": files.name(settings.categories),
                "exclude": [files.name(path) for path in settings.exclude],
            },
            "balance": settings.facts(DECIDE_BALANCE),
        },
        "versions": {**versions(*_LIBRARIES), **VERSIONS},
        "stages": {files.name(folder.path): folder.found() or None for folder in folders},
    }
    files.write_json(files.join(plan.output, MANIFEST), value)


def check_remote(named: Mapping[str, Sequence[str | None]]) -> None:
    """Checks that no file is on the local disk, which other machines do not see.

    Args:
        named: flag -> paths.

    Raises:
        UserError: a file is on the local disk.
    """
    for flag, paths in named.items():
        for path in paths:
            if path and not files.is_remote(path):
                raise UserError(
                    f"{flag} {path}: Dataflow's workers do not see this disk; give a gs:// path"
                )


def for_other_machines(settings: CorpusSettings, is_dataflow: bool) -> CorpusSettings:
    """Settings with absolute paths, for workers in another folder or on another machine.

    Raises:
        UserError: Dataflow's workers would not see a file.
    """
    if is_dataflow:
        check_remote(
            {
                "--dump": settings.dump,
                "--output": (settings.output,),
                "--types": settings.types,
                "--page-props": settings.page_props,
                "--langlinks": settings.langlinks,
                "--exclude": settings.exclude,
            }
        )
    return replace(
        settings,
        dump=tuple(map(files.absolute, settings.dump)),
        output=files.absolute(settings.output or ""),
        types=tuple(map(files.absolute, settings.types)),
        page_props=tuple(map(files.absolute, settings.page_props)),
        langlinks=tuple(map(files.absolute, settings.langlinks)),
        exclude=tuple(map(files.absolute, settings.exclude)),
    )


def chosen_runner(beam_flags: Sequence[str]) -> BeamRunner | None:
    """The runner that Beam's flags name; None for local processes.

    Raises:
        UserError: Beam does not know a flag, or the runner loses data.
    """
    if not beam_flags:
        return None
    from pipeline.stages.beam import BeamRunner  # Beam takes a second to load

    return BeamRunner(tuple(beam_flags))


class Launcher:
    """Runs stages in local processes or with a runner of Beam, and shows their progress."""

    def __init__(self, workers: int | None, runner: BeamRunner | None) -> None:
        """Takes the number of local processes, and the runner, None for local."""
        self._workers, self.runner = workers, runner

    def run(self, name: str, stage: Stage) -> bool:
        """Runs a stage.

        Returns:
            Whether the stage was run; false if it was only written as a Dataflow template.
        """
        start = time.monotonic()
        passes = part_passes(stage)
        sizes = [len(step.elements()) for step in passes]
        if self.runner is None:
            wanted = self._workers or cores()
            with progress.shown(name, sum(sizes)) as add:

                def done(report: Report, made: bool) -> None:
                    pages = getattr(report, "pages", {}).get("read", 0)
                    add(pages if made else 0)

                local.run(stage, max(1, min(wanted, max(sizes))), done)
        else:
            paths = [step.part(element) for step in passes for element in step.elements()[:1]]
            # Each look lists folders, which takes time and money on a remote store.
            pause_s = _REMOTE_PAUSE_S if any(map(files.is_remote, paths)) else _PAUSE_S
            with progress.polled(name, sum(sizes), lambda: _count_finished(paths), pause_s):
                self.runner.run(stage)
            if self.runner.template is not None:
                _LOGGER.info(
                    "%s: template in %s; run it, then give this command for the next",
                    name,
                    self.runner.template,
                )
                return False
        _LOGGER.info("%s: done in %.1f s", name, time.monotonic() - start)
        return True


def _count_finished(paths: Sequence[str]) -> int:
    """Number of finished parts, by the reports in the folders of some parts."""
    folders = {report_path(path).rpartition("/")[0] for path in paths}
    return sum(len(files.find(files.join(folder, "part-*.json"))) for folder in folders)
