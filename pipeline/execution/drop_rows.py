"""Drops rows of parts that only a look at all parts can tell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nerbert.storage import files, parts
from nerbert.storage.parts import Report, report_path
from pipeline.execution.part_pass import PartPass, Pass

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

    def files(self, element: Any) -> Sequence[str]:
        """Paths of the files of an element that hold rows."""
        raise NotImplementedError

    def dropped(self, element: Any, known: Any) -> Collection[RowKey]:
        """The rows of an element that are dropped."""
        raise NotImplementedError

    def without(self, report: Report, rows: Sequence[pa.Table]) -> Report:
        """The report of an element without some rows, given for each of its files."""
        raise NotImplementedError

    def run(self, element: Any, known: Any) -> Report:
        part = self._write.part(element)
        report = parts.finished(part, self._write.report)
        if report is None:  # a killed attempt of this pass emptied it
            self._write.open()
            report = self._write.run(element, known)
        keys = self.dropped(element, known)
        if not keys:
            return report
        paths = self.files(element)
        rows = [self._rows(path, keys) for path in paths]
        if not any(map(len, rows)):
            return report
        files.write_json(report_path(part), None)
        for path, gone in zip(paths, rows, strict=True):
            if len(gone):
                self._write_without(path, keys)
        report = self.without(report, rows)
        parts.finish(part, report)
        return report

    def _rows(self, path: str, keys: Collection[RowKey]) -> pa.Table:
        """The rows of a file with these keys."""
        found = (
            group.filter(pa.array(self._are_in(group, keys))) for group in parts.read_groups(path)
        )
        return pa.concat_tables([parts.schema_of(path).empty_table(), *found])

    def _write_without(self, path: str, keys: Collection[RowKey]) -> None:
        """Writes a file without some rows."""
        # The old file is read to its end before the new one replaces it.
        with parts.writer(path, parts.schema_of(path)) as writer:
            for group in parts.read_groups(path):
                writer.write_table(group.filter(pa.array(~self._are_in(group, keys))))

    def _are_in(self, rows: pa.Table, keys: Collection[RowKey]) -> npt.NDArray[np.bool_]:
        first, second = (rows.column(name).to_numpy() for name in self.key)
        found = np.isin(first, np.array([key[0] for key in keys], np.int64))
        for row in np.flatnonzero(found).tolist():
            found[row] = (int(first[row]), int(second[row])) in keys
        return found
