"""Splits Japanese sentences of characters into words by MeCab; of the extra `ja`.

Source: Ushio and Camacho-Collados 2021 (T-NER), section 4.1.1; the tags as in an early version of
its released code (github.com/asahi417/tner, mecab_wrapper.py).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from typing import Any

from nerbert.errors import UserError, install
from nerbert.text.columns import Sentence
from nerbert.text.schemes import to_iob2

_LOGGER = logging.getLogger("nerbert")


@cache
def _tagger() -> Any:
    from fugashi import Tagger  # of the extra `ja`

    return Tagger()


def in_words(rows: Sequence[Sentence], where: str) -> list[Sentence]:
    """Joins the tokens of each sentence, and splits the text into MeCab's words.

    A word has the tag of its first character. So a mention that begins within a word loses this
    word, and one that lies within a word vanishes. The log counts those that vanish.

    Args:
        rows: sentences.
        where: name of their file.

    Raises:
        UserError: MeCab is not installed.
    """
    try:
        tagger = _tagger()
    except (ImportError, RuntimeError) as error:  # RuntimeError: without a dictionary
        raise UserError(f"words by MeCab need the extra `ja`: {install('ja')}") from error
    split = [_in_words(row, tagger) for row in rows]
    before, after = _mentions(rows), _mentions(split)
    if after < before:
        lost = before - after
        _LOGGER.warning("%s: %d of %d mentions lie within a word of MeCab", where, lost, before)
    return split


def _mentions(rows: Sequence[Sentence]) -> int:
    return sum(tag.startswith("B-") for row in rows for tag in row.tags)


def _in_words(row: Sentence, tagger: Any) -> Sentence:
    text = "".join(row.tokens)
    of_character = [
        tag if place == 0 else tag.replace("B-", "I-", 1)
        for token, tag in zip(row.tokens, row.tags, strict=True)
        for place in range(len(token))
    ]
    words, tags = [], []
    end = 0
    for word in tagger(text):
        start = text.index(word.surface, end)  # MeCab leaves out spaces
        end = start + len(word.surface)
        words.append(word.surface)
        tags.append(of_character[start])
    return Sentence(words, to_iob2(tags))
