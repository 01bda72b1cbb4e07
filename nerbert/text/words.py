"""Words of running text, and text of words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nerbert.text.tokens import Span, tokenize

ENGLISH_ABBREVIATIONS = frozenset(
    "Adm al approx Ave Blvd Bros Capt cf Co Col Corp Dr ed Esq etc fig Gen Gov Hon Inc Jr Lt Ltd "
    "Maj Messrs Mr Mrs Ms Mt no No op pp Prof Rep Rev Sen Sgt Sr St vol vs Vol "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec".split()
)
"""English abbreviations: their full stop belongs to them even before an upper-case word."""


_STOP = re.compile(r"(?<![\w.])([^\W\d_]{2,}|\d+)\.(?=[\"')\]]*\s+[\"'(\[]*[^\Wa-z_])")
"""A word and a full stop, after which a sentence may begin. Single letters, as in J. Smith, do not
match."""


def spans_in_text(text: str, language: str = "") -> list[Span]:
    """Spans of the words of a text of any length, in characters.

    NLTK separates a full stop from its word only at the end of the text. In a corpus each sentence
    is tokenised alone, so a full stop that seems to end a sentence is separated here, too.
    """
    stops = [
        match.end(1) for match in _STOP.finditer(text) if match[1] not in ENGLISH_ABBREVIATIONS
    ]
    return tokenize(text, language, stops)


def words_of(text: str) -> list[str]:
    """The words of a text, without their offsets."""
    return [text[start:end] for start, end in spans_in_text(text)]


def text_of(tokens: Sequence[str], starts: Sequence[int]) -> str:
    """The text of some tokens, by the first character of each; between them are spaces."""
    pieces: list[str] = []
    position = 0
    for token, start in zip(tokens, starts, strict=True):
        pieces.append(" " * (start - position) + token)
        position = start + len(token)
    return "".join(pieces)
