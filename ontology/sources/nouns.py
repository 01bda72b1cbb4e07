"""The class of a page by the noun of its first sentence: "Ulm is a city in Germany"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from ontology.classes import lines_of

_BEFORE, _DIRECTLY, _BEHIND, _SILENT = ":", "=", "$", "-"
"""Instead of a class: words in front of the noun, or directly in front of it; words behind it; and
nouns that say nothing."""
_STOP, _HEAD, _MODIFIER, _ADJECTIVE, _OF_NAMES = "!", "^", "&", "~", "+"
"""The same: words at which the first noun phrase ends; where nouns in a row are one name, endings
of words that may follow it, and nouns in front of others ("film and television actor"); nouns
that are adjectives, too, and mean what they say behind an article only ("storico": historian, or
historical); and, where nouns have a capital, endings of adjectives that have one, too
("Hamburger", "Große")."""
_OTHER_NAME = "<"
"""The same: words behind which those in front of a noun give another name ("còn gọi là")."""

_DASHES = "—|–|-"
_BRACKETS = re.compile(r"\s*(?:\([^()]*\)|（[^（）]*）|\[[^][]*\])")
_STRESS = re.compile("[\u0301\u200b\u200e\u200f]")
"""Marks of stress and of direction, which dictionaries write and nobody else."""
_FURTHEST, _NEAR = 300, 90
"""Characters in which the words in front of the noun are, and after these the noun."""
_NUMBER = re.compile(r"\s+(?:\d+\s+)?")
"""What stands between a word such as "is" and a noun directly behind it."""
_LONE = "(?<=[ぁ-ん的個个座条條]){}(?![、，])"
"""Where a noun of one character stands: without more in front of it 県 ends a name (千葉県)."""
_PARTS = re.compile("(?:(?!,| and | or ).)+")
_LISTED = re.compile(r" (?:and|or) |, (?=(?!\w+(?:ed|en|ing) )[\w-]+,? (?:and|or) )")
"""The parts of a list, and what follows one of its nouns if others do."""
_ARTICLE = re.compile(r"\s+(?:\w{1,4}['’]?\s*)?")
"""What stands between a word such as "is" and a noun that is an adjective, too."""
_NO_SPACES = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


class Nouns:
    """Nouns of a language that say what a page is about.

    Attributes:
        classes: class of each noun; None for one that says nothing, such as "part".
        stops: words at which the first noun phrase ends.
    """

    def __init__(self, rows: Mapping[str, Iterable[str]]) -> None:
        """Takes the nouns of each class, and the words in front of them or behind them."""
        groups = {name: list(words) for name, words in rows.items()}
        self._far = _BEFORE in groups
        before = groups.pop(_BEFORE, []) + groups.pop(_DIRECTLY, [])
        not_behind = "".join(rf"(?<!{word}\s)" for word in groups.pop(_OTHER_NAME, []))
        behind = groups.pop(_BEHIND, [])
        silent = dict.fromkeys(groups.pop(_SILENT, []))
        self.stops, heads = groups.pop(_STOP, []), groups.pop(_HEAD, [])
        self._adjectives = frozenset(groups.pop(_ADJECTIVE, []))
        self._modifiers = frozenset(groups.pop(_MODIFIER, []))
        adjectives = "|".join(map(re.escape, groups.pop(_OF_NAMES, [])))
        self._other_noun = (
            re.compile(rf"(?<![\w-])(?![\w-]*(?:{adjectives})\s)[^\W\d_a-zß-ÿ][\w-]+\s")
            if adjectives
            else None
        )
        stop = "|".join(map(re.escape, self.stops))
        marks = "[,;:]" if "," in self.stops else "[;:]"
        self._stop = re.compile(rf"{marks}|(?<![\w-])(?:{stop})(?![\w-])" if stop else marks)
        endings = "|".join(map(re.escape, heads))
        self._follows = re.compile(rf"\W*$|\W*[\w-]*(?:{endings})(?!\w)") if heads else None
        named = {noun: name for name, nouns in groups.items() for noun in nouns}
        any_noun = "|".join(map(_noun, sorted({**silent, **named}, key=len, reverse=True)))
        ends = {form: named[noun] for noun in named for form in _ends_of_compounds(noun)}
        self.classes: dict[str, str | None] = {**ends, **silent, **named}
        words = "|".join(map(re.escape, sorted(before, key=len, reverse=True)))
        self._before = (
            re.compile(rf"(?<!\S){not_behind}(?:{_DASHES}|(?i:{words})(?!\w))") if before else None
        )
        after = rf"\s*(?:{'|'.join(map(re.escape, behind))})" if behind else r"(?![\w-])"
        self._noun = re.compile(rf"({any_noun}){after}")

    @classmethod
    def shipped(cls, language: str) -> Nouns:
        """The nouns of a language, such as "en"; none for most languages."""
        return _shipped(language)

    def class_of(self, title: str, sentence: str) -> str | None:
        """The class that the first sentence of a page states; None if it states none.

        The noun is the first one after a dash or a word such as "is"; of several in a row
        ("football club") the last one. Where the verb is the last word (Japanese, Turkish, Hindi)
        it is the first one in front of a verb.

        Args:
            title: title of the page.
            sentence: first sentence of its text.
        """
        if not self.classes:
            return None
        text, start = _opening(title, sentence)
        noun = self._find(text, start)
        return self.classes[noun[1]] if noun and _names(text, title) else None

    def predicate(self, title: str, sentence: str) -> str | None:
        """What the first sentence of a page says that the page is: the text behind "is".

        None for a sentence that says it in no such way, and for languages without such words.

        Args:
            title: title of the page.
            sentence: first sentence of its text.
        """
        text, start = _opening(title, sentence)
        mark = self._before and self._before.search(text, start, start + _FURTHEST)
        return text[mark.end() :] if mark and _names(text, title) else None

    def _find(self, text: str, start: int) -> re.Match[str] | None:
        """The first noun that stands where it says what the page is."""
        if self._before is None:
            return self._noun.search(text, start)
        for mark in self._before.finditer(text, start, start + _FURTHEST):
            if not self._far:
                between = _NUMBER.match(text, mark.end())
                if between and (noun := self._noun.match(text, between.end())):
                    return noun
                continue
            return self._head(text, mark.end())
        return None

    def _head(self, text: str, start: int) -> re.Match[str] | None:
        """The head of the first noun phrase, if it is a noun of the table.

        The phrase ends at a preposition or a relative pronoun, and in Romance languages at a comma
        or a conjunction. In English it may be a list ("minister, writer and teacher"), of which the
        first noun counts that is the last word of its part: of "film director" the table has "film"
        alone.
        """
        stop = self._stop.search(text, start, start + _NEAR)
        end = stop.start() if stop else min(len(text), start + _NEAR)
        if self._follows is None:
            return self._last_in_row(text, start, end)
        for part in _PARTS.finditer(text, start, end):
            noun = self._last_in_row(text, part.start(), part.end())
            while noun and not self._follows.match(text, noun.end(), part.end()):
                noun = self._last_in_row(text, noun.end(), part.end())
            if noun and not (noun[1] in self._modifiers and _LISTED.match(text, noun.end())):
                return noun
        return None

    def _last_in_row(self, text: str, start: int, end: int) -> re.Match[str] | None:
        """The last of the first nouns of the table that stand side by side: "football club"."""
        # It may have a preposition: "langage de programmation".
        noun = self._noun.search(text, start, end + _NEAR)
        if noun is None or noun.start() >= end:
            return None
        if self._other_noun and self._other_noun.search(text, start, noun.start()):
            return None
        if noun[1] in self._adjectives and not _ARTICLE.fullmatch(text[start : noun.start()]):
            return None
        while noun.end() < end and (following := self._noun.match(text, noun.end() + 1)):
            noun = following
        return noun


def _ends_of_compounds(noun: str) -> list[str]:
    """The forms of a noun behind the rest of a compound, if the table has it so: "-maler"."""
    return [noun[1:], noun[1:].capitalize()] if noun[0] == "-" else []


def _noun(noun: str) -> str:
    """Pattern of a noun, at the start of a word where words have spaces between them."""
    if forms := _ends_of_compounds(noun):
        small, capital = map(re.escape, forms)
        return rf"(?<=[^\W\d_]){small}|(?<=\w-)(?:{small}|{capital})"
    if not _NO_SPACES.match(noun):
        return rf"(?<![\w-]){re.escape(noun)}"
    return _LONE.format(noun) if len(noun) == 1 else noun


_SAME = {"no": "nb", "simple": "en"}
"""Codes of wikis that are written in another one's language."""


