"""Marks names without a link: tokens whose tags may be wrong.

Editors link a name only at its first occurrence, and never link a page to itself. The tags of other
occurrences are wrong (outside). Marked tokens can be ignored in the loss.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache

import numpy as np

from nerbert.text.common_nouns import CommonNouns
from nerbert.text.tokens import Tokens
from pipeline.examples.mentions import Bools, Ints
from pipeline.wikitext.english import is_people

# As in page_names, but with a blank before it: "f(x)" is a name.
_BRACKET = re.compile(r" \([^()]+\)$")
_WORD = re.compile(r"\w+")
_PEOPLES = re.compile("(?:ish|ch|ese|iss)$")
"""Words of peoples that are their plurals, too: "the British"."""
# "the German invaded", "German without": what follows a people and is no noun.
_NO_NOUN = re.compile("(?:ed|with|within|without|during|among|against|upon|onto)$")
_IN_MARKS = re.compile("[『《]([^『』《》]+)[』》]|（([ぁ-ゖー・ ]{2,})[、，）]")
"""The title of a work, which Japanese and Chinese put in marks of its own, and how the Japanese
name before a bracket is read: "夏目漱石（なつめ そうせき、"."""
_SHORTEST = 4  # characters of a word of the title that is a name by itself: "Lincoln", not "The"
_LONGEST = 255  # characters of a name; titles have at most 255 bytes in MediaWiki
_KEY = 2  # first characters, by which names are looked up


class PageWords:
    """The words that texts have between spaces."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Takes the texts; their words are found when they are asked for."""
        self.texts = texts
        self._words: dict[int, set[str]] = {}

    def among(self, number: int, words: Iterable[str]) -> set[str]:
        """The words among some that occur in the text with a number."""
        if number not in self._words:
            self._words[number] = set(self.texts[number].split(" "))
        return self._words[number].intersection(words)


class NamesByStart:
    """Names by how they begin: finds those that stand at a place of a text, the longest first.

    It takes time for each length of a name, not for each name: a list of ships or kings links
    thousands that begin alike.
    """

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        """Takes pairs: beginning of a name, and the name; those that are too long are left out."""
        self._names: dict[str, set[str]] = {}
        for start, name in names:
            if len(name) <= _LONGEST:
                self._names.setdefault(start, set()).add(name)
        self._lengths = {
            start: sorted({len(name) for name in group}, reverse=True)
            for start, group in self._names.items()
        }

    def __contains__(self, start: str) -> bool:
        """Whether names begin so."""
        return start in self._names

    def characters(self, number: int) -> set[str]:
        """The characters that the beginnings have at a place: the first ones at 0."""
        return {start[number] for start in self._names}

    def at(self, start: str, text: str, place: int, end: int) -> Iterator[str]:
        """The names that begin so, at a place of a text, and end at `end` at the latest."""
        for length in self._lengths[start]:
            if (
                place + length <= end
                and (name := text[place : place + length]) in self._names[start]
            ):
                yield name


class Names:
    """The names of a page: texts of its links and their last words, its title and its words."""

    def __init__(self, title: str, surfaces: Iterable[str]) -> None:
        """Collects the names.

        Args:
            title: title of the page. A bracket at its end is not part of the name. Its capitalised
                words ("Lincoln") are names, too.
            surfaces: texts of the page's anchors. Their last words may be surnames.
        """
        title = _BRACKET.sub("", title)
        surfaces = set(surfaces)
        last = (
            surface_words[-1]
            for surface in surfaces
            if len(surface_words := _WORD.findall(surface)) > 1
        )
        words = [word for word in (*_WORD.findall(title), *last) if word[0].isupper()]
        names = {title, *(word for word in words if len(word) >= _SHORTEST), *surfaces}
        # A newline follows each sentence, also if it ends with a name of one letter.
        pairs = ((f"{name}\n"[:_KEY], name) for name in names if name.strip())
        self.by_start = NamesByStart(pairs)


@cache
def _upper_case() -> Bools:
    """Whether each character below U+20000 is in upper case; none above is."""
    return np.array([chr(code).isupper() for code in range(0x20000)])


