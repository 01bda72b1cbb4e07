"""Punkt: unsupervised sentence boundary detection (Kiss and Strunk 2006), as NLTK decides it.

Parameters and decisions are those of NLTK's `PunktTrainer` and `PunktSentenceTokenizer`; the tests
hold them against each other. What differs is the work: training counts distinct tokens instead of
making an object of each, and splitting looks only where a mark may end a sentence.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Span = tuple[int, int]
Ints = npt.NDArray[np.int64]

# Parts of a token. "." is no _BREAKER: it may stand inside a word.
_BREAKER = "[)\";}\\]*:@'({\\[‘’“”«»?!]"
_RUN = r"(?:--|\.\.|\.\s\.\s\.)"
_TOKEN = re.compile(
    r"-{2,}|\.{2,}|(?:\.\s){2,}\."
    r"|[^\s(\"`{\[:;&#*@)}\],-]"  # a word's first character, then what cannot end it
    rf"(?:[^\s)\";}}\]*:@'({{\[‘’“”«»?!.,-]++|(?!{_RUN}|,(?:$|\s|{_BREAKER}|{_RUN}))[.,-])*+"
    r"|\S"
)
_CANDIDATE = re.compile(rf"[.?!](?:(?={_BREAKER})|[^\S\n]+(?=\S))")
_NEWLINE = re.compile(r"\n")
_NEXT_TOKEN = re.compile(r"\S+")
_CLOSERS = "\"')]}‘’“”«»"
_CLOSING = re.compile(r"[\"')\]}‘’“”«»]+?(?:\s+|(?=--)|$)")
_ASCII_BLANK = re.compile(f"[{string.whitespace}]")
_NUMERIC = re.compile(r"-?[.,]?\d[\d,.-]*")
_INITIAL = re.compile(r"[^\W\d]\.")
_ALPHA = re.compile(r"[^\W\d]+")
_LETTER = re.compile(r"[^\W\d]")
_NUMBER = "##number##"

# Where a word type was seen (a bit each): begin, middle or unknown place of a sentence, by case.
BEGIN_UPPER, MIDDLE_UPPER, UNKNOWN_UPPER = 2, 4, 8
BEGIN_LOWER, MIDDLE_LOWER, UNKNOWN_LOWER = 16, 32, 64
_UPPER = BEGIN_UPPER | MIDDLE_UPPER | UNKNOWN_UPPER
_LOWER = BEGIN_LOWER | MIDDLE_LOWER | UNKNOWN_LOWER
_BEGIN, _MIDDLE, _UNKNOWN = 0, 1, 2

ABBREVIATION_SCORE = 0.3
RARE_BELOW = 5
COLLOCATION_SCORE = 7.88
STARTER_SCORE = 30.0
"""Thresholds. Source: Kiss and Strunk 2006, section 3 to 4; NLTK's PunktTrainer."""


@dataclass(frozen=True)
class Parameters:
    """What a model knows of a language.

    Attributes:
        abbreviations: word types written with a full stop, without it.
        collocations: pairs of word types that a full stop does not part.
        starters: word types that often begin a sentence.
        contexts: word type -> where it was seen, as bits.
    """

    abbreviations: frozenset[str] = frozenset()
    collocations: frozenset[tuple[str, str]] = frozenset()
    starters: frozenset[str] = frozenset()
    contexts: dict[str, int] = field(default_factory=dict)


def word_type(token: str) -> str:
    """Lower-case form of a token; one type for all numbers."""
    low = token.lower()
    return _NUMBER if _NUMERIC.fullmatch(low) else low


def _without_period(kind: str) -> str:
    return kind[:-1] if len(kind) > 1 and kind[-1] == "." else kind


def _is_abbreviation(token: str, abbreviations: frozenset[str] | set[str]) -> bool:
    stem = token[:-1].lower()
    return stem in abbreviations or ("-" in stem and stem.rpartition("-")[2] in abbreviations)