@cache
def _shipped(language: str) -> Nouns:
    return Nouns(words_of_languages("nouns.tsv").get(_SAME.get(language, language), {}))


@lru_cache(maxsize=1)  # a page is asked for its class, and then for its phrases
def _opening(title: str, sentence: str) -> tuple[str, int]:
    """A first sentence without brackets, and where the words behind the title begin in it."""
    text = _STRESS.sub("", sentence.replace("’", "'"))
    while (shorter := _BRACKETS.sub("", text)) != text:
        text = shorter
    name = title.partition(" (")[0]
    return text, len(name) if text.startswith(name) else 0


def _names(text: str, title: str) -> bool:
    """Whether a sentence names its page; one that does not is not about it."""
    lower = text.lower()
    return any(word in lower for word in title.partition(" (")[0].lower().split())


@cache
def words_of_languages(table: str) -> dict[str, dict[str, list[str]]]:
    """Language -> class or kind -> words, of a shipped table."""
    words: dict[str, dict[str, list[str]]] = {}
    for line in lines_of(table):
        language, name, cell = line.split("\t")
        words.setdefault(language, {})[name] = cell.split("|")
    return words


def names_by_class(languages: Iterable[str]) -> dict[str, list[str]]:
    """Class -> its names in some languages: labels of the ontology, and nouns of first sentences.

    English names are those of the classes themselves. A noun that is the label of a class
    ("plaats", Place) is no name of another one.

    Args:
        languages: codes of wikis, such as "uk".
    """
    names: dict[str, list[str]] = {}
    for language in sorted({_SAME.get(code, code) for code in languages} - {"en"}):
        labels = words_of_languages("labels.tsv").get(language, {})
        label_texts = {label.lower() for cell in labels.values() for label in cell}
        nouns = words_of_languages("nouns.tsv").get(language, {})
        for name in labels.keys() | {key for key in nouns if key.isalpha()}:
            free = [noun for noun in nouns.get(name, []) if noun.lower() not in label_texts]
            words = (*labels.get(name, []), *(noun.removeprefix("-") for noun in free))
            names.setdefault(name, []).extend(words)
    return {name: sorted(set(words)) for name, words in names.items()}
