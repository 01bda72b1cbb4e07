"""Word tokens with offsets, of sentences and of texts of any length.

They are those of NLTK, cut by the rules of `nerbert.text.compounds`. In scripts without spaces each
character is a token. Tokens depend on the text and its language alone, never on mentions: else a
tagger would learn that a name begins where a token is cut.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from nerbert.arrays import unique
from nerbert.text import compounds

Span = tuple[int, int]
Ints = npt.NDArray[np.int64]

_QUOTES = ('"', "``", "''")

# One expression gives NLTK's tokens of most texts, and is much faster than NLTK's many ones. A line
# is a text. Its last full stop is a token, even if closing marks follow it.
_ALONE = r"\"«“‘„»”’;@#$%&‒–—―?!*()\[\]{}<>"  # always tokens of their own
_CLOSERS = r"\])}>\"'»”’"
_LAST = rf"[{_CLOSERS}]*\n"
_WORD = rf"[^\s{_ALONE},:.-]"
_TOKEN = re.compile(
    rf"([{_ALONE}]|\.\.+|--|[,:](?!\d)|\.(?={_LAST})"
    rf"|(?:{_WORD}++|\.(?!\.|{_LAST})|-(?!-)|[,:](?=\d))+)"
)
# What NLTK's expressions interact in, or have a rule for.
_HARD = (
    *("`", "''", "::", ",,", ",:", ":,"),
    *("cannot", "gimme", "gonna", "gotta", "lemme", "wanna", "d'ye", "more'n", "'tis", "'twas"),
)
_HARD_END = re.compile(rf"\.[{_CLOSERS}]* [{_CLOSERS} ]*\n")
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

_APART = re.compile(f"[{UNSPACED}\u055d\u055e\u0589\u060c\u061b\u061f\u06d4\u0964\u0965]")
"""Characters that are tokens of their own: those, and Armenian, Arabic and Indic stops, which NLTK
leaves at the word before."""


@cache
def _nltk() -> Any:
    # It would load scikit-learn and SciPy's statistics, which takes a second and 110 MiB.
    hidden = {"sklearn", "scipy.stats"} - sys.modules.keys()
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        # Few texts need it.
        from nltk.tokenize.destructive import NLTKWordTokenizer
    finally:
        for name in hidden:
            del sys.modules[name]
    return NLTKWordTokenizer()


@dataclass(frozen=True)
class Tokens:
    """The tokens of some texts, one after the other; a newline follows each text.

    Attributes:
        text: the texts with these newlines.
        bases: where each text begins, shape (texts,).
        starts: where each token begins, shape (tokens,).
        ends: where each token ends, shape (tokens,).
    """

    text: str
    bases: Ints
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, texts: Sequence[str], language: str = "", stops: Iterable[int] = ()) -> Tokens:
        """Finds the tokens of some sentences.

        Args:
            texts: the sentences.
            language: code of their language; without it no word is known to be elided.
            stops: places in the first text where a token ends, too: full stops of sentences in it.
        """
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        bases = np.cumsum(lengths + 1) - lengths - 1
        original = "".join([f"{text}\n" for text in texts])
        texts = [compounds.with_straight_marks(text, language) for text in texts]
        joined = "".join([f"{text}\n" for text in texts])
        hard = _hard_texts(texts, joined, bases)
        easy = _without(joined, texts, hard)
        pieces = _TOKEN.split(easy)  # a gap, a token, a gap, a token, ..., a gap
        places = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))
        starts, ends = places[:-1:2], places[1::2]
        cuts, harder = _cuts_at_apostrophes(easy, starts, ends)
        if harder:
            harder_texts = unique(_texts_of(harder, bases)).tolist()
            is_easy = ~np.isin(_texts_of(starts, bases), harder_texts)
            starts, ends = starts[is_easy], ends[is_easy]
            cuts = cuts[~np.isin(_texts_of(cuts, bases), harder_texts)]
            hard += harder_texts
        if hard:
            starts, ends = _with_spans(starts, ends, _spans_by_nltk(texts, bases, hard))
        starts, ends = _cut(starts, ends, np.append(np.fromiter(stops, np.int64), cuts))
        edges = _words_inside(joined, starts, ends, language)
        if not joined.isascii():
            edges += [edge for match in _APART.finditer(joined) for edge in match.span()]
        return cls(original, bases, *_cut(starts, ends, np.array(edges, np.int64)))

    @property
    def bounds(self) -> Ints:
        """First token of each text, and the number of all tokens, shape (texts + 1,)."""
        return np.append(np.searchsorted(self.starts, self.bases), len(self.starts))

    def words(self) -> list[str]:
        """The tokens themselves."""
        places = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.text[start:end] for start, end in places]

    def spans(self) -> Iterator[list[Span]]:
        """Spans of the tokens of each text, in characters of the text."""
        for base, (first, last) in zip(self.bases, pairwise(self.bounds.tolist()), strict=True):
            starts, ends = self.starts[first:last] - base, self.ends[first:last] - base
            yield list(zip(starts.tolist(), ends.tolist(), strict=True))


def tokenize(text: str, language: str = "", stops: Iterable[int] = ()) -> list[Span]:
    """Spans of the tokens of a sentence, in characters; see `Tokens.of`."""
    (spans,) = Tokens.of([text], language, stops).spans()
    return spans


def _places(text: str, part: str) -> list[int]:
    """Where a part of a text begins."""
    places = []
    place = text.find(part)
    while place >= 0:
        places.append(place)
        place = text.find(part, place + 1)
    return places


def _texts_of(places: Sequence[int] | Ints, bases: Ints) -> Ints:
    """Number of the text of each place."""
    return np.searchsorted(bases, places, "right") - 1


def _hard_texts(texts: Sequence[str], joined: str, bases: Ints) -> list[int]:
    """Numbers of the texts of which only NLTK can tell the tokens."""
    low = joined.replace("\u0130", "i").lower()  # the only letter that becomes two
    places = [place for part in _HARD for place in _places(low, part)]
    places += [match.start() for match in _HARD_END.finditer(joined)]
    if not joined.isascii():
        around = ((place, joined[max(0, place - 1) : place + 2]) for place in _places(joined, "'"))
        places += [place for place, chars in around if not chars.isascii()]
    odd = [number for number, text in enumerate(texts) if not text.isprintable()]
    return sorted({*_texts_of(places, bases).tolist(), *odd})


def _without(joined: str, texts: Sequence[str], numbers: Sequence[int]) -> str:
    """The joined texts, some of which are blanked."""
    if not numbers:
        return joined
    blanked = list(texts)
    for number in numbers:
        blanked[number] = " " * len(blanked[number])
    return "".join([f"{text}\n" for text in blanked])


def _cuts_at_apostrophes(text: str, starts: Ints, ends: Ints) -> tuple[Ints, list[int]]:
    """Where tokens are split at apostrophes, and the tokens of which only NLTK can tell."""
    cuts, hard = [], []
    numbers = unique(np.searchsorted(starts, _places(text, "'"), "right") - 1)
    for start, end in zip(starts[numbers].tolist(), ends[numbers].tolist(), strict=True):
        offsets = _cuts_at_apostrophe(text[start:end]) if end - start > 1 else ()
        if offsets is None:
            hard.append(start)
        else:
            cuts += [start + cut for cut in offsets]
    return np.array(cuts, np.int64), hard


def _words_inside(text: str, starts: Ints, ends: Ints, language: str) -> list[int]:
    """Places inside of tokens where another word begins; see `nerbert.text.compounds`."""
    places = [place for sign in compounds.signs(language) for place in _places(text, sign)]
    numbers = unique(np.searchsorted(starts, places, "right") - 1)
    numbers = numbers[numbers >= 0]
    return [
        start + cut
        for start, end in zip(starts[numbers].tolist(), ends[numbers].tolist(), strict=True)
        for cut in compounds.cuts(text[start:end], language)
    ]


def _spans_by_nltk(texts: Sequence[str], bases: Ints, numbers: Sequence[int]) -> Ints:
    """Start and end of NLTK's tokens of some texts, shape (tokens, 2)."""
    spans = [
        (start + base, end + base)
        for number, base in zip(numbers, bases[numbers].tolist(), strict=True)
        for start, end in _aligned(texts[number], _nltk().tokenize(texts[number]))
    ]
    return np.array(spans, np.int64).reshape(-1, 2)


def _with_spans(starts: Ints, ends: Ints, added: Ints) -> tuple[Ints, Ints]:
    starts, ends = np.append(starts, added[:, 0]), np.append(ends, added[:, 1])
    return np.sort(starts), np.sort(ends)


def _cut(starts: Ints, ends: Ints, edges: Ints) -> tuple[Ints, Ints]:
    """Starts and ends of tokens that are cut at the edges inside of them."""
    if not len(starts):
        return starts, ends
    edges = unique(edges)
    token = np.searchsorted(starts, edges) - 1  # the last one that begins before the edge
    inner = edges[(token >= 0) & (edges < ends[token])]
    return _with_spans(starts, ends, np.stack([inner, inner], 1))


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
