"""A stage is a list of steps: passes over many elements, and steps that gather their reports.

`execution.local` runs the steps in processes of this machine, `execution.beam` as a graph of Beam.
Only elements, reports and gathered statistics cross from one step to the next, never pages or
sentences: runners keep in memory what crosses a step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nerbert.storage import parts
from nerbert.storage.parts import Report, report_path
from nerbert.storage.places import Place


class Pass:
    """A step that makes one report of each element."""

    name: str
    """Label of the step."""

    def elements(self) -> Sequence[Any]:
        """The units of work."""
        raise NotImplementedError

    def open(self) -> None:
        """Loads what all units of work need. It is called once per process."""

    def finished(self, element: Any) -> Report | None:
        """The report of a unit of work that an earlier run has done; None if there is none."""
        return None

    def run(self, element: Any, gathered: Any) -> Report:
        """Makes the report of an element.

        Args:
            element: the unit of work.
            gathered: result of the `Gather` before this pass.
        """
        raise NotImplementedError


class PartPass(Pass):
    """A pass that writes a part file for each element.

    The report of a part is written last, so it marks the part as finished. A part that an earlier
    run finished is not made again, so a stopped run continues where it stopped.
    """

    report: type[Report]
    """Class of the reports."""

    def part(self, element: Any) -> Place:
        """Path of the part of an element."""
        raise NotImplementedError

    def make(self, element: Any, part: Place, gathered: Any) -> Report:
        """Writes the part of an element; returns its report."""
        raise NotImplementedError

    def finished(self, element: Any) -> Report | None:
        """The report of an element's part, None if the part is not finished."""
        return parts.finished(self.part(element), self.report)

    def run(self, element: Any, gathered: Any) -> Report:
        """Writes the part of an element, and then its report."""
        part = self.part(element)
        report = self.make(element, part, gathered)
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


RowKey = tuple[int, int]
"""The values of a row in two columns, by which it is known."""


class DropRows(Pass):
    """Writes parts of an earlier pass again, without some rows.

    The report of a part is emptied first, and written last, as when the part was made: after a
    kill the part is made again. A runner may run an element twice: then the rows are gone, and
    nothing is done.
    """

    key: tuple[str, str]
    """Columns that tell the rows of a part apart."""

    def __init__(self, write: PartPass) -> None:
        """Takes the pass that writes the parts."""
        self._write = write

    def elements(self) -> Sequence[Any]:
        return self._write.elements()

    def files(self, element: Any) -> Sequence[Place]:
        """Paths of the files of an element that hold rows."""
        raise NotImplementedError

    def dropped(self, element: Any, gathered: Any) -> Collection[RowKey]:
        """The rows of an element that are dropped."""
        raise NotImplementedError

    def without(self, report: Report, rows: Sequence[pa.Table]) -> Report:
        """The report of an element without some rows, given for each of its files."""
        raise NotImplementedError

    def run(self, element: Any, gathered: Any) -> Report:
        part = self._write.part(element)
        report = parts.finished(part, self._write.report)
        if report is None:  # a killed attempt of this pass emptied it
            self._write.open()
            report = self._write.run(element, gathered)
        keys = self.dropped(element, gathered)
        if not keys:
            return report
        paths = self.files(element)
        rows = [self._rows(path, keys) for path in paths]
        if not any(map(len, rows)):
            return report
        report_path(part).write_json(None)
        for path, gone in zip(paths, rows, strict=True):
            if len(gone):
                self._write_without(path, keys)
        report = self.without(report, rows)
        parts.finish(part, report)
        return report

    def _rows(self, path: Place, keys: Collection[RowKey]) -> pa.Table:
        """The rows of a file with these keys."""
        groups = (
            group.filter(pa.array(self._are_in(group, keys))) for group in parts.read_groups(path)
        )
        return pa.concat_tables([parts.schema_of(path).empty_table(), *groups])

    def _write_without(self, path: Place, keys: Collection[RowKey]) -> None:
        """Writes a file without some rows."""
        # The old file is read to its end before the new one replaces it.
        with parts.writer(path, parts.schema_of(path)) as writer:
            for group in parts.read_groups(path):
                writer.write_table(group.filter(pa.array(~self._are_in(group, keys))))

    def _are_in(self, rows: pa.Table, keys: Collection[RowKey]) -> npt.NDArray[np.bool_]:
        first, second = (rows.column(name).to_numpy() for name in self.key)
        is_in = np.isin(first, np.array([key[0] for key in keys], np.int64))
        for row in np.flatnonzero(is_in).tolist():
            is_in[row] = (int(first[row]), int(second[row])) in keys
        return is_in
