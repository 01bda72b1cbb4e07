"""Filters of sentences. Each dropped sentence has one reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nerbert.digests import uniform
from pipeline.examples.mentions import ENTITY_INDEX, Bools, Ints, Sentences

REASONS = (
    "no-category",
    "frequent",
    "disambiguation-page",
    "other-language",
    "markup",
    "hole",
    "repeated",
    "too-short",
    "too-long",
    "contaminated",
    "boilerplate",
)
"""Reasons for dropping a sentence, in the order of the filters."""


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


def frequent_drops(
    sentences: Sentences,
    labels: Ints,
    is_kept: Bools,
    frequent: Bools,
    steps: Sequence[tuple[int, float]],
    seed: int,
    page_ids: Ints,
) -> Bools:
    """Whether each sentence is dropped by the rule for frequent categories, shape (sentences,).

    If all mentions of a sentence have frequent categories, it is dropped with a probability that
    grows with its number of ENTITY mentions.

    Source: Liu et al. 2021, section 2, third filter.

    Args:
        sentences: sentences of a batch.
        labels: category index of each anchor, shape (anchors,).
        is_kept: whether each sentence is still kept, shape (sentences,).
        frequent: whether each category is among the most frequent, shape (categories,).
        steps: pairs of a number of ENTITY mentions and a probability, ascending.
        seed: seed of the draws.
        page_ids: id of the page of each sentence, shape (sentences,).
    """
    rare = sentences.count(~frequent[labels])
    entity_mentions = sentences.count(labels == ENTITY_INDEX)
    least = min((count for count, _ in steps), default=0)
    candidates = is_kept & (rare == 0) & (entity_mentions >= least) if steps else is_kept & False
    drops = np.zeros(len(sentences), bool)
    for index in np.flatnonzero(candidates):
        probability = drop_probability(int(entity_mentions[index]), steps)
        key = f"{page_ids[index]}:{sentences.numbers[index]}"
        drops[index] = uniform(seed, "drop-entity", key) < probability
    return drops
