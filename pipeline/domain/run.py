"""Runs the stages of a domain corpus that are not up to date."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nerbert.errors import UserError
from nerbert.storage import files
from nerbert.storage.folders import prepared
from pipeline.domain.plan import RECORD, DomainPlan, make_domain_plan
from pipeline.domain.report import present
from pipeline.domain.settings import DomainSettings
from pipeline.domain.stage import category_stage, sentence_stage, total, walk
from pipeline.runs.launcher import Launcher, check_remote, chosen_runner

if TYPE_CHECKING:
    from pipeline.clusters.beam_runner import BeamRunner

_LOGGER = logging.getLogger("nerbert")


def run(settings: DomainSettings, beam_flags: Sequence[str] = ()) -> str:
    """Runs the stages that are not up to date.

    Args:
        settings: settings of the domain corpus.
        beam_flags: flags of Beam. With `--runner` among them, Beam runs the stages.

    Returns:
        A summary for users.

    Raises:
        UserError: an input is missing or unsuitable, or no page is in the domain.
    """
    runner = chosen_runner(beam_flags)
    if runner is not None:
        settings = _for_other_machines(settings, runner)
    plan = make_domain_plan(settings)
    team = Launcher(settings.workers, runner, settings.output, plan.parts)
    with files.locked(settings.output), team:
        _run_stages(plan, team)
        counts = total(plan)
        if not counts.sentences.get("taken"):
            raise UserError(
                f"{settings.output}: no page of {settings.documents} is in the domain "
                f"({', '.join(plan.domain.roots)}, depth {plan.domain.depth}); name other "
                "--roots, or a larger --depth"
            )
        return present(plan, counts)


def _for_other_machines(settings: DomainSettings, runner: BeamRunner) -> DomainSettings:
    """Settings with absolute paths, for workers in another folder or on another machine.

    Raises:
        UserError: Dataflow's workers would not see a file, or a template is requested.
    """
    if runner.engine.template is not None:
        raise UserError(
            "--template_location: a domain corpus takes two jobs, and the second one needs "
            "the output of the first; run it without a template"
        )
    if runner.is_dataflow:
        named = {"--documents": (settings.documents,), "--output": (settings.output,)}
        check_remote({**named, "--exclude": settings.exclude})
    return replace(
        settings,
        documents=files.absolute(settings.documents),
        output=files.absolute(settings.output),
        exclude=tuple(map(files.absolute, settings.exclude)),
    )


def _run_stages(plan: DomainPlan, launcher: Launcher) -> None:
    """Makes the graph of wiki categories, then the sentences, unless they are up to date."""
    output = plan.settings.output
    files.write_json(files.join(output, RECORD), plan.record)
    if not plan.categories.is_complete():
        with prepared(plan.categories):
            launcher.run("categories", category_stage(plan), plan.categories)
    if plan.sentences.is_complete():
        _LOGGER.info("sentences: up to date")
        return
    with prepared(plan.sentences):
        if not plan.annotation.is_current():
            plan.annotation.prepare()  # a corrected file, of another size, is not removed
        walked = walk(plan)
        roots = ", ".join(plan.domain.roots)
        _LOGGER.info("walk: %s wiki categories below %s", f"{len(walked):,}", roots)
        launcher.run("sentences", sentence_stage(plan), plan.sentences)
