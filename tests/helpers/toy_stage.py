"""A stage of three steps on numbers; workers import it by name."""

import errno
import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from nerbert.errors import UserError
from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from pipeline.execution.part_pass import Gather, PartPass, Pass


@dataclass
class NumberReport(Report):
    number: int


class Count(Pass):
    """Reports each number as it is."""

    name = "count"

    def __init__(self, folder, numbers):
        self.folder, self.numbers = Path(folder), numbers

    def elements(self):
        return self.numbers

    def run(self, element, known):
        time.sleep(0.002 * (element % 3))  # reports do not come in the order of the elements
        return NumberReport(element)


class Numbers(PartPass):
    """Writes each number plus what is known."""

    name, report = "numbers", NumberReport

    def __init__(self, folder, numbers):
        self.folder, self.numbers = Path(folder), numbers
        self.opened = False

    def elements(self):
        return self.numbers

    def open(self):
        self.opened = True

    def part(self, element):
        return Place(self.folder / f"part-{element}.parquet")

    def make(self, element, part, known):
        assert self.opened
        Path(part).write_text(str(element + known))
        return NumberReport(element + known)


class Odd(Exception):
    """An exception that cannot be made again from its arguments."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


class Fails(Count):
    """Fails at the number 5."""

    def __init__(self, folder, numbers, how):
        super().__init__(folder, numbers)
        self.how = how

    def run(self, element, known):
        if element != 5:
            return NumberReport(element)
        if self.how == "user":
            raise UserError("wrong input 5")
        if self.how == "os":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.how == "odd":
            raise Odd("cannot be", "pickled")
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Total:
    """Writes the reports' numbers."""

    folder: Path

    def __call__(self, reports, known):
        Path(self.folder, "total.json").write_text(json.dumps([r.number for r in reports]))


def _sum(reports, known):
    return sum(report.number for report in reports)


def toy_stage(folder, numbers):
    """Counts the numbers, writes each plus the total, and writes the list of these."""
    Path(folder, "reports").mkdir(exist_ok=True)
    return [
        Count(folder, numbers),
        Gather("sum", _sum),
        Numbers(folder, numbers),
        Gather("total", Total(Path(folder))),
    ]
