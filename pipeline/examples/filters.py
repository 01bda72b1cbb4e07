"""Filters of sentences: one function each, with the reason for which it drops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nerbert.digests import uniform
from nerbert.seams import parts
from pipeline.examples.mentions import ENTITY_INDEX, Bools, Ints, Sentences
from pipeline.settings import CorpusSettings


@dataclass(frozen=True)
class Batch:
    """The sentences of a batch of documents, for the filters.

    Attributes:
        documents: columns of the documents.
        sentences: their sentences.
        labels: category index of each anchor, shape (anchors,).
        described: whether each anchor has a phrase that says what it is, shape (anchors,).
        frequent: whether each category is among the most frequent, shape (categories,).
        settings: settings of the corpus.
    """

    documents: pa.RecordBatch
    sentences: Sentences
    labels: Ints
    described: Bools
    frequent: Bools
    settings: CorpusSettings

    def of_document(self, column: str) -> Ints:
        """A column of the documents, for each sentence, shape (sentences,)."""
        values = self.documents.column(column).to_numpy(zero_copy_only=False)
        spread: Ints = values[self.sentences.documents]
        return spread


Filter = Callable[[Batch, Bools], Bools]
"""Takes a batch, and whether each sentence is still kept; says which sentences are dropped."""


def with_category(sentences: Sentences, labels: Ints) -> Bools:
    """Whether each sentence has a mention with a category, shape (sentences,)."""
    return sentences.count(labels != ENTITY_INDEX) > 0


def mention_counts(sentences: Sentences, labels: Ints, is_kept: Bools, size: int) -> Ints:
    """Number of mentions of each category in the kept sentences, shape (size,)."""
    return np.bincount(labels[is_kept[sentences.anchor_sentences]], minlength=size)


def drop_probability(entity_mentions: int, steps: Sequence[tuple[int, float]]) -> float:
    """Probability that a sentence of frequent categories is dropped, by its ENTITY mentions.

    >>> drop_probability(9, [(3, 0.3), (4, 0.5), (5, 0.7)])
    0.7
    """
    return next((p for count, p in reversed(steps) if entity_mentions >= count), 0.0)


def no_category(batch: Batch, is_kept: Bools) -> Bools:
    """Sentences without a mention that has a category.

    Of --keep-untyped, those without a mention; of --keep-described, those without a mention that
    has a category or a phrase.
    """
    if batch.settings.keep_untyped:
        return batch.sentences.count(np.ones(len(batch.labels), bool)) == 0
    counts = batch.labels != ENTITY_INDEX
    if batch.settings.keep_described:
        counts = counts | batch.described
    return batch.sentences.count(counts) == 0


def frequent(batch: Batch, is_kept: Bools) -> Bools:
    """Sentences whose mentions all have frequent categories, at random.

    The probability grows with their number of ENTITY mentions.

    Source: Liu et al. 2021, section 2, third filter.
    """
    sentences, steps = batch.sentences, batch.settings.drop_entity
    rare = sentences.count(~batch.frequent[batch.labels])
    entity_mentions = sentences.count(batch.labels == ENTITY_INDEX)
    least = min((count for count, _ in steps), default=0)
    candidates = is_kept & (rare == 0) & (entity_mentions >= least) if steps else is_kept & False
    drops = np.zeros(len(sentences), bool)
    page_ids = batch.of_document("page_id")
    for index in np.flatnonzero(candidates):
        probability = drop_probability(int(entity_mentions[index]), steps)
        key = f"{page_ids[index]}:{sentences.numbers[index]}"
        drops[index] = uniform(batch.settings.seed, "drop-entity", key) < probability
    return drops


def disambiguation_page(batch: Batch, is_kept: Bools) -> Bools:
    """Sentences of disambiguation pages."""
    return batch.of_document("is_disambiguation").astype(bool)


def other_language(batch: Batch, is_kept: Bools) -> Bools:
    """Sentences of pages in another language than the wiki's, if they are to be dropped."""
    return batch.of_document("other_language").astype(bool) & batch.settings.drop_other_languages


def markup(batch: Batch, is_kept: Bools) -> Bools:
    """Sentences of paragraphs with left-over markup."""
    return batch.sentences.markup


def hole(batch: Batch, is_kept: Bools) -> Bools:
    """Sentences in which running text is missing."""
    return batch.sentences.holes


FILTERS: dict[str, Filter] = parts("filters")
"""Drop reason -> filter, in the order in which they are called. They need no tokens."""

CUTS_A_TOKEN = "cuts-a-token"
"""Reason for which a mention is dropped, and not its sentence."""

REASONS = (
    "too-slow",
    CUTS_A_TOKEN,
    *FILTERS,
    "repeated",
    "too-short",
    "too-long",
    "contaminated",
    "boilerplate",
)
"""Reasons for dropping a sentence; each dropped sentence has one."""
