"""Counts and statistics of the passes of the corpus stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.storage.parts import Report
from nerbert.text.corpus import SPLITS
from pipeline.examples.balance import CategoryCounts, Weights
from pipeline.examples.borders import Fitted
from pipeline.examples.filters import CUTS_A_TOKEN
from pipeline.examples.mentions import Bools, Ints

Counts = dict[str, int]


def _zeros() -> Counts:
    return dict.fromkeys(SPLITS, 0)


def _by_split() -> dict[str, Counter[str]]:
    return {split: Counter() for split in SPLITS}


@dataclass
class SelectionReport(Report):
    """Counts of the selection of examples, for a part of documents or for all parts.

    Attributes:
        source: name of the part.
        sentences_in: number of sentences of the documents.
        mentions_in: number of mentions in these sentences.
        mentions_extended: number of mentions that were extended to whole tokens.
        mention_sources: number of these mentions by how they were found.
        anchors_outside: number of anchors outside of sentences.
        dropped_sentences: number of dropped sentences, by reason.
        dropped_mentions: number of dropped mentions, alone or with their sentence, by reason.
        sentences: number of examples, by split.
        tokens: number of tokens in examples, by split.
        mentions: number of mentions in examples, by split.
        by_category: number of mentions of each category, by split.
        with_category: number of examples that hold each category, by split.
        contamination: (example id, kind, number of the file, sentence of the file) of each hit.
    """

    source: str = ""
    sentences_in: int = 0
    mentions_in: int = 0
    mentions_extended: int = 0
    mention_sources: Counter[str] = field(default_factory=Counter)
    anchors_outside: int = 0
    dropped_sentences: Counter[str] = field(default_factory=Counter)
    dropped_mentions: Counter[str] = field(default_factory=Counter)
    sentences: Counts = field(default_factory=_zeros)
    tokens: Counts = field(default_factory=_zeros)
    mentions: Counts = field(default_factory=_zeros)
    by_category: dict[str, Counter[str]] = field(default_factory=_by_split)
    with_category: dict[str, Counter[str]] = field(default_factory=_by_split)
    contamination: list[Sequence[Any]] = field(default_factory=list)

    def without(self, rows: Mapping[str, pa.Table], reason: str) -> SelectionReport:
        """The counts when some examples, given by split, are dropped."""
        remaining = SelectionReport.sum([self])
        remaining.source = self.source
        for split, dropped in rows.items():
            mentions = remaining.count(split, dropped, tuple(self.by_category[split]), -1)
            remaining.dropped_sentences[reason] += len(dropped)
            remaining.dropped_mentions[reason] += mentions
        return remaining

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

    def leave_out_mentions(self, fit: Fitted) -> None:
        """Counts the mentions that cut a token, and those that were extended to one."""
        self.mentions_extended += fit.extended
        self.mentions_in += len(fit.rows)
        if len(fit.rows):
            self.dropped_mentions[CUTS_A_TOKEN] += len(fit.rows)

    def leave_out(self, documents: pa.RecordBatch) -> None:
        """Counts the sentences and anchors of documents that took too long."""
        sizes = pc.list_value_length(documents.column("sentence_starts")).fill_null(0)
        anchors = pc.list_value_length(documents.column("anchors")).fill_null(0)
        self.sentences_in += pc.sum(sizes).as_py()
        self.mentions_in += pc.sum(anchors).as_py()
        self.dropped_sentences["too-slow"] += pc.sum(sizes).as_py()
        self.dropped_mentions["too-slow"] += pc.sum(anchors).as_py()

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


@dataclass
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

    source: str = ""
    examples: int = 0
    tokens: int = 0
    left_out: int = 0
    most_copies: int = 0
    mentions: Counts = field(default_factory=dict)

    @classmethod
    def sum(cls, reports: Iterable[BalanceReport]) -> BalanceReport:
        """Sums of the counts of all parts; `most_copies` is their maximum."""
        reports = list(reports)
        most = max((report.most_copies for report in reports), default=0)
        return replace(super().sum(reports), most_copies=most)


@dataclass(frozen=True)
class Statistics:
    """Statistics that the passes of the corpus stage gather, one after the other.

    Attributes:
        categories: categories with enough entities; ENTITY comes first.
        entities: number of distinct linked entities of every category, also of dropped ones.
        mentions: number of mentions of every category, also of dropped ones.
        supported: number of mentions of every category whose page several sources know.
        anchors: number of anchors, by kind of the page that they lead to.
        filling: how well the words around held-out links judge titles; see `train_contexts`.
        with_category: number of mentions of each category in sentences with a category.
        frequent: the most frequent categories.
        selected: counts of the selection of examples.
        boilerplate: rows of `examples/digests/` of each part whose sentence an earlier page has.
        weights: how often train examples are repeated.
    """

    categories: list[str]
    entities: Counts
    mentions: Counts
    supported: Counts
    anchors: Counts
    filling: Counts = field(default_factory=dict)
    with_category: Counts = field(default_factory=dict)
    frequent: list[str] = field(default_factory=list)
    selected: SelectionReport = field(default_factory=SelectionReport)
    boilerplate: Mapping[str, Ints] = field(default_factory=dict)
    weights: Weights = field(default_factory=lambda: Weights("none", ()))

    def support(self, category: str) -> float:
        """Share of the mentions of a category whose page several sources know; 1 for none."""
        mentions = self.mentions.get(category, 0)
        return self.supported.get(category, 0) / mentions if mentions else 1.0
