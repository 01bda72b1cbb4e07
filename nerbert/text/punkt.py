"""Punkt: unsupervised detection of sentence boundaries (Kiss and Strunk 2006).

The decisions are those of NLTK's `PunktSentenceTokenizer`; tests compare them. This module is
faster because it only looks at marks that may end a sentence.
"""

from __future__ import annotations

import re
import string
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

Span = tuple[int, int]

# Parts of a token. "." is not a _BREAKER because it may be inside a word.
_BREAKER = "[)\";}\\]*:@'({\\[‘’“”«»?!]"
_RUN = r"(?:--|\.\.|\.\s\.\s\.)"
TOKEN = re.compile(
    r"-{2,}|\.{2,}|(?:\.\s){2,}\."
    r"|[^\s(\"`{\[:;&#*@)}\],-]"  # a word's first character, then what cannot end it
    rf"(?:[^\s)\";}}\]*:@'({{\[‘’“”«»?!.,-]++|(?!{_RUN}|,(?:$|\s|{_BREAKER}|{_RUN}))[.,-])*"
    r"|\S"
)
_CANDIDATE = re.compile(rf"[.?!](?:(?={_BREAKER})|[^\S\n]+(?=\S))")
_NEWLINE = re.compile(r"\n")
_NEXT_TOKEN = re.compile(r"\S+")
_CLOSERS = "\"')]}‘’“”«»"
_CLOSING = re.compile(r"[\"')\]}‘’“”«»]+?(?:\s+|(?=--)|$)")
_ASCII_BLANK = re.compile(f"[{string.whitespace}]")
_NUMERIC = re.compile(r"-?[.,]?\d[\d,.-]*")
INITIAL = re.compile(r"[^\W\d]\.")
NUMBER = "##number##"
_WORD = re.compile(r"\w+")
_BEHIND_STOP = re.compile(r"\.\W*(\w+)")

# Bits: whether a word type occurs at the begin, middle or an unknown place of a sentence, by case.
BEGIN_UPPER, MIDDLE_UPPER, UNKNOWN_UPPER = 2, 4, 8
BEGIN_LOWER, MIDDLE_LOWER, UNKNOWN_LOWER = 16, 32, 64
_UPPER = BEGIN_UPPER | MIDDLE_UPPER | UNKNOWN_UPPER
LOWER = BEGIN_LOWER | MIDDLE_LOWER | UNKNOWN_LOWER


@dataclass(frozen=True)
class Parameters:
    """Parameters of a Punkt model.

    Attributes:
        abbreviations: word types that are written with a full stop; it is left out here.
        collocations: pairs of word types around a full stop that does not end a sentence.
        starters: word types that often begin a sentence.
        contexts: word type -> bits that say where it occurs.
    """

    abbreviations: frozenset[str] = frozenset()
    collocations: frozenset[tuple[str, str]] = frozenset()
    starters: frozenset[str] = frozenset()
    contexts: dict[str, int] = field(default_factory=dict)


def word_type(token: str) -> str:
    """Lower-case form of a token; one type for all numbers."""
    low = token.lower()
    return NUMBER if _NUMERIC.fullmatch(low) else low


def without_period(kind: str) -> str:
    """A word type without its final full stop."""
    return kind[:-1] if len(kind) > 1 and kind[-1] == "." else kind


def _is_abbreviation(token: str, abbreviations: frozenset[str] | set[str]) -> bool:
    stem = token[:-1].lower()
    return stem in abbreviations or ("-" in stem and stem.rpartition("-")[2] in abbreviations)


def first_decision(token: str, abbreviations: frozenset[str] | set[str]) -> str:
    """Kind of a token by itself: "break", "ellipsis", "abbreviation", or "" for other words."""
    if token in (".", "?", "!"):
        return "break"
    if token[-1] != ".":
        return ""
    if token[-2:] == "..":
        return "ellipsis" if not token.strip(".") else ""
    return "abbreviation" if _is_abbreviation(token, abbreviations) else "break"


