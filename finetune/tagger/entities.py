"""The entities that a tagger finds in a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING

from nerbert.text.tags import tags_to_spans
from nerbert.text.tokens import Span

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class Entity:
    """A mention in a text.

    Attributes:
        start: first character; of a list of tokens, first token.
        end: one after the last character, or token.
        type: entity type.
        score: mean probability of the tags of its words.
        text: text of the mention.
    """

    start: int
    end: int
    type: str
    score: float
    text: str


@dataclass(frozen=True)
class Prediction:
    """What a tagger says of a text.

    Attributes:
        words: the words, or the tokens that were given.
        spans: first character of each word, and one after its last; of tokens, their places.
        tags: tag of each word.
        scores: probability of each tag.
        entities: the mentions, in order.
        probabilities: probabilities of all tags (words, tags), in the order of `Tagger.tags`; None
            if they were not asked for.
    """

    words: list[str]
    spans: list[Span]
    tags: list[str]
    scores: list[float]
    entities: list[Entity]
    probabilities: npt.NDArray[np.float32] | None = None


def entities_of(
    spans: Sequence[Span], tags: Sequence[str], scores: Sequence[float], words: Sequence[str] | str
) -> list[Entity]:
    """The mentions of a tagged text.

    Args:
        spans: places of the words.
        tags: tag of each word.
        scores: probability of each tag.
        words: the text, or its tokens.
    """
    found = []
    for first, end, name in tags_to_spans(tags):
        start, stop = spans[first][0], spans[end - 1][1]
        text = words[start:stop] if isinstance(words, str) else " ".join(words[start:stop])
        found.append(Entity(start, stop, name, mean(scores[first:end]), text))
    return found
