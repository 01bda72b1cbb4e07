"""Runs `nerbert reproduce`: the steps of a plan, and the page about them."""

from __future__ import annotations

import logging
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from nerbert.errors import RunError
from nerbert.reproduce.claims import Verdict, judged, rows_of
from nerbert.reproduce.plan import Plan, ReproduceOptions, Step
from nerbert.storage import files

_LOGGER = logging.getLogger("nerbert")
Record = dict[str, dict[str, Any]]
STEPS, REPORT = "steps.json", "report"
"""File with what was done, and folder of the page."""


@dataclass(frozen=True)
class Done:
    """What became of a step.

    Attributes:
        step: the step.
        seconds: time that it took; 0 if it did not run.
        why_not: why it has no result; empty if it has.
    """

    step: Step
    seconds: float = 0.0
    why_not: str = ""


def reproduce(options: ReproduceOptions) -> str:
    """Runs the steps that are not done; writes the page; returns the claims as a table.

    Raises:
        UserError: the plan does not fit the options.
        RunError: a step failed; the page says which.
    """
    plan, output = Plan.of(options), Path(options.output)
    if options.dry_run or options.scale == "paper":
        print(_outlook(plan, _record(output)))
    if options.dry_run:
        return ""
    (output / "logs").mkdir(parents=True, exist_ok=True)
    with files.locked(str(output)):
        done = list(_run(plan, output))
        verdicts = [
            judged(claim, rows_of(*(output / step for step in claim.step.split())))
            for claim in plan.claims
        ]
        text = page(plan, done, verdicts, options)
        write_page(output / REPORT, plan.title, text)
    if failed := [one for one in done if one.why_not and not one.step.why_not]:
        first = failed[0]
        raise RunError(f"{output / REPORT / 'index.html'}: {first.step.name}: {first.why_not}")
    return f"{_claims(verdicts)}\npage        {output / REPORT / 'index.html'}"


def _outlook(plan: Plan, record: Record) -> str:
    """What a run would do now."""
    lines = [plan.title, *filter(None, [plan.notes]), ""]
    without: set[str] = set()
    hours, renewed = 0.0, False
    for step in plan.steps:
        if _known(record, step)["done"] and not renewed:
            lines.append(f"{step.name}: {step.says} (done)")
        elif why := _why_not(step, without):
            without.add(step.name)
            lines.append(f"{step.name}: {step.says} ({why})")
        else:
            cost = f"{step.hours:g} h on one A100" if step.hours else "minutes"
            lines.append(f"{step.name}: {step.says} ({cost})")
            lines.append(f"    nerbert {shlex.join(step.command)}")
            hours, renewed = hours + step.hours, True
    return "\n".join([*lines, "", f"{hours:g} hours on one A100 at the scale of the paper"])


def _record(output: Path) -> Record:
    return files.read_json_or_none(str(output / STEPS)) or {}


def _known(record: Record, step: Step) -> dict[str, Any]:
    """What is on record of a step, if its command was the same."""
    known = record.get(step.name, {})
    if known.get("command") == step.command:
        return known
    return {"command": step.command, "seconds": 0.0, "done": False}


def _why_not(step: Step, without: set[str]) -> str:
    """Why a step cannot run: its own reason, or a step before it that has no result."""
    if step.why_not or not (lacking := without & {*step.after}):
        return step.why_not
    return f"needs the step {min(lacking)}"


def _run(plan: Plan, output: Path) -> Iterator[Done]:
    """Runs the steps; a finished one with the same command is not run again.

    After a step that ran now it is: its inputs may be others. Its command repeats what they change.
    """
    record = _record(output)
    without: set[str] = set()
    renewed = False
    for number, step in enumerate(plan.steps, start=1):
        known = _known(record, step)
        if known["done"] and not renewed:
            why = ""  # it has a result, whatever is asked for now
        elif not (why := _why_not(step, without)):
            _LOGGER.info("step %d of %d, %s: %s", number, len(plan.steps), step.name, step.says)
            start, renewed = time.monotonic(), True
            why = "stopped"
            try:
                why = _failure(step, output / "logs" / f"{step.name}.log")
            finally:  # the time before a stop counts
                spent = known["seconds"] + time.monotonic() - start
                record[step.name] = known = known | {"seconds": round(spent, 1), "done": not why}
                files.write_json(str(output / STEPS), record)
        if why:
            without.add(step.name)
            _LOGGER.info("step %d of %d, %s: not run: %s", number, len(plan.steps), step.name, why)
        yield Done(step, known["seconds"] if not why else 0.0, why)