class Unlinked:
    """Whether each token of some sentences may belong to a name without link.

    Attributes:
        marked: the mark of each token.
    """

    def __init__(self, tokens: Tokens, words: Sequence[str], tags: Ints) -> None:
        """Marks nothing yet.

        Args:
            tokens: tokens of the sentences.
            words: the tokens themselves.
            tags: label ids of the tokens, 0 for outside; tagged tokens are never marked.
        """
        self._tokens, self._text, self._words = tokens, tokens.text, words
        self._starts, self._ends = tokens.starts.tolist(), tokens.ends.tolist()
        self._bounds, self._is_free = tokens.bounds.tolist(), (tags == 0).tolist()
        self.marked = [False] * len(words)

    def mark_capitals(self) -> None:
        """Marks words with a capital: the sign of a name inside of a sentence."""
        codes = np.frombuffer(self._text.encode("utf-32-le", "surrogatepass"), np.uint32)
        starts, ends = self._tokens.starts, self._tokens.ends
        heads = codes[starts]
        is_upper = _upper_case()[np.minimum(heads, len(_upper_case()) - 1)]
        is_i = (heads == ord("I")) & (ends - starts == 1)
        # "L'", an elided article; NLTK parts all other words from an apostrophe at their end.
        is_elided = np.isin(codes[ends - 1], (ord("'"), ord("’")))
        self.marked = (is_upper & ~is_i & ~is_elided & np.array(self._is_free, bool)).tolist()

    def unmark_first(
        self, sentences: range, words: PageWords, page: int, common: Collection[str] = ()
    ) -> None:
        """Unmarks the first words of sentences that the page has in lower case, too.

        Args:
            sentences: numbers of the sentences of a page.
            words: words of the texts of the pages.
            page: number of the page.
            common: words that are frequent in lower case, which are no names anywhere.
        """
        low: dict[int, str] = {}
        for sentence in sentences:
            for token in range(*self._bounds[sentence : sentence + 2]):
                if self._words[token][0].isalnum():
                    if self.marked[token]:
                        low[token] = self._words[token].lower()
                    break
        in_lower_case = words.among(page, low.values())
        for token, word in low.items():
            self.marked[token] = word not in in_lower_case and word not in common

    def unmark_nouns(self, sentences: range, nouns: CommonNouns) -> None:
        """Unmarks common nouns, in a language that writes them with a capital."""
        if nouns:
            for token in range(self._bounds[sentences.start], self._bounds[sentences.stop]):
                if self.marked[token] and nouns.has(self._words[token]):
                    self.marked[token] = False

    def mark_names(self, sentences: range, names: Names) -> None:
        """Marks the names of a page.

        A name matches if it begins and ends at boundaries of tokens and none of its tokens is
        tagged. Of several names at one place the longest matches.

        Args:
            sentences: numbers of the sentences of the page.
            names: its names.
        """
        first, last = self._bounds[sentences.start], self._bounds[sentences.stop]
        firsts, by_start, text = names.by_start.characters(0), names.by_start, self._text
        free = first  # first token after the last name
        for token in [n for n in range(first, last) if self._words[n][0] in firsts]:
            start = self._starts[token]
            key = text[start : start + _KEY]
            if token < free or key not in by_start:
                continue
            for name in by_start.at(key, text, start, len(text)):
                after = bisect_left(self._ends, start + len(name), token, last) + 1
                is_whole = after <= last and self._ends[after - 1] == start + len(name)
                if is_whole and all(self._is_free[token:after]):
                    self.marked[token:after] = [True] * (after - token)
                    free = after
                    break

    def unmark_before(self, persons: Iterable[int]) -> None:
        """Unmarks what stands in front of a linked person: "President [Lincoln]".

        An editor has left it out of the name.

        Args:
            persons: first tokens of the links to persons.
        """
        bounds = set(self._bounds)
        for token in persons:
            if token not in bounds and self._words[token - 1].removesuffix(".").isalpha():
                self.marked[token - 1] = False

    def unmark_adjectives(self, language: str, common: Collection[str]) -> None:
        """Unmarks words of peoples in front of a noun: "a German physicist".

        They are none of "in German", "the Greeks" and "the British held", which may be mentions.

        Args:
            language: code of the language; only English ones are known.
            common: frequent words; in front of these the word may be the name of a language.
        """
        marked = [token for token, is_marked in enumerate(self.marked) if is_marked]
        for token in marked:
            word = self._words[token]
            if word.endswith("s") or not is_people(word, language):
                continue
            sentence = bisect_right(self._bounds, token) - 1
            first, last = self._bounds[sentence : sentence + 2]
            if token > first:
                before = token - 1
                if self.marked[before] or not self._is_free[before]:
                    continue
                if self._words[before].lower() == "the" and _PEOPLES.search(word):
                    continue
            following = self._words[token + 1] if token + 1 < last else ""
            is_noun = following.isalpha() and not _NO_NOUN.search(following)
            if is_noun and following.islower() and following not in common:
                self.marked[token] = False

    def mark_spans(self, spans: Iterable[tuple[int, int, int]]) -> None:
        """Marks the tokens that parts of them name: sentence, start and end of each, in characters.

        Args:
            spans: the names; number -1 for no sentence of these.
        """
        for sentence, start, end in spans:
            if sentence >= 0:
                base = int(self._tokens.bases[sentence])
                first = bisect_right(self._ends, base + start)
                after = bisect_left(self._starts, base + end)
                for token in range(first, after):
                    self.marked[token] = self._is_free[token]

    def mark_in_marks(self, texts: Sequence[str]) -> None:
        """Marks titles of works and readings of names in the texts of the sentences."""
        for number, text in enumerate(texts):
            if "』" in text or "》" in text or "（" in text:
                matches = _IN_MARKS.finditer(text)
                self.mark_spans((number, *match.span(match.lastindex or 0)) for match in matches)

    def unmark_dates(self, calendar: frozenset[str]) -> None:
        """Unmarks months and the like beside a number.

        Args:
            calendar: words of dates in this language.
        """
        for token in [n for n, word in enumerate(self._words) if word in calendar]:
            sentence = bisect_right(self._bounds, token) - 1
            first, last = self._bounds[sentence : sentence + 2]
            beside = self._words[max(first, token - 1) : min(last, token + 2)]
            if any(map(str.isdigit, beside)):
                self.marked[token] = False
