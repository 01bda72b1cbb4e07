"""Tagging schemes: any of them becomes strict IOB2 at the border."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_BEGIN = {"S": "B", "U": "B", "E": "I", "L": "I"}
"""What the prefixes of IOBES and BILOU are in IOB2."""

_LAST = "ESLU"


def to_iob2(tags: Sequence[str]) -> list[str]:
    """Strict IOB2 tags with the mentions that conlleval finds.

    A tag that continues no mention of its type opens one. That makes IOB2 of IOB1, and of IOB2 with
    stray I-; the prefixes of IOBES and BILOU are translated, and E-, S-, L-, U- end a mention.

    Source: conlleval.pl (Tjong Kim Sang and Buchholz 2000), start and end of a chunk.

    >>> to_iob2(["I-LOC", "I-LOC", "B-LOC", "O", "S-PER"])
    ['B-LOC', 'I-LOC', 'B-LOC', 'O', 'B-PER']
    """
    result: list[str] = []
    open_type = ""
    for tag in tags:
        prefix, _, name = tag.partition("-")
        if not name:
            result.append("O")
        else:
            continues = _BEGIN.get(prefix, prefix) == "I" and name == open_type
            result.append(f"{'I' if continues else 'B'}-{name}")
        open_type = "" if prefix in _LAST else name
    return result


@dataclass(frozen=True)
class Scheme:
    """How a file is tagged.

    Attributes:
        name: IOB1, IOB2 or IOBES.
        opened: mentions that open with I-, the rule in IOB1, stray in IOB2; in IOBES those that do
            not open with B- or S-.
    """

    name: str
    opened: int

    @property
    def strict(self) -> bool:
        """Whether the tags are strict IOB2 as they are."""
        return self.name == "IOB2" and not self.opened


def scheme_of(sentences: Iterable[Sequence[str]]) -> Scheme:
    """The scheme of tagged sentences.

    In IOB1, B- only parts two mentions of one type; a file that uses it elsewhere is IOB2.
    """
    opened = elsewhere = 0
    ends = False
    for tags in sentences:
        before = "O"
        for tag, found in zip(tags, to_iob2(tags), strict=True):
            prefix, _, name = tag.partition("-")
            ends |= bool(name) and prefix in _LAST
            opened += found[0] == "B" and prefix in "IEL"
            elsewhere += prefix == "B" and before.partition("-")[2] != name
            before = tag
    if ends:
        return Scheme("IOBES", opened)
    return Scheme("IOB1" if opened and not elsewhere else "IOB2", opened)
