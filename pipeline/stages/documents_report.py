"""Counts of the documents of a dump: pages, what was set aside, damage to its files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nerbert import parts
from nerbert.parts import Report


@dataclass(frozen=True)
class DocumentsReport(Report):
    """Counts of a unit.

    Attributes:
        unit: index of the unit.
        pages: number of pages that were read, and of pages of each kind.
        set_aside: number of pages that were set aside, by reason.
        damage: number of damages to the file by reason, and of `bytes` that are lost.
        content: counts of the content of the documents.
        first_page: smallest id of the documents' pages; None without documents.
        last_page: largest id.
    """

    unit: int
    pages: dict[str, int]
    set_aside: dict[str, int]
    damage: dict[str, int]
    content: dict[str, int]
    first_page: int | None = None
    last_page: int | None = None


def count_content(row: Mapping[str, Any], content: Counter[str]) -> None:
    """Counts the content of a document."""
    content["sentences"] += len(row["sentence_starts"])
    content["holes"] += sum(row["sentence_holes"])
    content["anchors"] += len(row["anchors"])
    content["characters"] += len(row["text"])
    content["disambiguation_pages"] += row["is_disambiguation"]
    content["other_language_pages"] += row["other_language"]


def lost_pages(damage: Mapping[str, int], read: int, size: int) -> int:
    """Estimate of the number of pages in the bytes that could not be read; at least one each time.

    Nobody knows how many pages a truncated file lacks; they are not counted.

    Args:
        damage: numbers of damages by reason, and of lost bytes.
        read: number of pages that were read.
        size: bytes of all files.
    """
    lost = damage.get("bytes", 0)
    return max(damage.get("corrupt", 0), math.ceil(read * lost / max(1, size - lost)))


def total(reports: Sequence[DocumentsReport]) -> dict[str, dict[str, int]]:
    """Sums of the counts of all units."""
    summed: dict[str, dict[str, int]] = {}
    for group in ("pages", "set_aside", "damage", "content"):
        counts: dict[str, int] = {}
        for report in reports:
            parts.add_counts(counts, getattr(report, group))
        summed[group] = dict(sorted(counts.items()))
    return summed