class SentenceSplitter:
    """Finds sentences by the parameters of a model."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._no_break = parameters.abbreviations | {first for first, _ in parameters.collocations}

    def spans(self, text: str) -> list[Span]:
        """Spans of the sentences of a text, in characters. No sentence crosses a line."""
        breaks = [
            (mark + 1, following)
            for word, mark, following in _candidates(text)
            if self._is_end(text, word, mark, following)
        ]
        if "\n" in text:
            breaks += [(match.start(), match.end()) for match in _NEWLINE.finditer(text)]
            breaks.sort()
        return _with_closers(text, breaks)

    def _is_end(self, line: str, word: int, mark: int, following: int) -> bool:
        """Whether a mark ends a sentence.

        A question or exclamation mark always does. A full stop before white space does if it
        follows a closing bracket, or a word of letters that the model does not know. In other
        cases the parameters decide.

        Args:
            line: the text.
            word: start of the word before the mark.
            mark: position of the mark.
            following: start of the text after the mark.
        """
        if line[mark] != ".":
            return True
        end = following + 1
        # Most full stops are decided here by the word alone, without tokens.
        if following > mark + 1:
            before = line[word:mark]
            if before.isalpha():
                if len(before) > 1 and before.lower() not in self._no_break:
                    return True
            elif before and before[-1] in ")]}":
                return True
            next_token = _NEXT_TOKEN.match(line, following)
            end = next_token.end() if next_token else end
        tokens = TOKEN.findall(line[word:end])
        return any(self._ends_at(token, after) for token, after in pairwise(tokens))

    def _ends_at(self, token: str, after: str) -> bool:
        """Whether a sentence ends between two tokens. Source: Kiss and Strunk 2006, section 4."""
        parameters = self._parameters
        first = first_decision(token, parameters.abbreviations)
        if token[-1] != ".":
            return first == "break"
        kind, next_kind = without_period(word_type(token)), word_type(after)
        if first_decision(after, parameters.abbreviations) == "break":
            next_kind = without_period(next_kind)
        if (kind, next_kind) in parameters.collocations:
            return False
        initial = INITIAL.fullmatch(token) is not None
        if first in ("abbreviation", "ellipsis") and not initial:
            if self._begins(after, next_kind) is True:
                return True
            if after[0].isupper() and next_kind in parameters.starters:
                return True
        if initial or kind == NUMBER:
            begins = self._begins(after, next_kind)
            if begins is False:
                return False
            cases = parameters.contexts.get(next_kind, 0)
            if begins is None and initial and after[0].isupper() and not cases & LOWER:
                return False
        return first == "break"

    def _begins(self, token: str, kind: str) -> bool | None:
        """Whether a token begins a sentence, by the cases in which it occurs; None if unknown."""
        if token in (";", ":", ",", ".", "!", "?"):
            return False
        _, capital_begins, small_goes_on = _evidence(self._parameters.contexts.get(kind, 0))
        if token[0].isupper() and capital_begins:
            return True
        if token[0].islower() and small_goes_on:
            return False
        return None


def _evidence(cases: int) -> tuple[bool, bool, bool]:
    """What the contexts of a word type say.

    Returns:
        Whether it occurs in lower case; whether with a capital it begins a sentence, and whether in
        lower case it goes on with one.
    """
    is_lower = bool(cases & LOWER)
    return (
        is_lower,
        is_lower and not cases & MIDDLE_UPPER,
        bool(cases & _UPPER or not cases & BEGIN_LOWER),
    )


class Difference:
    """The words that parameters decide about in another way than others do.

    Abbreviations decide about the word before a full stop, all else about the one behind it.
    """

    def __init__(self, old: Parameters, new: Parameters) -> None:
        """Compares two sets of parameters."""
        self._ends = [f"{stem.casefold()}." for stem in old.abbreviations ^ new.abbreviations]
        kinds = {second for _, second in old.collocations ^ new.collocations}
        kinds |= old.starters ^ new.starters
        kinds |= {
            kind
            for kind in old.contexts.keys() | new.contexts.keys()
            if (kind[:1].islower() or kind[:1].isupper())  # the others are not asked for
            and _evidence(old.contexts.get(kind, 0)) != _evidence(new.contexts.get(kind, 0))
        }
        self._is_of_all = NUMBER in kinds
        self._behind: defaultdict[str, list[str]] = defaultdict(list)  # first word -> word types
        for kind in kinds:
            word = _WORD.search(kind.casefold())
            self._is_of_all |= word is None
            self._behind[word[0] if word else ""].append(kind.casefold())

    def __bool__(self) -> bool:
        return bool(self._is_of_all or self._ends or self._behind)

    def touches(self, text: str) -> bool:
        """Whether the sentences of a text may be others; most often they are the same, anyway."""
        behind = _WORD.findall(" ".join(_BEHIND_STOP.findall(text)).casefold())
        kinds = [kind for word in self._behind.keys() & set(behind) for kind in self._behind[word]]
        if not (self._is_of_all or self._ends or kinds):
            return False
        low = text.casefold()
        return self._is_of_all or any(part in low for part in (*self._ends, *kinds))


def _candidates(text: str) -> list[tuple[int, int, int]]:
    """Marks that may end a sentence: start of the word, position, and start of the next text.

    Of several marks in one word, only the last is a candidate.
    """
    # All blanks become spaces, so that `rfind` of one character finds the start of a word.
    blanks = text.replace("\n", " ")
    if not blanks.isprintable():
        blanks = _ASCII_BLANK.sub(" ", blanks)
    candidates: list[tuple[int, int, int]] = []
    word = last = 0
    for match in _CANDIDATE.finditer(text):
        mark, following = match.span()
        blank = blanks.rfind(" ", last, mark)
        if blank > last:
            word = blank + 1
        elif candidates and last > word:
            candidates.pop()
        candidates.append((word, mark, following))
        last = mark
    return candidates


def _with_closers(text: str, breaks: list[Span]) -> list[Span]:
    """Spans between breaks; closing quotes and brackets belong to the sentence before them.

    Args:
        text: the text.
        breaks: pairs of the end of a sentence and the start of the next one.
    """
    spans: list[Span] = []
    start, last = 0, len(breaks) - 1
    for index, (end, following) in enumerate(breaks):
        new_line = text[end] == "\n"
        if new_line:
            end = start + len(text[start:end].rstrip())
        elif text[following] in _CLOSERS:
            stop = breaks[index + 1][0] if index < last else len(text)
            closing = _CLOSING.match(text, following, max(stop, following))
            if closing is not None:
                spans.append((start, following + len(closing[0].rstrip())))
                start = closing.end()
                continue
        if start < end:
            spans.append((start, end))
        start = following
    end = start + len(text[start:].rstrip())
    return [*spans, (start, end)] if start < end else spans
