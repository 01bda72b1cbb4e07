"""Which sentences stay, and why the others go: one reason each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import xxhash

from ontology.conll import read_columns
from pipeline.labelling import ENTITY_INDEX, Bools, Ints, Sentences
from pipeline.stable_hash import uniform
from pipeline.tokens import UNSPACED

NGRAM = 13
"""Tokens of n-grams that betray contamination. Source: Brown et al. 2020 (GPT-3), app. C."""

REASONS = (
    "no-category", "frequent", "disambiguation-page", "hole", "repeated", "too-short", "too-long",
    "contaminated",
)  # fmt: skip
"""Why sentences are dropped, in the order in which the filters look."""

_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]")


def with_category(sentences: Sentences, labels: Ints) -> Bools:
    """Sentences with a mention that has a category, shape (sentences,)."""
    return sentences.count(labels != ENTITY_INDEX) > 0


def mention_counts(sentences: Sentences, labels: Ints, kept: Bools, size: int) -> Ints:
    """Mentions of each category in the sentences marked true, shape (size,)."""
    return np.bincount(labels[kept[sentences.anchor_sentences]], minlength=size)


def drop_probability(entity_mentions: int, steps: Sequence[tuple[int, float]]) -> float:
    """Probability that the frequent rule drops a sentence with that many ENTITY mentions.

    >>> drop_probability(9, [(3, 0.3), (4, 0.5), (5, 0.7)])
    0.7
    """
    return next((p for count, p in reversed(steps) if entity_mentions >= count), 0.0)


def frequent_drops(
    sentences: Sentences, labels: Ints, kept: Bools, frequent: Bools,
    steps: Sequence[tuple[int, float]], seed: int, page_ids: Ints,
) -> Bools:  # fmt: skip
    """Sentences that the frequent rule drops, shape (sentences,).

    A sentence all of whose mentions are in `frequent` categories goes with a probability that grows
    with its number of ENTITY mentions.

    Source: Liu et al. 2021, section 2, third filter.

    Args:
        sentences: of a batch.
        labels: category index of each anchor.
        kept: sentences that are still there.
        frequent: whether each category is among the most frequent, shape (categories,).
        steps: pairs of a number of ENTITY mentions and a probability, ascending.
        seed: of the draws.
        page_ids: page of each sentence, shape (sentences,).
    """
    rare = sentences.count(~frequent[labels])
    entity_mentions = sentences.count(labels == ENTITY_INDEX)
    least = min((count for count, _ in steps), default=0)
    candidates = kept & (rare == 0) & (entity_mentions >= least) if steps else kept & False
    drops = np.zeros(len(sentences), bool)
    for index in np.flatnonzero(candidates):
        probability = drop_probability(int(entity_mentions[index]), steps)
        key = f"{page_ids[index]}:{sentences.numbers[index]}"
        drops[index] = uniform(seed, "drop-entity", key) < probability
    return drops


def normal_words(text: str) -> list[str]:
    """Lower-case words and punctuation marks, the same for every tokenisation of a text."""
    text = text.replace("``", '"').replace("''", '"').casefold()
    return _WORD.findall(text)


def _key(words: Iterable[str]) -> int:
    return xxhash.xxh3_64_intdigest(" ".join(words).encode("utf-8", "surrogatepass"))


class Contamination:
    """Finds sentences that an evaluation set holds, whole or by a shared n-gram of 13 tokens."""

    def __init__(self, files: Sequence[str]) -> None:
        """Reads the evaluation sets (CoNLL-like columns).

        Raises:
            ValueError: a file is no such set.
            OSError: a file cannot be read.
        """
        self.files = list(files)
        self.sizes: list[int] = []
        self._whole: dict[int, tuple[int, int]] = {}
        self._ngrams: dict[int, tuple[int, int]] = {}
        for file, path in enumerate(files):
            number = -1
            for number, sentence in enumerate(read_columns(path)):
                words = normal_words(" ".join(sentence.tokens))
                self._whole.setdefault(_key(words), (file, number))
                for start in range(len(words) - NGRAM + 1):
                    self._ngrams.setdefault(_key(words[start : start + NGRAM]), (file, number))
            self.sizes.append(number + 1)

    def find(self, text: str) -> tuple[str, int, int] | None:
        """How a sentence is in a set ("equal" or "13-gram"), index of the file, its sentence."""
        if not self._whole:
            return None
        words = normal_words(text)
        if (hit := self._whole.get(_key(words))) is not None:
            return "equal", *hit
        for start in range(len(words) - NGRAM + 1):
            if (hit := self._ngrams.get(_key(words[start : start + NGRAM]))) is not None:
                return "13-gram", *hit
        return None


class Drops:
    """Counts sentences that go, and the mentions in them, by reason."""

    def __init__(self) -> None:
        self.sentences: Counter[str] = Counter()
        self.mentions: Counter[str] = Counter()

    def add(self, reason: str, dropped: Bools, mentions: Ints) -> None:
        """Counts the sentences marked true, with the mentions that each holds."""
        if dropped.any():
            self.sentences[reason] += int(dropped.sum())
            self.mentions[reason] += int(mentions[dropped].sum())

    def add_one(self, reason: str, mentions: int) -> None:
        """Counts one sentence."""
        self.sentences[reason] += 1
        self.mentions[reason] += mentions
