"""What a page is, in Wikipedia's own words: "machine learning algorithm", "studio album".

The words are those of a short description ("American computer scientist"), or of the first sentence
of the page ("is a machine learning algorithm that"), or, if that says nothing, those at the end of
its title ("1880 Irish general election"). A phrase ends at a preposition, a comma, a
participle or a relative pronoun. Of its parts ("learning algorithm", "algorithm") those count that
are the phrase of other pages; see `Vocabulary`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise, takewhile

from ontology.sources.nouns import Nouns, words_of_languages

_MOST_WORDS = 4
_SHORTEST = 3
"""Letters of the last word of a title that says what its page is; not "Roe v. Wade"."""
_FURTHEST = 120
"""Characters in which a phrase ends."""
_LEAST_PAGES, _LEAST_WHOLE = 3, 2
"""Pages that have a phrase, and those of them that have it as a whole, not as a part of one."""
_LEAST_SHARE = 1 / 50_000
"""Share of the pages that have a phrase: of a million pages 20."""
_MARKS = r"[;:.!?()\[\]\"“”«»„=/*|<>{}—–]"
_LISTED = re.compile(r"\s*,\s*(?:(?:and|or)\s+)?|\s(?:and|or)\s+")
_LAST_OF_LIST = re.compile(r"\s(?:and|or)\s")
_LOWER = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_NOUN_IN_CAPITALS = re.compile(r"[A-ZÄÖÜ][a-zäöüß]+(?:-[A-ZÄÖÜ][a-zäöüß]+)*")
"""A German noun; "US-amerikanischer" is none."""
_NOUNS_IN_CAPITALS = frozenset({"de"})
_TITLES = "en"
"""The language whose titles are read: those of others were not tried."""


class NounPhrases:
    """Reads the noun phrases of a language that say what a page is.

    Attributes:
        order: where the head of a phrase stands: "last", "first", or in the "middle": behind
            adjectives, and in front of genitives.
    """

    def __init__(self, rules: Mapping[str, Iterable[str]], nouns: Nouns, language: str) -> None:
        """Takes the rules of `phrases.tsv`, and those of the language's class nouns."""
        groups = {name: list(words) for name, words in rules.items()}
        self.order = groups.get("order", ["last"])[0]
        self._nouns = nouns if groups else None
        stops = [*nouns.stops, *groups.get("stop", [])]
        self._stop = re.compile(rf"{_MARKS}|(?<![\w-])(?:{_any(stops)})(?![\w-])")
        self._articles = frozenset(groups.get("article", []))
        self._article = re.compile(rf"(?:{_any(self._articles)})(?:(?<=')|\s+)", re.I)
        through, of = _any(groups.get("through", [])), _any(groups.get("of", []))
        self._through = re.compile(rf"(?:[\w-]+\s+){{0,2}}?(?:{through})s?\s+(?:{of})\s+")
        self._people = frozenset(groups.get("people", []))
        self._silent = frozenset(groups.get("silent", []))
        heads = rf"(?!(?:{_any(groups.get('head', []))})$)"
        self._follows = re.compile(rf"{heads}[\w-]*(?:{_any(groups.get('ending', []))})")
        self._person = re.compile(rf"\w*(?:{_any(groups.get('person', []))})")
        is_german = language in _NOUNS_IN_CAPITALS
        self._word = _NOUN_IN_CAPITALS if is_german else _LOWER
        self._in_capitals, self._reads_titles = is_german, language == _TITLES

    @classmethod
    def shipped(cls, language: str) -> NounPhrases:
        """The noun phrases of a language, such as "en"."""
        return _shipped(language)

    def of_sentence(self, title: str, sentence: str) -> list[str]:
        """Reads what the first sentence of a page says that the page is.

        Args:
            title: title of the page.
            sentence: first sentence of its text.
        """
        predicate = ((self._nouns and self._nouns.predicate(title, sentence)) or "").strip()
        if self.order != "last" and predicate[:1].isupper():
            return []  # a name: "còn gọi là Gia Nã Đại"
        return self.of_description(predicate)

    def of_title(self, title: str) -> list[str]:
        """Reads the words behind a name: "general election" of "1880 Irish general election".

        Titles have capitals in names only. "Homo sapiens" may be a name as a whole.

        >>> NounPhrases.shipped("en").of_title("1916 United States presidential election in Ohio")
        ['presidential election']
        """
        stop = self._stop.search(title)
        words = (title[: stop.start()] if stop else title).split()
        tail = list(takewhile(self._is_word, reversed(words)))[::-1]
        name = words[: len(words) - len(tail)]
        is_name = len(name) > 1 or (name and name[0][0].isdigit())
        if not self._reads_titles or not is_name or not tail or len(tail[-1]) < _SHORTEST:
            return []
        return self.of_description(" ".join(tail))

    def of_description(self, text: str) -> list[str]:
        """Reads a description, such as "city in Texas"; several phrases of a list."""
        text = text.strip()[:_FURTHEST]
        if not self._in_capitals and text.partition(" ")[0] not in self._people:
            text = text[:1].lower() + text[1:]
        if through := self._through.match(text):
            text = text[through.end() :]
        stop = self._stop.search(text)
        if stop is None and len(text) == _FURTHEST:
            return []
        parts = _LISTED.split(text[: stop.start()] if stop else text)
        if len(parts) > 1 and not _LAST_OF_LIST.search(text):
            parts = parts[:1]
        phrases = [phrase for part in parts if (phrase := self._phrase(part))]
        # "Stage and film actor" is no stage.
        unclear = {
            word
            for word, following in pairwise(phrases)
            if " " not in word and " " in following and not self._person.fullmatch(word)
        }
        return [phrase for phrase in dict.fromkeys(phrases) if phrase not in unclear]

    def _phrase(self, text: str) -> str:
        """The words of a phrase that may say what the page is; "" if there is none."""
        while article := self._article.match(text):
            text = text[article.end() :]
        words = text.split()
        if self.order != "last":
            words = list(takewhile(self._is_word, words))[:_MOST_WORDS]
        while words and self._follows.fullmatch(words[-1]):
            words.pop()
        if self.order == "last":
            words = list(takewhile(self._is_word, words[::-1]))[:_MOST_WORDS][::-1]
        return self._checked(words)

    def _is_word(self, word: str) -> bool:
        """Whether a word may be part of a phrase: no name, no number."""
        return self._word.fullmatch(word) is not None and (self._in_capitals or word.islower())

    def _checked(self, words: Sequence[str]) -> str:
        heads = {"last": words[-1:], "first": words[:1]}.get(self.order, words)
        return "" if self._silent.intersection(heads) else " ".join(words)

    def parts(self, phrase: str) -> Iterator[str]:
        """The parts of a phrase that may be phrases by themselves, the whole first.

        >>> list(NounPhrases.shipped("en").parts("debut studio album"))
        ['debut studio album', 'studio album', 'album']
        """
        words = phrase.split()
        n = len(words)
        if self.order == "last":
            spans = [(start, n) for start in range(n)]
        elif self.order == "first":
            spans = [(0, end) for end in range(n, 0, -1)]
        else:
            spans = [(start, end) for end in range(n, 0, -1) for start in range(end)]
        return (
            " ".join(words[start:end]) for start, end in spans if words[start] not in self._articles
        )


