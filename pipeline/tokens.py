"""Word tokens with offsets: NLTK's word tokenizer, one token per character where no spaces are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nltk.tokenize.destructive import NLTKWordTokenizer

Span = tuple[int, int]

_TOKENIZER = NLTKWordTokenizer()
_QUOTES = ('"', "``", "''")

UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u0f00-\u0fff"  # Tibetan
    "\u1000-\u109f\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u2e80-\u2fdf\u3001-\u303f"  # Han radicals, CJK punctuation
    "\u3040-\u30ff\u31f0-\u31ff"  # Kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uff01-\uff9f"  # full-width forms, half-width kana
    "\U00020000-\U0003ffff"  # Han, rare
)
"""Characters of scripts written without spaces, as the body of a regular-expression class."""

_UNSPACED = re.compile(f"[{UNSPACED}]")
_PIECE = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")


def word_spans(text: str) -> list[Span]:
    """Spans of NLTK's word tokens in `text`, in characters."""
    spans: list[Span] = []
    position = 0
    for token in _TOKENIZER.tokenize(text):
        while text[position].isspace():
            position += 1
        if token in _QUOTES and not text.startswith(token, position):
            token = next(quote for quote in _QUOTES if text.startswith(quote, position))
        if not text.startswith(token, position):
            found = text.find(token, position)
            if found < 0:
                raise ValueError(f"token {token!r} not found in {text!r} from {position} on")
            position = found
        spans.append((position, position + len(token)))
        position += len(token)
    return spans


def tokenize(text: str, edges: Iterable[int] = ()) -> list[Span]:
    """Spans of the tokens of a sentence, in characters.

    Args:
        text: the sentence.
        edges: offsets at which a token must end and the next begin: the edges of its anchors.
    """
    spans = word_spans(text)
    if not text.isascii() and _UNSPACED.search(text):
        spans = [
            (start + match.start(), start + match.end())
            for start, end in spans
            for match in _PIECE.finditer(text[start:end])
        ]
    inner = sorted(set(edges))
    return _split_at(text, spans, inner) if inner else spans


def _split_at(text: str, spans: Sequence[Span], edges: Sequence[int]) -> list[Span]:
    pieces: list[Span] = []
    index = 0
    for start, end in spans:
        while index < len(edges) and edges[index] <= start:
            index += 1
        while index < len(edges) and edges[index] < end:
            pieces.append((start, edges[index]))
            start = edges[index]
            index += 1
        pieces.append((start, end))
    return pieces