def _first_decision(token: str, abbreviations: frozenset[str] | set[str]) -> str:
    """What a token is by itself: "break", "ellipsis", "abbreviation" or "" for a plain word."""
    if token in (".", "?", "!"):
        return "break"
    if token[-1] != ".":
        return ""
    if token[-2:] == "..":
        return "ellipsis" if not token.strip(".") else ""
    return "abbreviation" if _is_abbreviation(token, abbreviations) else "break"


class Splitter:
    """Finds the sentences of a line by the parameters of a model."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._no_break = parameters.abbreviations | {first for first, _ in parameters.collocations}

    def spans(self, text: str) -> list[Span]:
        """Spans of the sentences of a text, in characters; each line is one for itself."""
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
        """Whether the mark ends a sentence; `word` is where the text that it closes begins.

        A question or exclamation mark does, whatever stands around it; so does a full stop between
        white space and a closing bracket or a word of letters, unless the model knows the word.
        """
        if line[mark] != ".":
            return True
        end = following + 1
        if following > mark + 1:
            before = line[word:mark]
            if before.isalpha():
                if len(before) > 1 and before.lower() not in self._no_break:
                    return True
            elif before and before[-1] in ")]}":
                return True
            next_token = _NEXT_TOKEN.match(line, following)
            end = next_token.end() if next_token else end
        tokens = _TOKEN.findall(line[word:end])
        return any(self._ends_at(token, after) for token, after in pairwise(tokens))

    def _ends_at(self, token: str, after: str) -> bool:
        """Whether a sentence ends between two tokens. Source: Kiss and Strunk 2006, section 4."""
        known = self._parameters
        first = _first_decision(token, known.abbreviations)
        if token[-1] != ".":
            return first == "break"
        kind, next_kind = _without_period(word_type(token)), word_type(after)
        if _first_decision(after, known.abbreviations) == "break":
            next_kind = _without_period(next_kind)
        if (kind, next_kind) in known.collocations:
            return False
        initial = _INITIAL.fullmatch(token) is not None
        if first in ("abbreviation", "ellipsis") and not initial:
            if self._begins(after, next_kind) is True:
                return True
            if after[0].isupper() and next_kind in known.starters:
                return True
        if initial or kind == _NUMBER:
            begins = self._begins(after, next_kind)
            if begins is False:
                return False
            seen = known.contexts.get(next_kind, 0)
            if begins is None and initial and after[0].isupper() and not seen & _LOWER:
                return False
        return first == "break"

    def _begins(self, token: str, kind: str) -> bool | None:
        """Whether a token begins a sentence by the cases it was seen in; None when unknown."""
        if token in (";", ":", ",", ".", "!", "?"):
            return False
        seen = self._parameters.contexts.get(kind, 0)
        if token[0].isupper() and seen & _LOWER and not seen & MIDDLE_UPPER:
            return True
        if token[0].islower() and (seen & _UPPER or not seen & BEGIN_LOWER):
            return False
        return None


def _candidates(text: str) -> list[tuple[int, int, int]]:
    """Marks that may end a sentence: where their word begins, where they are, what follows them.

    Of several marks in one word the last counts.
    """
    blanks = text.replace("\n", " ")
    if not blanks.isprintable():
        blanks = _ASCII_BLANK.sub(" ", blanks)
    found: list[tuple[int, int, int]] = []
    word = last = 0
    for match in _CANDIDATE.finditer(text):
        mark, following = match.span()
        blank = blanks.rfind(" ", last, mark)
        if blank > last:
            word = blank + 1
        elif found and last > word:
            found.pop()
        found.append((word, mark, following))
        last = mark
    return found


def _with_closers(text: str, breaks: list[Span]) -> list[Span]:
    """Spans between breaks, closing quotes and brackets moved to the sentence before them.

    A break is the end of a sentence and the beginning of the next.
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


class _Numbers(dict[str, int]):
    """Numbers distinct tokens from 0 on, in the order in which they are asked for."""

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self)
        return number


