"""The entities that a tagger finds in a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entity:
    """A mention in a text.

    Attributes:
        start: first character.
        end: one after the last character.
        type: entity type.
        score: mean probability of the tags of its words.
        text: text of the mention.
    """

    start: int
    end: int
    type: str
    score: float
    text: str
