"""Whether a Japanese text has a proper noun, by the dictionary of MeCab; of the extra `ja`."""

from __future__ import annotations

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
