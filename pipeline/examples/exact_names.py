"""Finds names that do not begin with a capital, by what stands beside them.

A script without capitals does not say where a name ends. In Japanese it is where the kind of letter
changes: "日本" is a name in "日本では", and a part of one in "日本海". In Chinese a particle or a
mark says so, elsewhere the blank between words, to which Korean adds its particles.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from pipeline.examples.name_search import DIRECT
from pipeline.examples.unlinked import NamesByStart, PageWords
from pipeline.wikitext.names import WITHOUT_CAPITALS

Ints = npt.NDArray[np.int64]

_KEY = 2
"""First characters of a name; a name of one character is a word too often."""
_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_LATIN = "0-9A-Za-z\u00c0-\u024f\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
_JOINTS = "\u00b7\u30fb=\uff1d\u30a0-"
"""What stands between the words of one name: "ジョン・レノン"."""
_PARTICLES = (
    "的了是在和与與及於于为為从從被把也都而但或之其此该該由以因将將并並等到对對向至即则則若且乃"
)
"""Chinese words of grammar, which stand beside names and hardly begin or end one."""
_OTHER = (
    r"[^\W_]|[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f"
    r"\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a4d\u0a81-\u0acd\u0b01-\u0b56\u0b82-\u0bcd\u0c00-\u0c56"
    r"\u0c81-\u0cd6\u0d00-\u0d4d\u0dca-\u0ddf\u0e31-\u0e4e\u0eb1-\u0ecd\u0f71-\u0f87\u102b-\u103e"
    r"\u17b4-\u17d3]"
)
"""Letters, digits, and the vowel signs that are no letters for Python."""
KOREAN_END = re.compile(
    r"(?:[은는이가을를의에로와과도만인]|에서|에게|에는|에도|에서는|으로|까지|부터|보다|처럼|이다|이며|이고"
    r"|이라는|라는|에서의|으로는|와의|과의|이었다|였다)?(?!\w)"
)
"""What may follow a Korean name: a particle, and then the end of the word."""


@cache
def _letters(language: str) -> re.Pattern[str]:
    """A letter that goes on with a name which stands beside it."""
    if language == "ja":
        return re.compile(f"[{_HAN}{_KATAKANA}{_LATIN}{_JOINTS}]")
    if language in CHINESE:
        return re.compile(f"(?![{_PARTICLES}])[{_HAN}{_LATIN}{_JOINTS}]")
    return re.compile(_OTHER)


CHINESE = frozenset("zh yue wuu gan lzh zh-classical zh-yue".split())


class ExactNames:
    """The sentences of some documents, in which names are found that nothing goes on beside."""

    def __init__(
        self, words: PageWords, documents: Ints, starts: Ints, ends: Ints, language: str
    ) -> None:
        """Takes the sentences.

        Args:
            words: texts of the documents.
            documents: document of each sentence, in order, shape (sentences,).
            starts: start of each sentence in its document, shape (sentences,).
            ends: end of each sentence, shape (sentences,).
            language: code of their language.
        """
        self._texts, self._documents = words.texts, documents
        self._starts, self._ends = starts.tolist(), ends.tolist()
        self._letters, self._language = _letters(language), language
        self._has_capitals = language not in WITHOUT_CAPITALS

    def occurrences(
        self, document: int, names: Collection[str], occupied: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, int, int, str]]:
        """Finds names in the sentences of a document that are not a part of a longer name.

        Of several names at one place the longest is found.

        Args:
            document: number of the document.
            names: the names.
            occupied: spans of its anchors, in order.

        Yields:
            Number of the sentence, start and end of the occurrence in the document, and the name.
        """
        by_start = NamesByStart((name[:_KEY], name) for name in names if len(name) >= _KEY)
        text = self._texts[document]
        first, after = np.searchsorted(self._documents, [document, document + 1]).tolist()
        free = anchor = 0
        for start in _places(text, by_start):
            key = text[start : start + _KEY]
            if start < free or key not in by_start or self._is_joined(text, start):
                continue
            while anchor < len(occupied) and occupied[anchor][1] <= start:
                anchor += 1
            row = bisect_right(self._starts, start, first, after) - 1
            if row < first:
                continue
            end = self._ends[row]
            last = min(end, occupied[anchor][0]) if anchor < len(occupied) else end
            for name in by_start.at(key, text, start, last):
                stop = start + len(name)
                if self._ends_at(text, stop):
                    yield row, start, stop, name
                    free = stop
                    break

    def _is_joined(self, text: str, start: int) -> bool:
        """Whether the letter before a place belongs to the same word."""
        before = text[start - 1 : start]
        if self._letters.match(text, start):
            return self._letters.match(before) is not None
        return before.isalnum()

    def _ends_at(self, text: str, stop: int) -> bool:
        """Whether a name may end at a place."""
        if self._language == "ko":
            return KOREAN_END.match(text, stop) is not None
        if (
            self._has_capitals
            and text[stop : stop + 1] in DIRECT
            and text[stop + 1 : stop + 2].isupper()
        ):
            return False
        if self._letters.match(text, stop - 1):
            return self._letters.match(text, stop) is None
        return not text[stop : stop + 1].isalnum()


def _places(text: str, names: NamesByStart) -> Iterator[int]:
    """Where a text has a first character of the names, and then a second one."""
    first, second = (re.escape("".join(sorted(names.characters(n)))) for n in range(_KEY))
    if not first:
        return iter(())
    return (match.start() for match in re.finditer(f"[{first}](?=[{second}])", text))
