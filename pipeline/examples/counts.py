"""Counts and statistics of the passes of the corpus stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.storage.parts import Report, add_counts
from nerbert.text.corpus import SPLITS
from pipeline.examples.balance import CategoryCounts, Weights
from pipeline.examples.filters import REASONS
from pipeline.examples.mentions import Bools, Ints

Counts = dict[str, int]


@dataclass(frozen=True)
class SelectionReport(Report):
    """Counts of the selection of examples, for a part of documents or for all parts.

    Attributes:
        source: name of the part.
        sentences_in: number of sentences of the documents.
        mentions_in: number of mentions in these sentences.
        mention_sources: number of these mentions by how they were found.
        anchors_outside: number of anchors outside of sentences.
        dropped_sentences: number of dropped sentences, by reason.
        dropped_mentions: number of mentions in dropped sentences, by reason.
        sentences: number of examples, by split.
        tokens: number of tokens in examples, by split.
        mentions: number of mentions in examples, by split.
        by_category: number of mentions of each category, by split.
        with_category: number of examples that hold each category, by split.
        contamination: (example id, kind, number of the file, sentence of the file) of each hit.
    """

    source: str
    sentences_in: int
    mentions_in: int
    mention_sources: Counts
    anchors_outside: int
    dropped_sentences: Counts
    dropped_mentions: Counts
    sentences: Counts
    tokens: Counts
    mentions: Counts
    by_category: dict[str, Counts]
    with_category: dict[str, Counts]
    contamination: Sequence[Sequence[Any]]

    @classmethod
    def sum(cls, reports: Sequence[SelectionReport]) -> SelectionReport:
        """Sums of the counts of all parts, in their order."""
        total = Selection.of(reports)
        total.dropped_sentences = _by_reason(total.dropped_sentences)
        total.dropped_mentions = _by_reason(total.dropped_mentions)
        return total.report("")

    def without(self, rows: Mapping[str, pa.Table], reason: str) -> SelectionReport:
        """The counts when some examples, given by split, are dropped."""
        rest = Selection.of([self])
        for split, dropped in rows.items():
            mentions = rest.count(split, dropped, tuple(self.by_category[split]), -1)
            rest.dropped_sentences[reason] += len(dropped)
            rest.dropped_mentions[reason] += mentions
        return rest.report(self.source)


def _by_reason(counts: Mapping[str, int]) -> Counter[str]:
    """Counts in the order of the filters."""
    return Counter({reason: counts[reason] for reason in REASONS if reason in counts})


def _by_split() -> dict[str, Counter[str]]:
    return {split: Counter() for split in SPLITS}


@dataclass
class Selection:
    """Running counts of the selection of examples; see `SelectionReport`."""

    seen_sentences: int = 0
    seen_mentions: int = 0
    mention_sources: Counter[str] = field(default_factory=Counter)
    outside: int = 0
    dropped_sentences: Counter[str] = field(default_factory=Counter)
    dropped_mentions: Counter[str] = field(default_factory=Counter)
    sentences: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    mentions: Counter[str] = field(default_factory=Counter)
    by_category: dict[str, Counter[str]] = field(default_factory=_by_split)
    with_category: dict[str, Counter[str]] = field(default_factory=_by_split)
    contamination: list[tuple[Any, ...]] = field(default_factory=list)

    @classmethod
    def of(cls, reports: Sequence[SelectionReport]) -> Selection:
        """The counts of some reports."""
        total = cls()
        for report in reports:
            total.seen_sentences += report.sentences_in
            total.seen_mentions += report.mentions_in
            total.mention_sources.update(report.mention_sources)
            total.outside += report.anchors_outside
            total.dropped_sentences.update(report.dropped_sentences)
            total.dropped_mentions.update(report.dropped_mentions)
            total.sentences.update(report.sentences)
            total.tokens.update(report.tokens)
            total.mentions.update(report.mentions)
            for split in SPLITS:
                add_counts(total.by_category[split], report.by_category[split])
                add_counts(total.with_category[split], report.with_category[split])
            total.contamination.extend(map(tuple, report.contamination))
        return total

    def count(
        self, split: str, rows: pa.RecordBatch | pa.Table, names: Sequence[str], times: int = 1
    ) -> int:
        """Adds the counts of some examples; returns their number of mentions.

        Args:
            split: split of the examples.
            rows: columns of the examples.
            names: names of the categories, by index.
            times: how often they are counted; -1 takes them away.
        """
        tags = rows.column("ner_tags")
        tags = tags.combine_chunks() if isinstance(tags, pa.ChunkedArray) else tags
        counts = CategoryCounts.of_tags(tags, len(names))
        mentions = times * np.bincount(counts.categories, counts.mentions, len(names)).astype(int)
        holding = times * np.bincount(counts.categories, minlength=len(names))
        self.by_category[split].update(dict(zip(names, mentions.tolist(), strict=True)))
        self.with_category[split].update(dict(zip(names, holding.tolist(), strict=True)))
        self.sentences[split] += times * len(rows)
        self.tokens[split] += times * (
            pc.sum(pc.list_value_length(rows.column("tokens"))).as_py() or 0
        )
        self.mentions[split] += int(mentions.sum())
        return abs(int(mentions.sum()))

    def drop(self, reason: str, dropped: Bools, mentions: Ints) -> None:
        """Counts dropped sentences.

        Args:
            reason: why they are dropped.
            dropped: whether each sentence is dropped, shape (sentences,).
            mentions: number of mentions of each sentence, shape (sentences,).
        """
        if dropped.any():
            self.dropped_sentences[reason] += int(dropped.sum())
            self.dropped_mentions[reason] += int(mentions[dropped].sum())

    def drop_one(self, reason: str, mentions: int) -> None:
        """Counts one dropped sentence."""
        self.dropped_sentences[reason] += 1
        self.dropped_mentions[reason] += mentions

    def report(self, source: str) -> SelectionReport:
        """The counts so far.

        Args:
            source: name of the part.
        """
        return SelectionReport(
            source=source,
            sentences_in=self.seen_sentences,
            mentions_in=self.seen_mentions,
            mention_sources=dict(self.mention_sources),
            anchors_outside=self.outside,
            dropped_sentences=dict(self.dropped_sentences),
            dropped_mentions=dict(self.dropped_mentions),
            sentences={split: self.sentences[split] for split in SPLITS},
            tokens={split: self.tokens[split] for split in SPLITS},
            mentions={split: self.mentions[split] for split in SPLITS},
            by_category={split: dict(counts) for split, counts in self.by_category.items()},
            with_category={split: dict(counts) for split, counts in self.with_category.items()},
            contamination=self.contamination,
        )


@dataclass(frozen=True)
class BalanceReport(Report):
    """Counts of the balanced train examples, for a part or for all parts.

    Attributes:
        source: name of the part.
        examples: number of examples, with their copies.
        tokens: number of tokens, with copies.
        left_out: number of examples without any copy.
        most_copies: largest number of copies of an example.
        mentions: number of mentions of each category, with copies.
    """

    source: str
    examples: int
    tokens: int
    left_out: int
    most_copies: int
    mentions: Counts

    @classmethod
    def sum(cls, reports: Sequence[BalanceReport]) -> BalanceReport:
        """Sums of the counts of all parts; `most_copies` is their maximum."""
        mentions: Counts = {}
        for report in reports:
            add_counts(mentions, report.mentions)
        return cls(
            "",
            sum(report.examples for report in reports),
            sum(report.tokens for report in reports),
            sum(report.left_out for report in reports),
            max((report.most_copies for report in reports), default=0),
            mentions,
        )


@dataclass(frozen=True)
class Statistics:
    """Statistics that the passes of the corpus stage gather, one after the other.

    Attributes:
        kept: categories with enough entities; ENTITY comes first.
        entities: number of distinct linked entities of every category, also of dropped ones.
        mentions: number of mentions of every category, also of dropped ones.
        anchors: number of anchors, by kind of the page that they lead to.
        with_category: number of mentions of each category in sentences with a category.
        frequent: the most frequent categories.
        selected: counts of the selection of examples.
        boilerplate: rows of `examples/digests/` of each part whose sentence an earlier page has.
        weights: how often train examples are repeated.
    """

    kept: list[str]
    entities: Counts
    mentions: Counts
    anchors: Counts
    with_category: Counts = field(default_factory=dict)
    frequent: list[str] = field(default_factory=list)
    selected: SelectionReport = field(default_factory=lambda: SelectionReport.sum([]))
    boilerplate: Mapping[str, Ints] = field(default_factory=dict)
    weights: Weights = field(default_factory=lambda: Weights("none", ()))