class _Counts:
    """What training counts in a text: tokens by number, and distinct tokens by what they are."""

    def __init__(self, lines: Iterable[str]) -> None:
        numbers = _Numbers()
        stream: list[int] = []
        line_starts: list[int] = []
        paragraph_starts: list[int] = []
        blank = False
        for line in lines:
            tokens = _TOKEN.findall(line)
            if not tokens:
                blank = True
                continue
            (paragraph_starts if blank else line_starts).append(len(stream))
            blank = False
            stream.extend(map(numbers.__getitem__, tokens))
        self.tokens = list(numbers)
        self.stream = np.array(stream, np.int64)
        self.line_starts = np.array(line_starts, np.int64)
        self.paragraph_starts = np.array(paragraph_starts, np.int64)
        self.types = [word_type(token) for token in self.tokens]
        self.token_counts = np.bincount(self.stream, minlength=len(self.tokens))
        self.type_counts: Counter[str] = Counter()
        for kind, count in zip(self.types, self.token_counts.tolist(), strict=True):
            self.type_counts[kind] += count
        self.period_ends = np.array([token.endswith(".") for token in self.tokens], bool)
        self.n_period_ends = int(self.token_counts[self.period_ends].sum())

    def __len__(self) -> int:
        return len(self.stream)


def train(lines: Iterable[str]) -> Parameters:
    """Parameters learned from text without annotation; an empty line parts paragraphs.

    Source: Kiss and Strunk 2006, section 3; the same as one call of NLTK's `PunktTrainer.train`.
    """
    counts = _Counts(lines)
    if not len(counts):
        return Parameters()
    abbreviations = _abbreviations(counts)
    decisions = [_first_decision(token, abbreviations) for token in counts.tokens]
    kinds = [
        _without_period(kind) if decision == "break" else kind
        for kind, decision in zip(counts.types, decisions, strict=True)
    ]
    contexts = _contexts(counts, decisions, kinds)
    starters: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    followed = np.flatnonzero(counts.period_ends[counts.stream[:-1]])
    bigrams = Counter(
        zip(counts.stream[followed].tolist(), counts.stream[followed + 1].tolist(), strict=True)
    )
    rare: set[str] = set()
    for (first, second), times in bigrams.items():
        token, after = counts.tokens[first], counts.tokens[second]
        if decisions[first] != "break":
            continue
        if _is_rare(counts, kinds[first], after, contexts.get(kinds[second], 0)):
            rare.add(_without_period(counts.types[first]))
        ordinal = counts.types[first] == _NUMBER or _INITIAL.fullmatch(token) is not None
        if not ordinal and _ALPHA.fullmatch(after):
            starters[counts.types[second]] += times
        if ordinal and _LETTER.search(counts.types[first]) and _LETTER.search(counts.types[second]):
            pairs[_without_period(counts.types[first]), kinds[second]] += times
    breaks = np.array([decision == "break" for decision in decisions])
    frequent = _starters(counts, starters, int(counts.token_counts[breaks].sum()))
    return Parameters(
        frozenset(abbreviations | rare), _collocations(counts, pairs, frequent),
        frequent, contexts,
    )  # fmt: skip


def _abbreviations(counts: _Counts) -> set[str]:
    """Types that occur with a full stop far more often than without."""
    found = set()
    share = counts.n_period_ends / len(counts)
    for kind in counts.type_counts:
        if not kind.endswith(".") or not _LETTER.search(kind):
            continue
        stem = kind[:-1]
        periods = stem.count(".") + 1
        others = len(stem) - periods + 1
        with_period, without = counts.type_counts[kind], counts.type_counts[stem]
        independent = with_period * math.log(share + 1e-8)
        independent += without * math.log(1.0 - share + 1e-8)
        together = with_period * math.log(0.99) + without * math.log(1.0 - 0.99)
        likelihood = -2.0 * (independent - together)
        score = likelihood * math.exp(-others) * periods * math.pow(others, -without)
        if score >= ABBREVIATION_SCORE:
            found.add(stem)
    return found


