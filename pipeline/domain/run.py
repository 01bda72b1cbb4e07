"""Runs the stages of a domain corpus that are not up to date."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from nerbert.commands.process import log_file
from nerbert.errors import UserError
from pipeline.domain.definition import DomainSettings
from pipeline.domain.plan import RECORD, DomainPlan, make_domain_plan
from pipeline.domain.report import present
from pipeline.domain.stage import category_stage, sentence_stage, total, walk
from pipeline.execution.executor import Executor
from pipeline.runs.corpus import executor

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
    with settings.output.locked():
        (settings.output / RECORD).write_json(plan.record)
        with log_file(settings.output), runs.opened(settings.output, plan.parts):
            _run_stages(plan, runs)
        counts = total(plan)
        if not counts.sentences.get("taken"):
            raise UserError(
                f"{settings.output}: no page of {settings.documents} is in the domain "
                f"({', '.join(plan.domain.roots)}, depth {plan.domain.depth}); name other "
                "--roots, or a larger --depth"
            )
        return present(plan, counts)


def _run_stages(plan: DomainPlan, runs: Executor) -> None:
    """Makes the graph of wiki categories, then the sentences, unless they are up to date."""
    if not plan.categories.is_complete():
        runs.make("categories", category_stage(plan), plan.categories)
    if plan.sentences.is_complete():
        _LOGGER.info("sentences: up to date")
        return
    walked = walk(plan)
    roots = ", ".join(plan.domain.roots)
    _LOGGER.info("walk: %s wiki categories below %s", f"{len(walked):,}", roots)
    if not plan.annotation.is_current():
        plan.annotation.prepare()  # a corrected file, of another size, is not removed
    runs.make("sentences", sentence_stage(plan), plan.sentences)
