"""Runs the stages of a domain corpus that are not up to date."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from nerbert.errors import UserError
from pipeline.domain.definition import DomainSettings
from pipeline.domain.plan import RECORD, DomainPlan, make_domain_plan
from pipeline.domain.report import present
from pipeline.domain.stage import category_stage, sentence_stage, total, walk
from pipeline.execution.part_pass import Stage
from pipeline.runs.driver import PlannedStage, drive, executor

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
    runs = executor(settings, beam_flags)
    if runs.template is not None:
        raise UserError(
            "--template_location: a domain corpus takes two jobs, and the second one needs "
            "the output of the first; run it without a template"
        )
    plan = make_domain_plan(runs.adapted(settings))
    settings = plan.settings
    record = partial((settings.output / RECORD).write_json, plan.record)
    with settings.output.locked():
        drive(settings.output, plan.parts, runs, record, _steps(plan))
        counts = total(plan)
        if not counts.sentences.get("taken"):
            raise UserError(
                f"{settings.output}: no page of {settings.documents} is in the domain "
                f"({', '.join(plan.domain.roots)}, depth {plan.domain.depth}); name other "
                "--roots, or a larger --depth"
            )
        return present(plan, counts)


def _steps(plan: DomainPlan) -> Iterator[PlannedStage]:
    """The graph of wiki categories, then the sentences of the pages in it."""
    yield PlannedStage("categories", [plan.categories], partial(category_stage, plan))
    yield PlannedStage("sentences", [plan.sentences], partial(_sentence_stage, plan))


def _sentence_stage(plan: DomainPlan) -> Stage:
    walked = walk(plan)
    roots = ", ".join(plan.domain.roots)
    _LOGGER.info("walk: %s wiki categories below %s", f"{len(walked):,}", roots)
    if not plan.annotation.is_current():
        plan.annotation.prepare()  # a corrected file, of another size, is not removed
    return sentence_stage(plan)
