"""Counts of a domain corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nerbert.storage.parts import Report
from nerbert.text.levels import LEVELS

Counts = dict[str, int]

_COUNTERS = ("pages", "by_depth", "sentences", "levels", "types", "coverage")


@dataclass(frozen=True)
class DomainReport(Report):
    """Counts of a part of documents, or of all parts.

    Attributes:
        source: name of the part.
        pages: number of pages that were taken, and dropped by reason.
        by_depth: number of taken pages, by root and depth.
        sentences: number of sentences that were taken, and dropped by reason.
        levels: number of sentences and tokens of each level that is a column.
        types: number of mentions of each type.
        coverage: number of hyperlinks, of those with a class, and of names without link.
        contamination: (page:sentence, kind, number of the file, sentence of the file) of each hit.
    """

    source: str
    pages: Counts
    by_depth: Counts
    sentences: Counts
    levels: Counts
    types: Counts
    coverage: Counts
    contamination: Sequence[Sequence[Any]]


@dataclass
class DomainCounts:
    """Running counts of pages and sentences; see `DomainReport`."""

    pages: Counter[str] = field(default_factory=Counter)
    by_depth: Counter[str] = field(default_factory=Counter)
    sentences: Counter[str] = field(default_factory=Counter)
    levels: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    coverage: Counter[str] = field(default_factory=Counter)
    contamination: list[tuple[Any, ...]] = field(default_factory=list)

    def report(self, source: str) -> DomainReport:
        """The counts so far.

        Args:
            source: name of the part.
        """
        counters = {name: dict(sorted(getattr(self, name).items())) for name in _COUNTERS}
        return DomainReport(source=source, **counters, contamination=self.contamination)

    @classmethod
    def sum(cls, reports: Sequence[DomainReport]) -> DomainReport:
        """Sums of the counts of all parts."""
        total = cls()
        for report in reports:
            for name in _COUNTERS:
                getattr(total, name).update(getattr(report, name))
            total.contamination.extend(map(tuple, report.contamination))
        return total.report("")


@dataclass(frozen=True)
class LevelSize:
    """Number of sentences and tokens of a level, and its share of the domain's tokens."""

    sentences: int
    tokens: int
    share: float


def level_sizes(counts: Counts) -> dict[str, LevelSize]:
    """Size of each level, from `DomainReport.levels`."""
    sizes: dict[str, LevelSize] = {}
    for level, columns in LEVELS.items():
        sentences, tokens = (
            sum(counts.get(f"{column} {what}", 0) for column in columns)
            for what in ("sentences", "tokens")
        )
        share = tokens / counts["domain tokens"] if counts.get("domain tokens") else 0.0
        sizes[level] = LevelSize(sentences, tokens, round(share, 4))
    return sizes