def _failure(step: Step, log: Path) -> str:
    """Runs a step; returns the line that says why it failed, or an empty text."""
    with log.open("a", encoding="utf-8") as file:
        command = [sys.executable, "-m", "nerbert", *step.command]
        code = subprocess.run(command, stdout=file, stderr=file, check=False).returncode
    if code == 130:
        raise KeyboardInterrupt
    if code == 0:
        return ""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{lines[-1] if lines else 'no message'} (exit code {code}, {log})"


def page(plan: Plan, done: list[Done], verdicts: list[Verdict], options: ReproduceOptions) -> str:
    """The page as Markdown, with links relative to its folder."""
    total = sum(one.seconds for one in done)
    lines = [
        f"# {plan.title}",
        "",
        f"`nerbert reproduce {options.paper} --scale {options.scale}`, {total / 60:.1f} minutes of "
        "commands.",
        "",
        *([plan.notes, ""] if plan.notes else []),
        "## What the paper claims, and what is so here",
        "",
        _claims(verdicts),
        "",
        "A claim is judged by the mean difference over all pairs of runs that are equal otherwise. "
        "It is not clear if the difference is at most two standard errors.",
        "",
        "## What was run",
        "",
        "| step | | minutes | |",
        "|---|---|---|---|",
    ]
    for one in done:
        time_taken = f"{one.seconds / 60:.1f}" if not one.why_not else "not run"
        shown = one.why_not or f"`nerbert {shlex.join(one.step.command)}`"
        lines.append(f"| {one.step.name} | {one.step.says} | {time_taken} | {_cell(shown)} |")
    lines.append("")
    for one in done:
        if not one.why_not:
            lines += _section(one.step, Path(options.output))
    return "\n".join(lines)


def _claims(verdicts: list[Verdict]) -> str:
    rows = ["| claim | | difference, points F1 | pairs |", "|---|---|---|---|"]
    for one in verdicts:
        gain = f"{one.gain:+.2f} ± {one.error:.2f}" if one.pairs else ""
        rows.append(f"| {_cell(one.claim.says)} | {one.says} | {gain} | {one.pairs} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _section(step: Step, output: Path) -> list[str]:
    """The tables and figures of a step, as its command wrote them."""
    folder = output / step.name
    texts = [folder / name for name in ("report.md", "matrix.md")]
    reports = [path.read_text(encoding="utf-8") for path in texts if path.is_file()]
    figures = sorted(folder.glob("*.png"))
    if not reports and not figures:
        return []
    lines = [f"## {step.name}: {step.says}", ""]
    for report in reports:
        lines += [f"##{line}" if line.startswith("#") else line for line in report.splitlines()]
        lines.append("")
    for figure in figures:
        lines += [f"![{figure.stem}](../{step.name}/{figure.name})", ""]
    return lines


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: 1rem 0; }
td, th { border: 1px solid #ccc; padding: .2rem .5rem; text-align: left; }
img { max-width: 100%; } code { overflow-wrap: anywhere; }
"""


def write_page(folder: Path, title: str, text: str) -> None:
    """Writes `report.md` and `index.html`, which needs no network."""
    # The extra train installs it.
    from markdown import markdown  # type: ignore[import-untyped]

    folder.mkdir(exist_ok=True)
    (folder / "report.md").write_text(text, encoding="utf-8")
    body = markdown(text, extensions=["tables"])
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    html = f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'
    (folder / "index.html").write_text(html, encoding="utf-8")
