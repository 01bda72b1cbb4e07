"""Counts of the documents of a dump: pages, what was set aside, damage to its files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median
from typing import Any

from nerbert.storage import parts
from nerbert.storage.parts import Report
from pipeline.dump.units import Unit

_FEW_STREAMS = 3
_ONE_STREAM = 2.0
"""A hole that seems to be shorter than so many streams is one stream."""


@dataclass
class DocumentsReport(Report):
    """Counts of a unit.

    Attributes:
        unit: index of the unit.
        pages: number of pages that were read, and of pages of each kind.
        set_aside: number of pages that were set aside, by reason.
        damage: number of damages to the file by reason, and of `bytes` that are lost.
        content: counts of the content of the documents.
        first_page: smallest id of the pages that were read; None without any.
        last_page: largest id.
        superseded: number of documents of which the unit has a newer revision, too.
        streams: number of intact streams by their number of pages; streams without any are left
            out.
        holes: what could not be read: lost `bytes` of the file, pages of the damaged stream that
            were read `before`, and the ids of the pages around it, None at an end of the unit.
        taken_over: number of documents that an earlier run had, too.
    """

    unit: int
    pages: dict[str, int]
    set_aside: dict[str, int]
    damage: dict[str, int]
    content: dict[str, int]
    first_page: int | None = None
    last_page: int | None = None
    superseded: int = 0
    streams: dict[str, int] = field(default_factory=dict)
    holes: list[dict[str, int | None]] = field(default_factory=list)
    taken_over: int = 0


def count_content(row: Mapping[str, Any], content: Counter[str]) -> None:
    """Counts the content of a document."""
    content["sentences"] += len(row["sentence_starts"])
    content["holes"] += sum(row["sentence_holes"])
    content["anchors"] += len(row["anchors"])
    content["characters"] += len(row["text"])
    content["disambiguation_pages"] += row["is_disambiguation"]
    content["other_language_pages"] += row["other_language"]


def lost_pages(units: Sequence[Unit], reports: Sequence[DocumentsReport]) -> int:
    """Estimate of the number of pages in the bytes that could not be read; at least one each time.

    Nobody knows how many pages a truncated file lacks; they are not counted.

    Args:
        units: the units, in the order of their index.
        reports: their reports, in the same order.
    """
    lost = 0
    for _, of_file in groupby(zip(units, reports, strict=True), key=lambda pair: pair[0].path):
        own_units, file_reports = zip(*of_file, strict=True)
        if any(report.holes for report in file_reports):
            size = own_units[-1].end
            lost += sum(math.ceil(max(1, pages)) for pages in _lost_of_file(file_reports, size))
    return lost


def _lost_of_file(reports: Sequence[DocumentsReport], size: int) -> list[float]:
    """Estimates of the number of pages in each hole of a file.

    The streams of a multistream dump have equal numbers of pages. How many streams a hole took is
    told by its bytes, and by the ids of the pages around it. Of other files only the bytes are
    known.
    """
    read = sum(report.pages.get("read", 0) for report in reports)
    read_bytes = max(1, size - sum(report.damage.get("bytes", 0) for report in reports))
    sizes = [
        int(n) for report in reports for n, times in report.streams.items() for _ in range(times)
    ]
    if len(sizes) < _FEW_STREAMS:
        return [read * (hole["bytes"] or 0) / read_bytes for r in reports for hole in r.holes]
    per_stream = median(sizes)
    estimates = []
    for number, report in enumerate(reports):
        for hole in report.holes:
            before = hole["before"] or 0
            by_bytes = (hole["bytes"] or 0) * len(sizes) / read_bytes
            pages = _pages_between(reports, number, hole)
            by_ids = by_bytes if pages is None else (pages + before) / per_stream
            streams = 1 if min(by_bytes, by_ids) < _ONE_STREAM else round(by_ids)
            estimates.append(streams * per_stream - before)
    return estimates


def _pages_between(
    reports: Sequence[DocumentsReport], number: int, hole: Mapping[str, int | None]
) -> float | None:
    """Number of pages in a hole, by the ids around it and the share of ids that are pages nearby.

    Args:
        reports: reports of the units of a file.
        number: number of the unit with the hole.
        hole: the hole.
    """
    before = [r.last_page for r in reports[:number] if r.last_page is not None]
    after = [r.first_page for r in reports[number + 1 :] if r.first_page is not None]
    first, last = hole["previous"], hole["next"]
    first = before[-1] if first is None and before else first
    last = after[0] if last is None and after else last
    near = [r for r in reports[max(0, number - 1) : number + 2] if r.first_page is not None]
    ids = sum((r.last_page or 0) - (r.first_page or 0) + 1 for r in near)
    if first is None or last is None or not ids:
        return None
    inside = [h for r in near for h in r.holes if h["previous"] and h["next"]]
    missing = sum((h["next"] or 0) - (h["previous"] or 0) - 1 for h in inside)
    pages = sum(r.pages["read"] for r in near)
    return max(0, last - first - 1) * pages / max(1, ids - missing)


def duplicate_files(units: Sequence[Unit], reports: Sequence[DocumentsReport]) -> dict[str, int]:
    """Number of pages of each file that are also given in another place, by the file's name."""
    counts: Counter[str] = Counter()
    for unit, report in zip(units, reports, strict=True):
        counts[unit.path.name] += report.pages.get("duplicate", 0)
    return {name: count for name, count in counts.items() if count}


def total(reports: Sequence[DocumentsReport]) -> dict[str, dict[str, int]]:
    """Sums of the counts of all units."""
    summed: dict[str, dict[str, int]] = {}
    for group in ("pages", "set_aside", "damage", "content"):
        counts: dict[str, int] = {}
        for report in reports:
            parts.add(counts, getattr(report, group))
        summed[group] = dict(sorted(counts.items()))
    return summed
