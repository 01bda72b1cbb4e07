"""Sentences with holes, or with left-over markup."""

from __future__ import annotations

from nerbert.text.punkt import Span

_RESIDUE = ("[[", "]]", "{{", "}}")


def holes_by_sentence(spans: list[Span], holes: tuple[int, ...]) -> list[bool]:
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
