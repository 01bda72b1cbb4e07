"""What a tagger finds in a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entity:
    """A mention in a text.

    Attributes:
        start: first character; `end` the one behind the last.
        type: its entity type.
        score: mean probability of the tags of its words.
        text: what stands there.
    """

    start: int
    end: int
    type: str
    score: float
    text: str
