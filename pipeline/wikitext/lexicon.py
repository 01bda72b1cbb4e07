"""The proper nouns of a Japanese text, by the dictionary of MeCab; of the extra `ja`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

LANGUAGE = "ja"
"""The language whose names have neither capitals nor spaces around them, and that has a lexicon."""


@cache
def _tagger() -> Any:
    from fugashi import Tagger  # of the extra `ja`

    return Tagger()


def is_installed() -> bool:
    """Whether the lexicon can be used."""
    try:
        _tagger()
    except (ImportError, RuntimeError):  # RuntimeError: without a dictionary
        return False
    return True


def has_proper_noun(text: str) -> bool:
    """Whether a word of a text is a proper noun, or in no dictionary.

    >>> [has_proper_noun(text) for text in ("夏目漱石", "数学", "東京大学")]
    [True, False, True]
    """
    return any(word.is_unk or word.feature.pos2 == "固有名詞" for word in _tagger()(text))


def proper_nouns(text: str) -> Iterator[tuple[int, int]]:
    """Finds the words that are proper nouns, or in no dictionary and written as names may be.

    Yields:
        Start and end of each.

    >>> list(proper_nouns("km 1990年のジョーンズと山田"))
    [(9, 14), (15, 17)]
    """
    end = 0
    for word in _tagger()(text):
        start = text.index(word.surface, end)
        end = start + len(word.surface)
        is_unknown = word.is_unk and word.surface[0].isalpha() and not word.surface.islower()
        if is_unknown or word.feature.pos2 == "固有名詞":
            yield start, end
