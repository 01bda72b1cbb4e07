"""Drops older revisions of pages that are given twice, such as in dumps of two dates.

The newest revision of a page stays, whatever the order of the files; of equal ones the first.
Dumps are in the order of page ids, so the ids of two units overlap only if pages are given twice;
only the ids of such units are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nerbert.storage import parts
from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from pipeline.documents.report import DocumentsReport, count_content
from pipeline.dump.site import ARTICLE
from pipeline.dump.units import Unit
from pipeline.execution.part_pass import DropRows

Ids = npt.NDArray[np.int64]
Revision = tuple[int, int]
"""Id of a page, and of one of its revisions."""

_COLUMNS = ("page_id", "revision_id")


def overlapping(reports: Sequence[DocumentsReport]) -> list[int]:
    """Indices of the units that may have a page twice, or share one with another unit.

    They are sorted by the first id of their pages.
    """
    ranges = sorted(
        (report.first_page, report.last_page, report.unit)
        for report in reports
        if report.first_page is not None and report.last_page is not None
    )
    doubtful_units = {report.unit for report in reports if report.superseded}
    widest: tuple[int, int] | None = None  # last id so far, and its unit
    for first, last, unit in ranges:
        if widest is not None and first <= widest[0]:
            doubtful_units |= {unit, widest[1]}
        if widest is None or last > widest[0]:
            widest = (last, unit)
    return [unit for _, _, unit in ranges if unit in doubtful_units]


def superseded(
    paths: Mapping[int, Place], reports: Sequence[DocumentsReport]
) -> dict[int, set[Revision]]:
    """Documents of each unit of which some unit has a newer revision, or an earlier one the same.

    Memory holds the ids of the units that overlap at one place.

    Args:
        paths: unit -> path of its part of documents.
        reports: reports of all units.
    """
    first = {report.unit: report.first_page or 0 for report in reports}
    older: dict[int, set[Revision]] = defaultdict(set)
    newest = np.zeros((0, 3), np.int64)  # page id, revision, unit
    for unit in overlapping(reports):
        # Units come by their first ids: smaller ids do not come again.
        newest = newest[newest[:, 0] >= first[unit]]
        rows = np.concatenate([newest, _revisions(paths[unit], unit)])
        rows = rows[np.lexsort((rows[:, 2], -rows[:, 1], rows[:, 0]))]
        is_first = np.append(True, rows[1:, 0] != rows[:-1, 0])
        for page_id, revision, owner in rows[~is_first].tolist():
            older[owner].add((page_id, revision))
        newest = rows[is_first]
    return dict(older)


def _revisions(part: Place, unit: int) -> Ids:
    """Page id, revision and unit of each row of a part, shape (rows, 3)."""
    batches = parts.read_batches(part, _COLUMNS, rows=65_536)
    columns = [
        np.stack([*(batch.column(name).to_numpy() for name in _COLUMNS), np.full(len(batch), unit)])
        for batch in batches
    ]
    return np.concatenate([np.zeros((0, 3), np.int64), *(column.T for column in columns)])


class DropSuperseded(DropRows):
    """Drops documents of which another unit, or the same, has a newer revision."""

    name, key = "older revisions", _COLUMNS

    def files(self, element: Unit) -> Sequence[Place]:
        return [self._write.part(element)]

    def dropped(self, element: Unit, gathered: Mapping[int, set[Revision]]) -> Collection[Revision]:
        return gathered.get(element.index, ())

    def without(self, report: Report, rows: Sequence[pa.Table]) -> Report:
        assert isinstance(report, DocumentsReport)
        pages, content = Counter(report.pages), Counter(report.content)
        less: Counter[str] = Counter()
        for row in rows[0].to_pylist():
            pages[_kind(row)] -= 1
            pages["duplicate"] += 1
            count_content(row, less)
        content.subtract(less)
        return replace(report, pages=_ordered(pages), content=_ordered(content))


def _kind(row: Mapping[str, Any]) -> str:
    if row["redirect"] is not None:
        return "redirect"
    return "article" if row["namespace"] == ARTICLE else "category"


def _ordered(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))
