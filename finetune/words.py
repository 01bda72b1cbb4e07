"""Words of running text, with character offsets, as they stand in the corpora."""

from __future__ import annotations

import re

from pipeline.tokens import Span, tokenize

_ABBREVIATIONS = frozenset(
    "Adm al approx Ave Blvd Bros Capt cf Co Col Corp Dr ed Esq etc fig Gen Gov Hon Inc Jr Lt Ltd "
    "Maj Messrs Mr Mrs Ms Mt no No op pp Prof Rep Rev Sen Sgt Sr St vol vs Vol "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec".split()
)
"""English words whose full stop is part of them where another word in upper case follows."""

_STOP = re.compile(r"(?<![\w.])([^\W\d_]{2,}|\d+)\.(?=[\"')\]]*\s+[\"'(\[]*[^\Wa-z_])")
"""A word with a full stop behind which a sentence may begin; no single letter, as in J. Smith."""


def word_spans(text: str) -> list[Span]:
    """Spans of the words of a text of any length, in characters.

    NLTK's tokens keep a full stop with its word unless it ends the text. Here one that seems to end
    a sentence is a word of its own, as it is in sentences of a corpus.
    """
    edges = [match.end(1) for match in _STOP.finditer(text) if match[1] not in _ABBREVIATIONS]
    return tokenize(text, edges)
