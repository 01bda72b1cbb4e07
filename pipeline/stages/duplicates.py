"""Drops pages that come twice, such as from a dump given under two names.

The page of the earlier unit stays. Dumps are in the order of page ids, so the ids of two units
overlap only if something is wrong; only the ids of such units are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nerbert import files, parts
from nerbert.parts import Report, report_path
from pipeline.dump.site import ARTICLE
from pipeline.dump.units import Unit
from pipeline.stages.documents import SCHEMA, Row
from pipeline.stages.documents_report import DocumentsReport, count_content
from pipeline.stages.part_pass import PartPass, Pass

Ids = npt.NDArray[np.int64]

_SMALL_IDS = 1 << 32
"""Ids below this are kept as bits: 12 MB for the largest wiki."""


def overlapping(reports: Sequence[DocumentsReport]) -> list[int]:
    """Indices of the units that may share a page id with another one, by first and last id."""
    ranges = sorted(
        (report.first_page, report.last_page, report.unit)
        for report in reports
        if report.first_page is not None and report.last_page is not None
    )
    found: set[int] = set()
    widest: tuple[int, int] | None = None  # last id so far, and its unit
    for first, last, unit in ranges:
        if widest is not None and first <= widest[0]:
            found |= {unit, widest[1]}
        if widest is None or last > widest[0]:
            widest = (last, unit)
    return sorted(found)


class _Seen:
    """A set of page ids."""

    def __init__(self, last: int) -> None:
        self._bits = np.zeros(min(last, _SMALL_IDS) // 8 + 1, np.uint8)
        self._large: set[int] = set()

    def add(self, ids: Ids) -> Ids:
        """Adds distinct ids; returns those that were there already."""
        small = ids[ids < _SMALL_IDS]
        bits = np.uint8(1) << (small % 8).astype(np.uint8)
        there = (self._bits[small // 8] & bits) != 0
        np.bitwise_or.at(self._bits, small // 8, bits)
        large = set(ids[ids >= _SMALL_IDS].tolist())
        again = sorted(large & self._large)
        self._large |= large
        return np.append(small[there], np.array(again, np.int64))


def duplicates(paths: Mapping[int, str], reports: Sequence[DocumentsReport]) -> dict[int, Ids]:
    """Page ids of each unit that an earlier unit has.

    Args:
        paths: unit -> path of its part of documents.
        reports: reports of all units.
    """
    last = max((report.last_page or 0 for report in reports), default=0)
    seen, found = _Seen(last), {}
    for unit in overlapping(reports):
        again = seen.add(_ids(paths[unit]))
        if len(again):
            found[unit] = again
    return found


def _ids(part: str) -> Ids:
    batches = parts.read_batches(part, ["page_id"], rows=65_536)
    columns = [batch.column("page_id").to_numpy() for batch in batches]
    return np.concatenate(columns) if columns else np.zeros(0, np.int64)


class DropDuplicates(Pass):
    """Writes the parts that have duplicates again, without them.

    The report of a part is emptied first, and written last, as when the part was made: after a
    kill the part is made again.
    """

    name = "duplicate pages"

    def __init__(self, write: PartPass) -> None:
        """Takes the pass that writes the documents."""
        self._write = write

    def elements(self) -> Sequence[Unit]:
        return self._write.elements()

    def run(self, element: Unit, known: Mapping[int, Ids]) -> DocumentsReport:
        part = self._write.part(element)
        report: Report | None = parts.finished(part, DocumentsReport)
        if report is None:  # a killed attempt of this pass emptied it
            self._write.open()
            report = self._write.run(element, None)
        assert isinstance(report, DocumentsReport)
        if element.index not in known:
            return report
        ids = known[element.index]
        dropped = [row for batch in _split(part, ids, True) for row in batch.to_pylist()]
        if not dropped:
            return report
        files.write_json(report_path(part), None)
        report = _without(report, dropped)
        # The old part is read to its end before the new one replaces it.
        with parts.writer(part, SCHEMA) as writer:
            for batch in _split(part, ids, False):
                writer.write_batch(batch)
        parts.finish(part, report)
        return report


def _split(part: str, ids: Ids, wanted: bool) -> Iterator[pa.RecordBatch]:
    """The rows of a part with these page ids, or all others."""
    for batch in parts.read_batches(part, rows=512):
        is_there = np.isin(batch.column("page_id").to_numpy(), ids)
        yield batch.filter(pa.array(is_there == wanted))


def _without(report: DocumentsReport, rows: Sequence[Row]) -> DocumentsReport:
    """The report of a part without some rows, which are counted as duplicates."""
    pages, content = Counter(report.pages), Counter(report.content)
    less: Counter[str] = Counter()
    for row in rows:
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
