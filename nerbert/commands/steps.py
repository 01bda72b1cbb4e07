"""Several commands as the steps of one, which goes on where it was stopped."""

from __future__ import annotations

import ctypes
import logging
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nerbert.digests import fingerprint
from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.storage.records import check_made

_LOGGER = logging.getLogger("nerbert")
Record = dict[str, Any]
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG of prctl(2)
STEPS = "steps.json"
"""File with what was done."""


@dataclass(frozen=True)
class Step:
    """One command.

    Attributes:
        name: name of the step; its output is the folder of this name.
        says: what it does, or what of a paper it repeats.
        command: the words of the command, without `nerbert`.
        hours: hours that it takes, estimated; 0 for minutes.
        after: steps that must have run before.
        why_not: why it does not run; empty if it does.
        published: what a paper has instead, where no table has it.
        figures: file of a figure -> its number in a paper and what it shows.
        once: whether it is not looked at again when it is done; its command refuses what is there.
    """

    name: str
    says: str
    command: list[str]
    hours: float = 0.0
    after: tuple[str, ...] = ()
    why_not: str = ""
    published: str = ""
    figures: Mapping[str, str] = field(default_factory=dict)
    once: bool = False


@dataclass(frozen=True)
class Done:
    """The outcome of a step: its time, or why it was not run.

    Attributes:
        step: the step.
        seconds: time that it took; 0 if it did not run.
        why_not: why it has no result; empty if it has.
    """

    step: Step
    seconds: float = 0.0
    why_not: str = ""


@contextmanager
def steps_folder(output: Path, about: Mapping[str, str]) -> Iterator[Record]:
    """Locks the folder of all outputs, and gives the record of what was done in it.

    Args:
        output: the folder.
        about: what the steps are for; a folder with steps for something else is refused.

    Raises:
        UserError: the folder holds something else, or another run has locked it.
    """
    check_made(Place(output), STEPS, {*about, "steps"})
    (output / "logs").mkdir(parents=True, exist_ok=True)
    with Place(output).locked():
        record: Record = {**about, "steps": {}} | _record(output)
        if {name: record[name] for name in about} != about:
            present = " at the scale ".join(str(record[name]) for name in about)
            raise UserError(f"{output}: holds {present}; give another --output")
        Place(output / STEPS).write_json(record)  # first: by it a later run knows the folder
        yield record


def outlook(steps: Sequence[Step], output: Path, machine: str) -> list[str]:
    """Lines about the steps that a run would do now, and their hours on a machine."""
    record = _record(output)
    lines: list[str] = []
    without: set[str] = set()
    hours = 0.0
    for step in steps:
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
    return [*lines, "", f"{hours:g} hours on {machine}, estimated"]


def _record(output: Path) -> Record:
    """Reads the record of a run; empty if there is none, or it has another shape."""
    record = Place(output / STEPS).read_json_or_none()
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
    return fingerprint(Place(output / step.name).listing())


def _why_not(step: Step, without: set[str]) -> str:
    """Why a step cannot run: its own reason, or a step before it that has no result."""
    if step.why_not or not (lacking := without & {*step.after}):
        return step.why_not
    return f"needs the step {min(lacking)}"


def run_steps(steps: Sequence[Step], output: Path, record: Record) -> Iterator[Done]:
    """Runs the steps, also finished ones: each command knows what is done, and whether it is whole.

    Of steps that are not asked for, the results of an earlier run stay.
    """
    without: set[str] = set()
    for number, step in enumerate(steps, start=1):
        step_record = _step_record(record, step, output)
        why = "" if step.why_not and step_record["done"] else _why_not(step, without)
        if not (why or step.why_not or (step.once and step_record["done"])):
            _LOGGER.info("step %d of %d, %s: %s", number, len(steps), step.name, step.says)
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
                Place(output / STEPS).write_json(record)
        if why:
            without.add(step.name)
            _LOGGER.info("step %d of %d, %s: not run: %s", number, len(steps), step.name, why)
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


def failed_step(done: Sequence[Done]) -> Done | None:
    """The first step that should have run and did not; None if there is none."""
    failed = (outcome for outcome in done if outcome.why_not and not outcome.step.why_not)
    return next(failed, None)
