"""Entities in texts, and texts with their entities in colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from html import escape
from itertools import accumulate
from statistics import mean
from typing import TYPE_CHECKING, Any

from finetune.scoring.calibration import AS_THEY_ARE, Calibration
from nerbert.text.columns import Sentence
from nerbert.text.tags import tags_to_spans
from nerbert.text.tokens import Span

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Text = str | Sequence[str]
"""A text, or its tokens."""


@dataclass(frozen=True)
class Entity:
    """A mention in a text.

    Attributes:
        start: first character; of a list of tokens, first token.
        end: one after the last character, or token.
        type: entity type.
        score: probability that it is right, if the tagger is calibrated; else the mean probability
            of the tags of its words.
        text: text of the mention.
    """

    start: int
    end: int
    type: str
    score: float
    text: str


class Entities(list[Entity]):
    """The mentions in a text, in order: a list, which a notebook shows as the text in colours."""

    def __init__(self, entities: Iterable[Entity], text: Text) -> None:
        """Takes the mentions, and the text or its tokens."""
        super().__init__(entities)
        self.text = text

    def to_pandas(self) -> Any:
        """A data frame with a row for each mention."""
        import pandas as pd  # type: ignore[import-untyped]  # it takes a second

        columns = [field.name for field in fields(Entity)]
        return pd.DataFrame([asdict(entity) for entity in self], columns=columns)

    def _repr_html_(self) -> str:
        return str(show(self))


@dataclass(frozen=True)
class Prediction:
    """The words, tags and mentions that a tagger has found in a text.

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
    entities: Entities
    probabilities: npt.NDArray[np.float32] | None = None

    def at_least(self, min_score: float) -> Prediction:
        """Without the mentions of smaller scores; their words are O."""
        if all(entity.score >= min_score for entity in self.entities):
            return self
        tags = list(self.tags)
        for (first, end, _), entity in zip(tags_to_spans(tags), self.entities, strict=True):
            if entity.score < min_score:
                tags[first:end] = ["O"] * (end - first)
        entities = [entity for entity in self.entities if entity.score >= min_score]
        return replace(self, tags=tags, entities=Entities(entities, self.entities.text))


def entities_of(
    spans: Sequence[Span],
    tags: Sequence[str],
    scores: Sequence[float],
    words: Sequence[str] | str,
    calibration: Calibration = AS_THEY_ARE,
) -> Entities:
    """The mentions of a tagged text.

    Args:
        spans: places of the words.
        tags: tag of each word.
        scores: probability of each tag.
        words: the text, or its tokens.
        calibration: makes the mean score of a mention's words its score.
    """
    entities = []
    for first, end, name in tags_to_spans(tags):
        start, stop = spans[first][0], spans[end - 1][1]
        text = words[start:stop] if isinstance(words, str) else " ".join(words[start:stop])
        entities.append(Entity(start, stop, name, calibration(mean(scores[first:end])), text))
    return Entities(entities, words)


class Shown(str):
    """HTML that a notebook shows; elsewhere the text, with its types behind the entities."""

    plain: str

    def __new__(cls, html: str, plain: str) -> Shown:
        """Takes the HTML, and the text that a plain Python shows instead."""
        self = super().__new__(cls, html)
        self.plain = plain
        return self

    def __repr__(self) -> str:
        return self.plain

    def _repr_html_(self) -> str:
        return str.__str__(self)


def show(texts: Entities | Sentence | Iterable[Entities | Sentence]) -> Shown:
    """Texts with their entities in colours, for a notebook; `str()` of it is the HTML.

        show(tagger.predict(["Dante was born in Florence.", "Bern is old."]))
        show(islice(corpus.sentences("train"), 20))

    Args:
        texts: what `Tagger.predict` returns, or labelled sentences.
    """
    palette = Palette()
    all_texts = [texts] if isinstance(texts, Entities | Sentence) else texts
    labelled = [_in_characters(text) for text in all_texts]
    paragraphs = "".join(paragraph(*text, palette) for text in labelled)
    plain = "\n".join("".join(bracketed(*text)) for text in labelled)
    return Shown(f"<style>{MARKS}</style>{paragraphs}", plain)


