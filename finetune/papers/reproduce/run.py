"""Runs `nerbert reproduce`: the steps of a plan, and the page about them."""

from __future__ import annotations

import ctypes
import logging
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from finetune.papers.reproduce.claims import judge_claim, read_runs
from finetune.papers.reproduce.page import Done, claims_table, page, write_page
from finetune.papers.reproduce.plan import Plan, ReproduceOptions, Scale, Step
from nerbert.digests import fingerprint
from nerbert.errors import RunError, UserError
from nerbert.storage import files
from nerbert.storage.records import check_made

_LOGGER = logging.getLogger("nerbert")
Record = dict[str, Any]
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG of prctl(2)
_MACHINES: dict[Scale, str] = {"debug": "two cores", "small": "two cores", "paper": "one A100"}
"""Where the hours of a scale are spent."""
STEPS, REPORT = "steps.json", "report"
"""File with what was done, and folder of the page."""


def reproduce(options: ReproduceOptions) -> str:
    """Runs the steps that are not done; writes the page; returns the claims as a table.

    Raises:
        UserError: the plan does not fit the options, or a file is missing.
        RunError: a step failed; the page says which.
    """
    plan, output = Plan.of(options), Path(options.output).absolute()
    for path in (*options.dump, *options.types):
        if not files.is_remote(path) and not files.find(path):
            raise UserError("no such file; give a path, a glob or a directory", path)
    if options.dry_run or options.scale == "paper":
        print(_outlook(plan, _record(output), output, options.scale))
    if options.dry_run:
        return ""
    about = {"paper": options.paper, "scale": options.scale}
    check_made(str(output), STEPS, {*about, "steps"})
    (output / "logs").mkdir(parents=True, exist_ok=True)
    with files.locked(str(output)):
        record: Record = {**about, "steps": {}} | _record(output)
        if {name: record[name] for name in about} != about:
            raise UserError(
                f"{output}: holds {record['paper']} at the scale {record['scale']}; give another "
                "--output"
            )
        done = list(_run(plan, output, record))
        verdicts = [
            judge_claim(claim, read_runs(*(output / step for step in claim.step.split())))
            for claim in plan.claims
        ]
        text = page(plan, done, verdicts, options)
        write_page(output / REPORT, plan.title, text)
    if failed := [
        step_result for step_result in done if step_result.why_not and not step_result.step.why_not
    ]:
        first = failed[0]
        raise RunError(f"{output / REPORT / 'index.html'}: {first.step.name}: {first.why_not}")
    return f"{claims_table(verdicts, options.scale)}\npage        {output / REPORT / 'index.html'}"


def _outlook(plan: Plan, record: Record, output: Path, scale: Scale) -> str:
    """The list of the steps that a run would do now, for `--dry-run`."""
    lines = [plan.title, *filter(None, [plan.notes]), ""]
    machine = _MACHINES[scale]
    without: set[str] = set()
    hours = 0.0
    for step in plan.steps:
        if _step_record(record, step, output)["done"]:
            lines.append(f"{step.name}: {step.says} (done)")
        elif why := _why_not(step, without):
            without.add(step.name)
            lines.append(f"{step.name}: {step.says} ({why})")
        else:
            cost = f"{step.hours:g} h on {machine}" if step.hours else "minutes"
            lines.append(f"{step.name}: {step.says} ({cost})")
            lines.append(f"    nerbert {shlex.join(step.command)}")
            hours += step.hours
    return "\n".join([*lines, "", f"{hours:g} hours on {machine}, estimated"])


def _record(output: Path) -> Record:
    """Reads the record of a run; empty if there is none, or it has another shape."""
    record = files.read_json_or_none(str(output / STEPS))
    steps = record.get("steps") if isinstance(record, dict) else None
    is_whole = isinstance(steps, dict) and all(
        isinstance(entry, dict) and {"command", "seconds", "done", "outputs"} <= entry.keys()
        for entry in steps.values()
    )
    return record if is_whole else {}


def _step_record(record: Record, step: Step, output: Path) -> dict[str, Any]:
    """The record of a step if its command and outputs are unchanged since; else a new one."""
    step_record = record.get("steps", {}).get(step.name, {})
    if step_record.get("command") == step.command and step_record["outputs"] == _outputs(
        output, step
    ):
        return dict(step_record)
    return {"command": step.command, "seconds": step_record.get("seconds", 0.0), "done": False}


def _outputs(output: Path, step: Step) -> str:
    """Digest of the names and sizes of the outputs of a step."""
    return fingerprint(files.listing(str(output / step.name)))


def _why_not(step: Step, without: set[str]) -> str:
    """Why a step cannot run: its own reason, or a step before it that has no result."""
    if step.why_not or not (lacking := without & {*step.after}):
        return step.why_not
    return f"needs the step {min(lacking)}"


def _run(plan: Plan, output: Path, record: Record) -> Iterator[Done]:
    """Runs the steps, also finished ones: each command knows what is done, and whether it is whole.

    Of steps that are not asked for, the results of an earlier run stay.
    """
    without: set[str] = set()
    for number, step in enumerate(plan.steps, start=1):
        step_record = _step_record(record, step, output)
        why = "" if step.why_not and step_record["done"] else _why_not(step, without)
        if not (why or step.why_not):
            _LOGGER.info("step %d of %d, %s: %s", number, len(plan.steps), step.name, step.says)
            start, before = time.monotonic(), step_record["done"]
            why = "stopped"
            try:
                why = _failure(step, output / "logs" / f"{step.name}.log")
            finally:  # the time before a stop counts, not that of looking at what was done
                outputs = _outputs(output, step)
                looked = before and outputs == step_record["outputs"]
                spent = step_record["seconds"] + (0 if looked else time.monotonic() - start)
                step_record |= {"seconds": round(spent, 1), "done": not why, "outputs": outputs}
                record["steps"][step.name] = step_record
                files.write_json(str(output / STEPS), record)
        if why:
            without.add(step.name)
            _LOGGER.info("step %d of %d, %s: not run: %s", number, len(plan.steps), step.name, why)
        yield Done(step, step_record["seconds"] if not why else 0.0, why)


def _end_with_parent() -> None:
    """Asks Linux to end this process with the one that started it, also after `kill -9`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGTERM)


def _failure(step: Step, log: Path) -> str:
    """Runs a step; returns the line that says why it failed, or an empty text."""
    with log.open("a", encoding="utf-8") as file:
        command = [sys.executable, "-m", "nerbert", *step.command]
        code = subprocess.run(
            command, stdout=file, stderr=file, check=False, preexec_fn=_end_with_parent
        ).returncode
    if code == 130:
        raise KeyboardInterrupt
    if code == 0:
        return ""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{lines[-1] if lines else 'no message'} (exit code {code}, {log})"
