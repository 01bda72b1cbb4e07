"""Finds names in the text of a document."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterator, Sequence
from functools import lru_cache

_INITIAL = re.compile(r"\b[^\W\d_]\. ?$")
"""The end of a text after which a name goes on: "Richard M."."""
_JOINED = re.compile(
    r"\.(?<=\b\w.) ?|\. (?<=\b\w\w. )|-|"
    r" (?:(?:of|de|del|della|di|da|do|dos|du|des|la|le|los|las|y|von|van|der|den|bin|ibn|al) )?"
    r"(?:(?:the|la|los|las|der|den) )?"
)
"""What stands between the words of one name."""
_OF = re.compile(r" (?:of|de|du|des|di|del|della|do|da|dos|von) (?:the )?$")
"""What stands before the second half of a name: "Bank of England"."""
_DIRECT = (" ", "-", "–")
_WORDS = re.compile(r"\w+")


def _upper_case() -> str:
    """A regular-expression class of all letters in upper case."""
    codes = [code for code in range(0x10000) if chr(code).isupper()]
    ends = [code for code in codes if not chr(code + 1).isupper()]
    begins = [code for code in codes if not chr(code - 1).isupper()]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(begins, ends, strict=True))


_UPPER = re.compile(rf"[{_upper_case()}](?<!\w.)\w*", re.DOTALL)
"""A capitalised word. A search is fast for an expression that begins with a set of characters."""
_RUN = re.compile(rf"{_UPPER.pattern}(?:(?:{_JOINED.pattern}){_UPPER.pattern})*", re.DOTALL)
_STEM = 5
"""Words that begin with the same letters are forms of one word: "Democrat", "Democratic"."""


@lru_cache(maxsize=1)
def _plain_words(text: str) -> frozenset[str]:
    """The words of a document; one is in lower case if it stands here as such."""
    return frozenset(text.split(" "))


def shares_word(surface: str, title: str) -> bool:
    """Whether a text has a word of a title, or its beginning, or is made of its initials.

    Other texts are of this link only: "the North" may lead to the United States.

    >>> shares_word("Democrats", "Democratic Party")
    True
    >>> shares_word("U.S.", "United States")
    True
    """
    words = _WORDS.findall(title.lower())
    stems = {word[:_STEM] for word in words}
    if any(word[:_STEM] in stems for word in _WORDS.findall(surface.lower())):
        return True
    letters = [char for char in surface.lower() if char.isalnum()]
    return len(letters) > 1 and "".join(letters) in "".join(word[0] for word in words)


def occurrences(
    text: str,
    names: Collection[str],
    taken: Sequence[tuple[int, int]],
    starts: Sequence[int],
    ends: Sequence[int],
) -> Iterator[tuple[int, int, int, str]]:
    """Finds names in the sentences of a text that are not a part of a longer name.

    Of several names at one place the longest is found. A capitalised word directly before or after
    an occurrence makes it a part of a longer name, also with "of" between ("Bank of England"); the
    first word of a sentence does so only if the text nowhere has it in lower case.

    Args:
        text: text of a document.
        names: names that begin with a capital.
        taken: spans of the anchors, in order.
        starts: starts of the sentences, in order.
        ends: ends of the sentences.

    Yields:
        Number of the sentence, start and end of the occurrence, and the name.
    """
    by_word: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: (-len(name), name)):
        word = _UPPER.match(name)
        if word is not None:
            by_word.setdefault(word[0], []).append(name)
    plain = _plain_words(text)
    anchor = free = 0
    for row, (first, last) in enumerate(zip(starts, ends, strict=True)):
        before: re.Match[str] | None = None  # the capitalised word before
        for match in _UPPER.finditer(text, first, last):
            previous, before = before, match
            begun = by_word.get(match[0])
            if begun is None or match.start() < free:
                continue
            start = match.start()
            while anchor < len(taken) and taken[anchor][1] <= start:
                anchor += 1
            for name in begun:
                stop = start + len(name)
                is_here = text.startswith(name, start) and stop <= last
                is_taken = anchor < len(taken) and taken[anchor][0] < stop
                if not is_here or is_taken or _goes_on(text, stop, last):
                    continue
                if _INITIAL.search(text, max(first, start - 3), start):
                    continue
                if previous is not None and _begins_before(text, previous, start, first, plain):
                    continue
                yield row, start, stop, name
                free = stop
                break


def _begins_before(
    text: str, previous: re.Match[str], start: int, first: int, plain: Container[str]
) -> bool:
    """Whether a name begins with the capitalised word before `start`; its sentence, at `first`."""
    between = text[previous.end() : start]
    is_joined = between in _DIRECT or _OF.fullmatch(between) is not None
    return is_joined and (previous.start() != first or previous[0].lower() not in plain)


def whole_names(
    text: str,
    taken: Sequence[tuple[int, int]],
    starts: Sequence[int],
    ends: Sequence[int],
    common: Container[str] = (),
) -> Iterator[tuple[int, int, int]]:
    """Finds the longest runs of capitalised words: "Bank of England", not "England" in it.

    The first word of a sentence is no part of a run if the text has it in lower case, too. If it is
    a common word ("The") and not capitalised elsewhere ("New"), the run is found with and without
    it.

    Args:
        text: text of a document.
        taken: spans of known mentions, in order; a run that touches one is left out.
        starts: starts of the sentences, in order.
        ends: ends of the sentences.
        common: the most frequent words of the language, in lower case.

    Yields:
        Number of the sentence, start and end of the run; of two that overlap, the longer one first.
    """
    plain = _plain_words(text)
    mention = 0
    for row, (first, last) in enumerate(zip(starts, ends, strict=True)):
        for match in _RUN.finditer(text, first, last):
            start, end = match.span()
            while mention < len(taken) and taken[mention][1] < start - 1:
                mention += 1
            # A run beside a mention may be a part of its name.
            is_free = mention == len(taken) or taken[mention][0] > end + 1
            if not is_free or end - start < 2 or _goes_on(text, end, last):
                continue
            if start == first:
                word = _WORDS.match(text, start)
                assert word is not None
                second = _UPPER.search(text, word.end(), end)
                known = word[0].lower() in plain
                if second and (
                    known or (word[0].lower() in common and not _is_inside(text, word[0]))
                ):
                    if not known:
                        yield row, start, end
                    start = second.start()
                elif known:
                    continue
            if end - start > 1:
                yield row, start, end


def _is_inside(text: str, word: str) -> bool:
    """Whether a capitalised word stands inside of a sentence, after a word in lower case."""
    place = text.find(f" {word}")
    while place >= 0:
        before = text[place - 1 : place] if text[place - 1] != "," else text[place - 2 : place - 1]
        after = text[place + len(word) + 1 : place + len(word) + 2]
        if before.islower() and not after.isalnum():
            return True
        place = text.find(f" {word}", place + 1)
    return False


def _goes_on(text: str, stop: int, last: int) -> bool:
    """Whether the name ends inside a word, or a capitalised word or a number follows it."""
    after = text[stop : min(stop + 2, last)]
    if not after:
        return False
    if after[0].isalnum() or after[0] == "_":
        return True
    return len(after) > 1 and after[0] in " -–" and (after[1].isupper() or after[1].isdigit())
