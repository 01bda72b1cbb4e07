"""Category <-> IOB2 tag <-> label id, and spans <-> tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

OUTSIDE = "O"

TypedSpan = tuple[int, int, str]
"""(start, end, type), tokens, half-open."""


@dataclass(frozen=True)
class LabelSet:
    """Tags of a corpus; a tag's label id is its position: O, B-first, I-first, B-second, ..."""

    categories: tuple[str, ...]

    @cached_property
    def tags(self) -> list[str]:
        """All tags, by label id."""
        pairs = (f"{prefix}-{category}" for category in self.categories for prefix in "BI")
        return [OUTSIDE, *pairs]

    def begin(self, category_index: int) -> int:
        """Label id of the tag that opens a mention of the category."""
        return 1 + 2 * category_index

    def to_json(self) -> dict[str, list[str]]:
        """What `labels.json` holds."""
        return {"tags": self.tags, "categories": list(self.categories)}


def spans_to_tags(spans: Iterable[TypedSpan], length: int) -> list[str]:
    """Strict IOB2 tags of a sentence of `length` tokens.

    Raises:
        ValueError: a span is empty, outside the sentence, or overlaps another.
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
    """Spans of strict IOB2 tags: an I- that does not continue its own type is outside.

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