def bracketed(
    text: str,
    entities: Iterable[Entity],
    mark: Callable[[Entity], str] = "[{0.text} {0.type}]".format,
) -> Iterator[str]:
    """The pieces of a text with its types: [Dante Writer] was born in [Florence City]."""
    end = 0
    for entity in entities:
        yield text[end : entity.start]
        yield mark(entity)
        end = entity.end
    yield text[end:]


def _in_characters(labelled: Entities | Sentence) -> tuple[str, list[Entity]]:
    """A text, and its entities by characters."""
    if isinstance(labelled, Sentence):
        text, spans = joined(labelled.tokens)
        return text, entities_of(spans, labelled.tags, [1.0] * len(spans), text)
    if isinstance(labelled.text, str):
        return labelled.text, labelled
    text, spans = joined(labelled.text)
    return text, [replace(e, start=spans[e.start][0], end=spans[e.end - 1][1]) for e in labelled]


def joined(tokens: Sequence[str]) -> tuple[str, list[Span]]:
    """Tokens with single spaces between them, and the place of each."""
    ends = accumulate(len(token) + 1 for token in tokens)
    return " ".join(tokens), [
        (end - len(token) - 1, end - 1) for token, end in zip(tokens, ends, strict=True)
    ]


MARKS = """
mark { padding: .1em .25em; border-radius: .25em; color: #1f2933; }
mark small { font-size: .7em; font-weight: 600; margin-left: .35em; white-space: nowrap; }
p.text { white-space: pre-wrap; overflow-wrap: anywhere; }
"""
"""Style sheet of marked texts."""

STYLE = (
    """
body { font: 16px/1.7 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem;
  color: #1f2933; background: #fff; }
@media (prefers-color-scheme: dark) { :root { color-scheme: dark; }
  body { color: #e4e7eb; background: #1b232b; } }
"""
    + MARKS
)
"""Style sheet of the page, and of the demo."""

_STEP = 99.5  # degrees of hue from a type to the next one
_LIGHTNESS = (93, 88, 83, 78, 73)  # per cent; dark text is readable on all of them
_CHROMA = 0.12


def color(number: int) -> tuple[float, float, float]:
    """Lightness (per cent), chroma and hue (degrees) of a type, in OKLCH.

    As screens show them, of 20 types no two are nearer than 0.05 in OKLab, and of 60 no two nearer
    than 0.03; eyes tell apart what is 0.02 from each other.

    Args:
        number: place of the type among those of the page.
    """
    return _LIGHTNESS[number % len(_LIGHTNESS)], _CHROMA, number * _STEP % 360


class Palette:
    """The colours of the types on a page, given out as they come."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    @property
    def types(self) -> list[str]:
        """The types so far, in order."""
        return list(self._places)

    def place(self, entity_type: str) -> int:
        """Number of a type on this page."""
        return self._places.setdefault(entity_type, len(self._places))

    def background(self, entity_type: str) -> str:
        """Background colour of a type, in CSS; light enough for dark text."""
        lightness, chroma, hue = color(self.place(entity_type))
        return f"oklch({lightness}% {chroma} {hue:.1f})"


def marked(text: str, entities: Sequence[Entity], palette: Palette, threshold: float = 0.0) -> str:
    """The text as HTML: each entity is a `<mark>` with its type, and its score as a tooltip.

    Args:
        text: plain text.
        entities: entities in order, not overlapping.
        palette: colours of the page.
        threshold: entities with a smaller score are hidden; a script may show them.
    """
    parts, end = [], 0
    for entity in entities:
        parts.append(escape(text[end : entity.start]))
        name = escape(entity.type)
        hidden = " off" if entity.score < threshold else ""
        parts.append(
            f'<mark class="t{palette.place(entity.type)}{hidden}" data-score="{entity.score:.4f}" '
            f'style="background:{palette.background(entity.type)}" '
            f'title="{name} {entity.score:.2f}">'
            f"{escape(text[entity.start : entity.end])}<small>{name}</small></mark>"
        )
        end = entity.end
    return "".join([*parts, escape(text[end:])])


def page_start(title: str) -> str:
    """The start of a page, before its texts."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
    )


def paragraph(text: str, entities: Sequence[Entity], palette: Palette) -> str:
    """A text of a page."""
    return f'<p class="text">{marked(text, entities, palette)}</p>'


PAGE_END = "</body></html>"
