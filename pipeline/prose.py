"""Lines -> paragraphs -> text, with what is known of it by offset."""

from __future__ import annotations

import re
from typing import NamedTuple

from pipeline.references import decode_references
from pipeline.scanner import CLOSE, HOLE, MARKERS, NOTE, OPEN, SEPARATOR

ANY_MARKER = re.compile(f"[{MARKERS}]")
_MARKED = re.compile(f"{OPEN}(\\d+){SEPARATOR}|[{CLOSE}{HOLE}{NOTE}]")
_HEADING = re.compile(rf"=.*=[ \t{MARKERS}]*", re.DOTALL)
_SPACES = re.compile(
    r" {2,}| ?[\t\r\f\v\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
    r"[ \t\r\f\v\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"
)
"""White space that is not already one plain space."""
_INVISIBLE = re.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]")
_PUNCTUATION = r"\s,;:/–—-"
_EMPTY_PARENTHESES = re.compile(
    rf" ?[(（\[][{_PUNCTUATION}]*[{HOLE}{NOTE}][{_PUNCTUATION}{HOLE}{NOTE}]*[)）\]]"
)
_BRACKET_AT_MARKER = re.compile(
    rf"[(（\[][{_PUNCTUATION}]*[{HOLE}{NOTE}]|[{HOLE}{NOTE}][{_PUNCTUATION}]*[)）\]]"
)
_LEADING_NOTES = re.compile(rf"([(（])(?:[\s,;:]*{NOTE})+[\s,;:]*")
_TRAILING_NOTES = re.compile(rf"(?:[\s,;:]*{NOTE}\s*)+([)）])")
_SENTENCE_END = re.compile(r"[.!?。．！？…؟۔।:：][\"'”’»)\]」』]*$")


class Anchor(NamedTuple):
    """A wiki link: `text[start:end]` is its text, `target` the normal title it leads to."""

    start: int
    end: int
    target: str


def paragraphs(text: str, list_items: bool) -> list[str]:
    """Paragraphs of a page; headings, table rests and (unless `list_items`) lists left out."""
    found: list[str] = []
    lines: list[str] = []
    for line in text.split("\n"):
        stripped = line.strip()
        first = stripped[:1]
        prose = bool(stripped)
        if first and first in "*#:;=|{-":
            if first in "*#:;" and line[0] == first:
                prose = False
                if list_items and (item := stripped.lstrip("*#:; ")):
                    found += [" ".join(lines), item]
                    lines = []
            elif (
                (first == "=" and len(stripped) > 2 and _HEADING.fullmatch(stripped))
                or first == "|"
                or stripped.startswith(("{|", "----"))
            ):
                prose = False
        if prose:
            lines.append(stripped)
        elif lines:
            found.append(" ".join(lines))
            lines = []
    if lines:
        found.append(" ".join(lines))
    return [paragraph for paragraph in found if paragraph]


class Prose:
    """The text as it grows, paragraph by paragraph, with what is known of it by offset."""

    def __init__(self, targets: list[str]) -> None:
        self._targets = targets
        self._length = 0
        self.pieces: list[str] = []
        self.anchors: list[Anchor] = []
        self.holes: list[int] = []

    def add(self, paragraph: str) -> None:
        """Appends one paragraph with markers in it, on a line of its own."""
        paragraph = decode_references(paragraph)
        marked = ANY_MARKER.search(paragraph) is not None
        if not paragraph.isascii():
            paragraph = _INVISIBLE.sub("", paragraph)
        if marked and (HOLE in paragraph or NOTE in paragraph):
            paragraph = _without_empty_parentheses(paragraph)
        if not paragraph.isascii() or "  " in paragraph or "\t" in paragraph or "\n" in paragraph:
            paragraph = _SPACES.sub(" ", paragraph.replace("\n", " "))
        paragraph = paragraph.strip()
        base = self._length + (1 if self.pieces else 0)
        text = self._place_markers(paragraph, base) if marked else paragraph
        if not text:
            return
        if self.pieces:
            self.pieces.append("\n")
        self.pieces.append(text)
        self._length = base + len(text)

    def _place_markers(self, paragraph: str, base: int) -> str:
        """Text of the paragraph; its anchors and holes are noted at offsets from `base`."""
        text, position = "", 0
        pieces: list[str] = []
        length = 0
        open_anchor: tuple[int, int] | None = None
        anchors: list[tuple[int, int, int]] = []
        holes: list[int] = []
        for match in _MARKED.finditer(paragraph):
            text = paragraph[position : match.start()]
            position = match.end()
            if length == 0 or (pieces and pieces[-1].endswith(" ")):
                text = text.removeprefix(" ")
            if text:
                pieces.append(text)
                length += len(text)
            if match[1]:
                open_anchor = (length, int(match[1]))
            elif match[0] == CLOSE:
                if open_anchor is not None:
                    anchors.append((open_anchor[0], length, open_anchor[1]))
                open_anchor = None
            elif match[0] == NOTE:
                length -= _drop_space_before_point(pieces, paragraph[position : position + 1])
            elif _is_hole("".join(pieces[-8:]), paragraph[position : position + 200]):
                holes.append(length)
        text = paragraph[position:]
        if length == 0 or (pieces and pieces[-1].endswith(" ")):
            text = text.removeprefix(" ")
        text = "".join([*pieces, text]).rstrip()
        self._note(text, base, anchors, holes)
        return text

    def _note(self, text: str, base: int, anchors: list[tuple[int, int, int]],
              holes: list[int]) -> None:  # fmt: skip
        for start, end, index in anchors:
            shown = text[start:end]
            start += len(shown) - len(shown.lstrip())
            end = start + len(shown.strip())
            if start < end:
                self.anchors.append(Anchor(base + start, base + end, self._targets[index]))
        if text:
            self.holes.extend(base + min(hole, len(text)) for hole in holes)


def _without_empty_parentheses(paragraph: str) -> str:
    """Brackets whose content vanished go; separators next to a vanished note go."""

    def replacement(match: re.Match[str]) -> str:
        return HOLE if HOLE in match[0] else NOTE

    if not _BRACKET_AT_MARKER.search(paragraph):
        return paragraph
    paragraph = _EMPTY_PARENTHESES.sub(replacement, paragraph)
    if NOTE in paragraph:
        paragraph = _LEADING_NOTES.sub(r"\1", paragraph)
        paragraph = _TRAILING_NOTES.sub(r"\1", paragraph)
    return paragraph


def _drop_space_before_point(pieces: list[str], following: str) -> int:
    """Takes the space before a note away when punctuation follows it; returns how much went."""
    if pieces and following in (".", ",", ";", ":", "!", "?", ")") and pieces[-1].endswith(" "):
        pieces[-1] = pieces[-1][:-1]
        return 1
    return 0


def _is_hole(before: str, after: str) -> bool:
    """Whether text is missing inside a sentence between `before` and `after`.

    What stands alone before a paragraph or between two sentences (a box, an image) is no hole.
    """
    after = _MARKED.sub("", after).lstrip()
    before = before.rstrip()
    if before and not _SENTENCE_END.search(before):
        return True
    return bool(after) and (after[0].islower() or after[0] in ",;:.)%’'")
