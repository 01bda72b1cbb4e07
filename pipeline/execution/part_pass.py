"""A stage is a list of steps: passes over many elements, and steps that gather their reports.

`stages.local` runs the steps in processes of this machine, `stages.beam` as a graph of Apache Beam.
Only elements, reports and gathered statistics cross from one step to the next, never pages or
sentences: runners keep in memory what crosses a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nerbert.storage import parts
from nerbert.storage.parts import Report


class Pass:
    """A step that makes one report of each element."""

    name: str
    """Label of the step."""

    def elements(self) -> Sequence[Any]:
        """The units of work."""
        raise NotImplementedError

    def open(self) -> None:
        """Loads what all elements need. It is called once per process."""

    def finished(self, element: Any) -> Report | None:
        """The report of an element that an earlier run made; None if there is none."""
        return None

    def run(self, element: Any, known: Any) -> Report:
        """Makes the report of an element.

        Args:
            element: the unit of work.
            known: result of the `Gather` before this pass.
        """
        raise NotImplementedError


class PartPass(Pass):
    """A pass that writes a part file for each element.

    The report of a part is written last, so it marks the part as finished. A part that an earlier
    run finished is not made again, so a stopped run continues where it stopped.
    """

    report: type[Report]
    """Class of the reports."""

    def part(self, element: Any) -> str:
        """Path of the part of an element."""
        raise NotImplementedError

    def make(self, element: Any, part: str, known: Any) -> Report:
        """Writes the part of an element; returns its report."""
        raise NotImplementedError

    def finished(self, element: Any) -> Report | None:
        """The report of an element's part, None if the part is not finished."""
        return parts.finished(self.part(element), self.report)

    def run(self, element: Any, known: Any) -> Report:
        """Writes the part of an element, and then its report."""
        part = self.part(element)
        report = self.make(element, part, known)
        parts.finish(part, report)
        return report


@dataclass(frozen=True)
class Gather:
    """A step in one process: combines the reports of the pass before it.

    Attributes:
        name: label of the step.
        combine: takes the reports, and the result of the previous `Gather`.
    """

    name: str
    combine: Callable[[list[Any], Any], Any]


Stage = Sequence[Pass | Gather]
"""The steps of a stage, in order."""


def part_passes(stage: Stage) -> list[PartPass]:
    """The passes that write parts; progress is measured by their parts."""
    return [step for step in stage if isinstance(step, PartPass)]
