"""Prints predictions as JSON lines, CoNLL columns or HTML with coloured entities."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from html import escape
from pathlib import Path

from finetune.options import PredictOptions
from finetune.tagger.texts import Entity, Prediction
from nerbert.errors import UserError

_LOGGER = logging.getLogger("nerbert")
_BATCH = 1024  # number of texts that are tagged together


def print_predictions(options: PredictOptions) -> None:
    """Tags the texts and prints their entities.

    Raises:
        UserError: there is no text, a file cannot be read, or the model is not a tagger.
    """
    texts = [*options.texts, *(read_texts(options.input) if options.input else [])]
    if not texts:
        raise UserError("no text: give texts, or --input FILE")
    # These take a second or more to load; errors in the input are reported before.
    from finetune.tagger.tagger import Tagger
    from nerbert.commands.process import quiet_libraries

    quiet_libraries()
    tagger = Tagger.load(
        options.model, device=options.device, half=options.half, backend=options.backend
    )
    if options.types:
        tagger.use_types(options.types)
    start = time.monotonic()
    writers: dict[str, Callable[[str, Prediction], Iterator[str]]] = {
        "jsonl": _jsonl,
        "conll": _conll,
        "html": partial(_html, Palette()),
    }
    write = writers[options.format]
    if options.format == "html":
        print(page_start(f"Entities, {options.model}"))
    for first in range(0, len(texts), _BATCH):
        batch = texts[first : first + _BATCH]
        for text, prediction in zip(batch, tagger.predictions(batch, options.split), strict=True):
            for line in write(text, prediction):
                print(line)
    if options.format == "html":
        print(PAGE_END)
    elapsed_s = time.monotonic() - start
    _LOGGER.info("texts: %d, %.1f per second", len(texts), len(texts) / elapsed_s)


def read_texts(path: str) -> list[str]:
    """The texts of a file, one per line.

    Raises:
        UserError: it cannot be read.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{error}; give a UTF-8 text file", path) from error
    return [line for line in text.split("\n") if line.strip()]


def _jsonl(text: str, prediction: Prediction) -> Iterator[str]:
    rows = [{**asdict(entity), "score": round(entity.score, 4)} for entity in prediction.entities]
    yield json.dumps({"text": text, "entities": rows}, ensure_ascii=False)


def _html(palette: Palette, text: str, prediction: Prediction) -> Iterator[str]:
    yield paragraph(text, prediction.entities, palette)


def _conll(_: str, prediction: Prediction) -> Iterator[str]:
    yield from (
        f"{word}\t{tag}" for word, tag in zip(prediction.words, prediction.tags, strict=True)
    )
    yield ""


STYLE = """
body { font: 16px/1.7 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem;
  color: #1f2933; background: #fff; }
mark { padding: .1em .25em; border-radius: .25em; color: inherit; }
mark small { font-size: .7em; font-weight: 600; margin-left: .35em; white-space: nowrap; }
p.text { white-space: pre-wrap; overflow-wrap: anywhere; }
"""
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
