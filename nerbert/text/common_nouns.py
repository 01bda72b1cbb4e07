"""Common nouns of languages that write all nouns with a capital, learnt from the dump itself.

A capital is no sign of a name there. But common nouns stand behind words such as "ein", "jeder" and
"seine", and names hardly do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache, cached_property

DETERMINERS = {
    "de": (
        "der die das dem den des am im zum zur vom beim ins ans aufs".split(),
        "ein eine einer eines einem einen kein keine keiner keines keinem keinen dieser diese "
        "dieses diesem diesen jeder jede jedes jedem jeden jener jene jenes jenem jenen sein seine "
        "seiner seines seinem seinen ihr ihre ihrer ihres ihrem ihren mein meine unser unsere "
        "unserer welcher welche welches welchem welchen manche mancher solche solcher solchen alle "
        "aller allen allem viele vieler vielen einige einiger einigen mehrere mehrerer mehreren "
        "beide beider beiden wenige weniger zwei drei vier fünf sechs zehn".split(),
    )
}
"""Language -> its definite articles, which may stand before a name ("der Rhein"), and what hardly
does."""


_ADJECTIVE = "(?:[a-zäöüß]+(?:e|en|er|es|em) )?"
_WORD = "([A-ZÄÖÜ][a-zäöüß]+)(?!\\w)"
_INSIDE = re.compile(rf"(?<=[a-zäöüß,;:] ){_WORD}")
_LOW = re.compile(r"(?<!\w)[a-zäöüß]{3,}(?!\w)")
_ABSTRACT = re.compile(
    r"\w{3,}(?:ung|heit|keit|schaft|tion|ität|ismus|logie|gra[pf]h?ie|enz|ment)(?:s|en|e)?"
)
"""Endings of common nouns: "Verwaltungen", "Freiheit"."""
_OF_PLACES = re.compile(
    r"\w+(?:stadt|reich|kirchen|hausen|brück|brücken?|hafen|stein|insel|strand|städte|hütte|mühle|"
    r"hofen|graben|union)"
)
"""Nouns that names of places end with, too: "Österreich" is no kind of "Reich"."""
_SHARE = 0.3
"""Least share of the occurrences of a common noun that a determiner or article stands before."""
_LOWER = 0.2
"""Share of a word in lower case that makes it an adjective, too: "Europäische", "Alte"."""
_TAIL = 5
"""Letters of a noun at the end of a compound."""
_HEAD = 3
"""Letters in front of it."""


@cache
def _behind_determiner() -> re.Pattern[str]:
    words = "|".join(word for kinds in DETERMINERS.values() for kind in kinds for word in kind)
    return re.compile(rf"(?<!\w)(?i:{words}) {_ADJECTIVE}$")


@dataclass(frozen=True)
class CommonNouns:
    """Common nouns, in the forms that a sample of texts has.

    Attributes:
        words: the nouns, with their capital.
    """

    words: frozenset[str] = frozenset()

    @classmethod
    def train(cls, texts: Iterable[str], language: str) -> CommonNouns:
        """Counts what stands before the capitalised words of some texts."""
        if language not in DETERMINERS:
            return cls()
        definite, indefinite = DETERMINERS[language]
        patterns = [
            re.compile(rf"(?<!\w)(?i:{'|'.join(words)}) {_ADJECTIVE}{_WORD}")
            for words in (definite, indefinite)
        ]
        behind_article, behind_others, total, low = (Counter[str]() for _ in range(4))
        for text in texts:
            behind_article.update(patterns[0].findall(text))
            behind_others.update(patterns[1].findall(text))
            total.update(_INSIDE.findall(text))
            low.update(_LOW.findall(text))
        return cls(
            frozenset(
                word
                for word, count in behind_others.items()
                if count + behind_article[word] >= _SHARE * total[word]
                and low[word.lower()] <= _LOWER * total[word]
            )
        )

    def without(self, names: Collection[str]) -> CommonNouns:
        """The nouns that are none of some names."""
        return CommonNouns(self.words.difference(names))

    def __bool__(self) -> bool:
        """Whether any noun was learnt."""
        return bool(self.words)

    @cached_property
    def _tails(self) -> frozenset[str]:
        return frozenset(word.lower() for word in self.words if len(word) >= _TAIL)

    def has(self, word: str) -> bool:
        """Whether a word is a common noun, or ends with one: "Ermächtigungsgesetz".

        >>> CommonNouns(frozenset(["Gesetz"])).has("Parteispendengesetz")
        True
        """
        if word in self.words:
            return True
        if not self.words or not word.istitle() or _OF_PLACES.fullmatch(word):
            return False
        if _ABSTRACT.fullmatch(word):
            return True
        return any(word[start:] in self._tails for start in range(_HEAD, len(word) - _TAIL + 1))

    def describe(self, text: str, title: str) -> bool:
        """Whether a text is no name of what has a title, but says something about it.

        "Nachbarland" and "Hamburger" may lead to a country and to Hamburg.
        """
        if not self.words or text in title:
            return False
        is_from_there = text.endswith("er") and text[:-2] == title
        return is_from_there or all(word.islower() or self.has(word) for word in text.split())

    def are_concept(self, text: str, before: str) -> bool:
        """Whether a text ends with a common noun, or is one word that an article stands before.

        The latter may be a name ("der Rhein"), so it is a sign for a page without a class only.

        Args:
            text: text of a link.
            before: what stands in front of it.
        """
        if not self.words:
            return False
        return self.has(text.rpartition(" ")[2]) or (
            text.isalpha() and _behind_determiner().search(before) is not None
        )


NO_NOUNS = CommonNouns()
"""Those of languages where a capital is the sign of a name."""
