"""Runs `nerbert reproduce`: the steps of a plan, and the page about them."""

from __future__ import annotations

from pathlib import Path

from finetune.papers.reproduce.claims import judge_claim, read_runs
from finetune.papers.reproduce.page import claims_table, page, write_page
from finetune.papers.reproduce.plan import Plan, ReproduceOptions, Scale
from nerbert.commands.steps import failed_step, outlook, run_steps, steps_folder
from nerbert.errors import RunError, UserError

_MACHINES: dict[Scale, str] = {"debug": "two cores", "small": "two cores", "paper": "one A100"}
"""Where the hours of a scale are spent."""
REPORT = "report"
"""Folder of the page."""


def reproduce(options: ReproduceOptions) -> str:
    """Runs the steps that are not done; writes the page; returns the claims as a table.

    Raises:
        UserError: the plan does not fit the options, or a file is missing.
        RunError: a step failed; the page says which.
    """
    plan, output = Plan.of(options), Path(options.output).absolute()
    for path in (*options.dump, *options.types):
        if not path.is_remote and not path.files():
            raise UserError("no such file; give a path, a glob or a directory", path)
    if options.dry_run or options.scale == "paper":
        lines = outlook(plan.steps, output, _MACHINES[options.scale])
        print("\n".join([plan.title, *filter(None, [plan.notes]), "", *lines]))
    if options.dry_run:
        return ""
    about = {"paper": options.paper, "scale": options.scale}
    with steps_folder(output, about) as record:
        done = list(run_steps(plan.steps, output, record))
        verdicts = [
            judge_claim(claim, read_runs(*(output / step for step in claim.step.split())))
            for claim in plan.claims
        ]
        text = page(plan, done, verdicts, options)
        write_page(output / REPORT, plan.title, text)
    if failed := failed_step(done):
        raise RunError(f"{output / REPORT / 'index.html'}: {failed.step.name}: {failed.why_not}")
    return f"{claims_table(verdicts, options.scale)}\npage        {output / REPORT / 'index.html'}"