def _contexts(counts: _Counts, decisions: list[str], kinds: list[str]) -> dict[str, int]:
    """Where each type was seen."""
    after = np.full(len(counts.tokens), _MIDDLE)
    for number, decision in enumerate(decisions):
        if decision == "break":
            ordinal = counts.types[number] == _NUMBER or _INITIAL.fullmatch(counts.tokens[number])
            after[number] = _UNKNOWN if ordinal else _BEGIN
        elif decision:
            after[number] = _UNKNOWN
    place = np.concatenate([[_MIDDLE], after[counts.stream[:-1]]])
    paragraphs, lines = counts.paragraph_starts, counts.line_starts
    place[paragraphs] = np.where(place[paragraphs] == _UNKNOWN, _UNKNOWN, _BEGIN)
    place[lines] = np.where(place[lines] == _MIDDLE, _UNKNOWN, place[lines])
    cases = np.array([
        0 if token[0].isupper() else 1 if token[0].islower() else 2 for token in counts.tokens
    ])  # fmt: skip
    bits = np.array([
        [BEGIN_UPPER, BEGIN_LOWER, 0], [MIDDLE_UPPER, MIDDLE_LOWER, 0],
        [UNKNOWN_UPPER, UNKNOWN_LOWER, 0],
    ])  # fmt: skip
    seen = np.zeros(len(counts.tokens), np.int64)
    np.bitwise_or.at(seen, counts.stream, bits[place, cases[counts.stream]])
    contexts: dict[str, int] = {}
    for kind, flags in zip(kinds, seen.tolist(), strict=True):
        if flags:
            contexts[kind] = contexts.get(kind, 0) | flags
    return contexts


def _is_rare(counts: _Counts, kind: str, after: str, seen: int) -> bool:
    """Whether a rare type before a full stop is an abbreviation, by what follows."""
    if counts.type_counts[kind] + counts.type_counts[kind[:-1]] >= RARE_BELOW:
        return False
    if after[0] in ",:;":
        return True
    return after[0].islower() and bool(seen & BEGIN_UPPER) and not seen & MIDDLE_UPPER


def _starters(counts: _Counts, at_break: Counter[str], breaks: int) -> frozenset[str]:
    """Types that begin sentences far more often than by chance."""
    found = set()
    for kind, together in at_break.items():
        total = counts.type_counts[kind] + counts.type_counts[kind + "."]
        if total < together:
            continue
        score = _log_likelihood(breaks, total, together, len(counts))
        if score >= STARTER_SCORE and len(counts) / breaks > total / together:
            found.add(kind)
    return frozenset(found)


def _collocations(
    counts: _Counts, pairs: Counter[tuple[str, str]], starters: frozenset[str]
) -> frozenset[tuple[str, str]]:
    """Pairs around a full stop that occur together far more often than by chance."""
    found = set()
    n = len(counts)
    for (first, second), together in pairs.items():
        if second in starters:
            continue
        a = counts.type_counts[first] + counts.type_counts[first + "."]
        b = counts.type_counts[second] + counts.type_counts[second + "."]
        if a > 1 and b > 1 and 1 < together <= min(a, b):
            score = _log_likelihood(a, b, together, n)
            if score >= COLLOCATION_SCORE and n / a > b / together:
                found.add((first, second))
    return frozenset(found)


def _log_likelihood(a: int, b: int, ab: int, n: int) -> float:
    """Dunning's log-likelihood ratio that b follows a more often than anywhere else."""
    p, p1 = b / n, ab / a
    p2 = (b - ab) / (n - a) if n != a else 1.0
    chance = _binomial(ab, a, p) + _binomial(b - ab, n - a, p)
    bound = 0.0 if a == ab else _binomial(ab, a, p1)
    bound += 0.0 if b == ab else _binomial(b - ab, n - a, p2)
    return -2.0 * (chance - bound)


def _binomial(k: int, n: int, p: float) -> float:
    """Logarithm of p**k (1-p)**(n-k); 0 where p leaves nothing to chance."""
    return k * math.log(p) + (n - k) * math.log(1.0 - p) if 0 < p < 1 else 0.0
