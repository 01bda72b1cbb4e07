"""What the models of a dump say of a document: its sentences, and which anchors are names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from nerbert.text.common_nouns import CommonNouns
from nerbert.text.punkt import Span
from nerbert.text.sentences import SentenceModel
from pipeline.wikitext.english import is_adjective, without_possessive
from pipeline.wikitext.names import SURE, doubt, is_name, title_at_end

_RESIDUE = ("[[", "]]", "{{", "}}")
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_BEFORE = 40
"""Characters of a determiner and an adjective in front of a link."""


def add_sentences(row: dict[str, Any], model: SentenceModel) -> None:
    """Adds the sentences to the row of an article."""
    text: str = row["text"]
    spans = model.split(text, [anchor[:3] for anchor in row["anchors"]])
    row["sentence_starts"] = [start for start, _ in spans]
    row["sentence_ends"] = [end for _, end in spans]
    row["sentence_holes"] = holes_by_sentence(spans, row["holes"])
    row["sentence_markup"] = markup_by_sentence(text, spans)


def with_doubts(
    anchors: Sequence[tuple[Any, ...]], text: str, language: str, lexicon: bool, nouns: CommonNouns
) -> list[tuple[int, int, str, bool, int]]:
    """The anchors of a text, whether they may be names, and what speaks against it.

    Args:
        anchors: start, end and target of each; what follows in a tuple is not used.
        text: the text.
        language: code of the wiki's language.
        lexicon: whether the Japanese lexicon decides which texts may be names.
        nouns: common nouns of the dump, where they have a capital.
    """
    words: set[str] = set()

    def plain(word: str) -> bool:
        if not words:
            words.update(_WORD.findall(text))
        return word in words

    anchors_with_doubts = []
    for start, end, target, *_ in anchors:
        surface = without_possessive(text[start:end], target, language)
        at_end = title_at_end(surface, target)
        if at_end:
            start += len(surface) - len(at_end)
            surface = at_end
        name = is_name(surface, target, language) and not (
            is_adjective(surface, target, language) or nouns.describe(surface, target)
        )
        against = SURE
        if name:
            before = text[max(0, start - _LONGEST_BEFORE) : start]
            # Vietnamese offices have a capital, too: "chức Tổng thống". Where all nouns have one,
            # they say it themselves, and of a row of an earlier dump only they are asked again.
            concept = (at_end != "" and not nouns) or nouns.are_concept(surface, before)
            against = doubt(
                surface, target, language, plain=plain, lexicon=lexicon, is_concept=concept
            )
        anchors_with_doubts.append((start, start + len(surface), target, name, against))
    return anchors_with_doubts


def holes_by_sentence(spans: list[Span], holes: Sequence[int]) -> list[bool]:
    """For each sentence, whether text is missing in it."""
    flags = [False] * len(spans)
    index = 0
    for hole in holes:
        while index + 1 < len(spans) and spans[index + 1][0] <= hole:
            index += 1
        if spans:
            flags[index] = True
    return flags


def markup_by_sentence(text: str, spans: list[Span]) -> list[bool]:
    """For each sentence, whether markup is left in its paragraph: editors forgot a bracket."""
    if not any(residue in text for residue in _RESIDUE):
        return [False] * len(spans)
    flags = []
    for start, end in spans:
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", end)
        paragraph = text[first : last if last >= 0 else len(text)]
        flags.append(any(residue in paragraph for residue in _RESIDUE))
    return flags