class Vocabulary:
    """Counts phrases of pages, and keeps those that several pages have."""

    def __init__(self, rules: NounPhrases) -> None:
        """Starts without phrases."""
        self._rules = rules
        self._pages: Counter[str] = Counter()
        self._whole: Counter[str] = Counter()
        self._size = 0

    def count(self, phrases: Iterable[str]) -> None:
        """Counts the phrases of a page, and their parts.

        Only the phrase of a page with one counts as a whole: "writer and composer" gives two, of
        which the first may be no noun.
        """
        of_page = list(phrases)
        self._size += 1
        self._whole.update(of_page if len(of_page) == 1 else ())
        self._pages.update({part for phrase in of_page for part in self._rules.parts(phrase)})

    def __or__(self, second: Vocabulary) -> Vocabulary:
        """The larger ones of the counts of two sources, which may be about the same pages."""
        together = Vocabulary(self._rules)
        together._pages, together._whole = self._pages | second._pages, self._whole | second._whole
        together._size = max(self._size, second._size)
        return together

    def select(self, phrases: Iterable[str]) -> list[str]:
        """The kept parts of the phrases of a page."""
        return list(dict.fromkeys(part for phrase in phrases for part in self._parts(phrase)))

    def _parts(self, phrase: str) -> list[str]:
        """The parts of a phrase that are kept, the longest first.

        Where the head stands in the middle, it is the first word that ends another phrase.
        """
        kept_parts = [part for part in self._rules.parts(phrase) if self._is_kept(part)]
        if self._rules.order != "middle" or not kept_parts:
            return kept_parts
        ends = {part: phrase.index(part) + len(part) for part in kept_parts}
        return [part for part in kept_parts if ends[part] == min(ends.values())]

    def _is_kept(self, phrase: str) -> bool:
        least = max(_LEAST_PAGES, self._size * _LEAST_SHARE)
        return self._pages[phrase] >= least and self._whole[phrase] >= _LEAST_WHOLE


def _any(words: Iterable[str]) -> str:
    """A pattern of any of some words; of none, it matches nothing."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))) or r"(?!)"


@cache
def _shipped(language: str) -> NounPhrases:
    rules = words_of_languages("phrases.tsv").get(language, {})
    return NounPhrases(rules, Nouns.shipped(language), language)
