"""Tags: label sets, spans, scores of mentions; levels of a domain corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

OUTSIDE = "O"

TypedSpan = tuple[int, int, str]
"""(start, end, type): a half-open range of tokens, and an entity type."""


@dataclass(frozen=True)
class LabelSet:
    """The tags of a corpus: O, B-first, I-first, B-second, ... The label id is the position."""

    categories: tuple[str, ...]

    @cached_property
    def tags(self) -> list[str]:
        """All tags, by label id."""
        pairs = (f"{prefix}-{category}" for category in self.categories for prefix in "BI")
        return [OUTSIDE, *pairs]

    def begin(self, category_index: int) -> int:
        """Label id of the tag that begins a mention of a category."""
        return 1 + 2 * category_index

    def to_json(self) -> dict[str, list[str]]:
        """Content of `labels.json`."""
        return {"tags": self.tags, "categories": list(self.categories)}


def spans_to_tags(spans: Iterable[TypedSpan], length: int) -> list[str]:
    """Converts spans to the strict IOB2 tags of a sentence of `length` tokens.

    Raises:
        ValueError: a span is empty, outside the sentence, or overlaps another span.
    """
    tags = [OUTSIDE] * length
    for start, end, category in spans:
        if not 0 <= start < end <= length:
            raise ValueError(f"span {start}:{end} is not within 0:{length}")
        if any(tag != OUTSIDE for tag in tags[start:end]):
            raise ValueError(f"span {start}:{end} overlaps another")
        tags[start] = f"B-{category}"
        tags[start + 1 : end] = [f"I-{category}"] * (end - start - 1)
    return tags


def tags_to_spans(tags: Sequence[str]) -> list[TypedSpan]:
    """Converts strict IOB2 tags to spans. An I- tag that does not continue its type is outside.

    Source: seqeval, scheme IOB2 in strict mode.
    """
    spans: list[TypedSpan] = []
    start, category = 0, ""
    for index, tag in enumerate([*tags, OUTSIDE]):
        prefix, _, name = tag.partition("-")
        if category and not (prefix == "I" and name == category):
            spans.append((start, index, category))
            category = ""
        if prefix == "B":
            start, category = index, name
    return spans


@dataclass(frozen=True)
class Scores:
    """Scores of mentions. A score whose denominator is 0 is 0.

    Attributes:
        gold: number of mentions in the gold tags.
        predicted: number of mentions in the predicted tags.
        right: number of mentions in both.
    """

    gold: int
    predicted: int
    right: int

    @property
    def precision(self) -> float:
        """Share of the predicted mentions that are right."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold mentions that are predicted."""
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.gold + self.predicted
        return 2 * self.right / total if total else 0.0

    def to_json(self) -> dict[str, float]:
        """JSON-ready values."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "gold": self.gold,
            "predicted": self.predicted,
            "right": self.right,
        }


Level = Literal["domain", "entity", "task", "integrated"]

LEVELS: dict[Level, tuple[str, ...]] = {
    "domain": ("domain",),
    "entity": ("entity",),
    "task": ("task",),
    "integrated": ("entity", "task", "task"),
}
"""Level of a domain corpus -> flags of the sentences that it holds. `domain` holds all sentences.

Source: Liu et al. 2021 (CrossNER), arXiv:2012.04373, section 3.1.
"""

assert tuple(LEVELS) == get_args(Level)
