"""Word tokens with offsets: those of NLTK, of sentences and of texts of any length.

In scripts without spaces each character is a token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import Any

Span = tuple[int, int]

_QUOTES = ('"', "``", "''")

# One expression gives NLTK's tokens of most texts, and is much faster than NLTK's many ones.
_ALONE = r"\"«“‘„»”’;@#$%&‒–—―?!*()\[\]{}<>"  # always tokens of their own
_TOKEN = re.compile(
    rf"[{_ALONE}]|\.\.+|--|[,:](?!\d)"
    rf"|(?:[^\s{_ALONE},:.-]++|\.(?!\.)|-(?!-)|[,:](?=\d))+"
)
_CONTRACTIONS = (
    "cannot",
    "gimme",
    "gonna",
    "gotta",
    "lemme",
    "wanna",
    "d'ye",
    "more'n",
    "'tis",
    "'twas",
)
_HARD_PAIRS = ("''", "::", ",,", ",:", ":,")
_HARD_APOSTROPHE = re.compile(r"'[^\x00-\x7f]|[^\x00-\x7f]'")
_CLOSERS = "])}>\"'»”’ "
_CLITIC = re.compile(r"'(?:re|ve|ll|[mtsdn])\b", re.IGNORECASE)
_ENDINGS = frozenset("' 's 'S 'm 'M 'd 'D 'll 'LL 're 'RE 've 'VE".split())

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
"""Characters of scripts without spaces, as the body of a character class."""

_UNSPACED = re.compile(f"[{UNSPACED}]")
_PIECE = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")


@cache
def _nltk() -> Any:
    from nltk.tokenize.destructive import NLTKWordTokenizer  # takes a second, and few texts need it

    return NLTKWordTokenizer()


def word_spans(text: str) -> list[Span]:
    """Spans of NLTK's word tokens in `text`, in characters."""
    spans = None if _is_hard(text) else _easy_spans(text)
    return _aligned(text, _nltk().tokenize(text)) if spans is None else spans


def _is_hard(text: str) -> bool:
    """Whether NLTK's expressions interact in this text, or have a rule for one of its words."""
    low = text.lower()
    return (
        not text.isprintable()
        or "`" in text
        or any(pair in text for pair in _HARD_PAIRS)
        or any(word in low for word in _CONTRACTIONS)
        or ("'" in text and _HARD_APOSTROPHE.search(text) is not None)
    )


def _easy_spans(text: str) -> list[Span] | None:
    """The spans of NLTK's tokens by one expression; None if only NLTK can tell.

    NLTK separates the last full stop of a text from its word, even if closing marks follow it.
    """
    body = text.rstrip(_CLOSERS)
    stop = len(body) - 1 if body.endswith(".") and not body.endswith("..") else len(text)
    if " " in text[stop:]:
        return None
    spans = [match.span() for match in _TOKEN.finditer(text, 0, stop)]
    spans += [(place, place + 1) for place in range(stop, len(text))]
    if "'" not in text:
        return spans
    parted: list[Span] = []
    for start, end in spans:
        cuts = _cuts_at_apostrophe(text[start:end]) if end - start > 1 else ()
        if cuts is None:
            return None
        edges = (start, *(start + cut for cut in cuts), end)
        parted += pairwise(edges)
    return parted


def _cuts_at_apostrophe(token: str) -> tuple[int, ...] | None:
    """Where NLTK splits a token with an apostrophe; None if only NLTK can tell."""
    place = token.find("'")
    if place < 0:
        return ()
    if token.count("'") > 1:
        return None
    if place and (token[place - 1].isalnum() or token[place - 1] == "_"):
        if token[place:] in _ENDINGS:
            return (place,)
        return (place - 1,) if token[place - 1 :] in ("n't", "N'T") and place > 1 else ()
    if place or not token[:4].isascii() or not (token[1].isalnum() or token[1] == "_"):
        return None
    return () if _CLITIC.match(token) else (1,)


def _aligned(text: str, tokens: Iterable[str]) -> list[Span]:
    """Spans of NLTK's tokens in a text. NLTK replaces straight double quotes by `` or ''."""
    spans: list[Span] = []
    position = 0
    for token in tokens:
        while text[position].isspace():
            position += 1
        if token in _QUOTES and not text.startswith(token, position):
            token = next(quote for quote in _QUOTES if text.startswith(quote, position))
        if not text.startswith(token, position):
            place = text.find(token, position)
            if place < 0:
                raise ValueError(f"token {token!r} not found in {text!r} from {position} on")
            position = place
        spans.append((position, position + len(token)))
        position += len(token)
    return spans


def tokenize(text: str, edges: Iterable[int] = ()) -> list[Span]:
    """Spans of the tokens of a sentence, in characters.

    Args:
        text: the sentence.
        edges: offsets of token boundaries that must exist: the ends of the sentence's anchors.
    """
    spans = word_spans(text)
    if not text.isascii() and _UNSPACED.search(text):
        spans = [
            (start + match.start(), start + match.end())
            for start, end in spans
            for match in _PIECE.finditer(text[start:end])
        ]
    inner = set(edges).difference(chain.from_iterable(spans))
    return _split_at(text, spans, sorted(inner)) if inner else spans


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


ENGLISH_ABBREVIATIONS = frozenset(
    "Adm al approx Ave Blvd Bros Capt cf Co Col Corp Dr ed Esq etc fig Gen Gov Hon Inc Jr Lt Ltd "
    "Maj Messrs Mr Mrs Ms Mt no No op pp Prof Rep Rev Sen Sgt Sr St vol vs Vol "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec".split()
)
"""English abbreviations: their full stop belongs to them even before an upper-case word."""

_STOP = re.compile(r"(?<![\w.])([^\W\d_]{2,}|\d+)\.(?=[\"')\]]*\s+[\"'(\[]*[^\Wa-z_])")
"""A word and a full stop, after which a sentence may begin. Single letters, as in J. Smith, do not
match."""


def spans_in_text(text: str) -> list[Span]:
    """Spans of the words of a text of any length, in characters.

    NLTK separates a full stop from its word only at the end of the text. In a corpus each sentence
    is tokenised alone, so a full stop that seems to end a sentence is separated here, too.
    """
    edges = [
        match.end(1) for match in _STOP.finditer(text) if match[1] not in ENGLISH_ABBREVIATIONS
    ]
    return tokenize(text, edges)


def words_of(text: str) -> list[str]:
    """The words of a text, without their offsets."""
    return [text[start:end] for start, end in spans_in_text(text)]
