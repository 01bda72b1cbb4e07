"""Joins lines to paragraphs, and paragraphs to a text with anchors and holes at offsets."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

from pipeline.wikitext.inline import decode_references
from pipeline.wikitext.names import named_target
from pipeline.wikitext.preprocess import CLOSE, HOLE, MARKERS, NOTE, OPEN, SEPARATOR

ANY_MARKER = re.compile(f"[{MARKERS}]")
_MARKED = re.compile(f"{OPEN}(\\d+){SEPARATOR}|[{CLOSE}{HOLE}]")
# MediaWiki counts signs on both sides; here it is enough that a line begins and ends with one.
_HEADING = re.compile(rf"=.*=[ \t{MARKERS}]*", re.DOTALL)
_SPACES = re.compile(
    r" {2,}| ?[\t\r\f\v\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
    r"[ \t\r\f\v\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"
)
"""White space that is not already one plain space."""
# Soft hyphens, zero-width spaces, marks of direction: they split words that a reader sees whole.
_INVISIBLE = re.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]")
# What stands between the parts of a bracket, of which templates often leave nothing else.
_PUNCTUATION = r"\s,;:/–—-"
# "Rome ({{lang-it|Roma}}; {{IPA|...}})" without its templates is "Rome (; )".
_EMPTY_PARENTHESES = re.compile(
    rf" ?[(（\[][{_PUNCTUATION}]*[{HOLE}{NOTE}][{_PUNCTUATION}{HOLE}{NOTE}]*[)）\]]"
)
_PUNCTUATION_CHARS = " ,;:/–—-"
_LEADING_NOTES = re.compile(rf"([(（])(?:[\s,;:]*{NOTE})+[\s,;:]*")
_TRAILING_NOTES = re.compile(rf"(?:[\s,;:]*{NOTE}\s*)+([)）])")
# A hole after it lies between sentences, as a missing box does; among them are those of
# Chinese, Arabic, Urdu and Hindi.
_SENTENCE_END = re.compile(r"[.!?。．！？…؟۔।:：][\"'”’»)\]」』]*$")


class Anchor(NamedTuple):
    """A wiki link: `text[start:end]` is its text, `target` the normal title that it leads to.

    See `pipeline.wikitext.names.named_target` for links to sections.
    """

    start: int
    end: int
    target: str


def paragraphs(text: str, list_items: bool) -> list[str]:
    """Paragraphs of a page, without headings, remains of tables, and lists unless `list_items`."""
    blocks: list[str] = []
    lines: list[str] = []
    for line in text.split("\n"):
        stripped = line.strip()
        first = stripped[:1]
        prose = bool(stripped)
        # What begins so may be a list, heading, table or rule; all other lines are prose.
        if first and first in "*#:;=|{-":
            # Only in the first column: " * x" is preformatted text, which MediaWiki shows as it is.
            if first in "*#:;" and line[0] == first:
                prose = False
                if list_items and (item := stripped.lstrip("*#:; ")):
                    blocks += [" ".join(lines), item]
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
            blocks.append(" ".join(lines))
            lines = []
    if lines:
        blocks.append(" ".join(lines))
    return [paragraph for paragraph in blocks if paragraph]


class Prose:
    """Builds the text of a page, paragraph by paragraph.

    Attributes:
        pieces: the text so far.
        anchors: links, at offsets of the text.
        holes: offsets where running text is missing.
    """

    def __init__(self, targets: list[str]) -> None:
        self._targets = targets
        self._length = 0
        self.pieces: list[str] = []
        self.anchors: list[Anchor] = []
        self.holes: list[int] = []

    def add(self, paragraph: str) -> None:
        """Appends a paragraph, which may contain markers, as a line."""
        # Only now: until here `&#91;` must not be read as markup.
        paragraph = decode_references(paragraph)
        if "  " in paragraph or not self._add(paragraph, is_plain=False):
            paragraph = _SPACES.sub(" ", _INVISIBLE.sub("", paragraph).replace("\n", " "))
            self._add(paragraph, is_plain=True)

    def _add(self, paragraph: str, is_plain: bool) -> bool:
        """Appends a paragraph; returns whether it was appended.

        Nearly all paragraphs have only plain single spaces. Others are refused unless `is_plain`,
        so that only they pay for cleaning.
        """
        if not paragraph.isascii():
            if HOLE in paragraph or NOTE in paragraph:
                paragraph = _without_empty_parentheses(paragraph)
                paragraph = _without_notes(paragraph)
            if HOLE in paragraph or f"{SEPARATOR} " in paragraph or f" {CLOSE}" in paragraph:
                if is_plain:
                    self._place_markers(paragraph.strip())
                return is_plain
            if OPEN in paragraph or CLOSE in paragraph:
                return self._place_links(paragraph.strip(), is_plain)
        text = paragraph.strip()
        if is_plain or text.isprintable():
            self._add_text(text)
            return True
        return False

    def _add_text(self, text: str) -> int:
        """Appends a line of text, unless it is empty; returns its offset."""
        base = self._length
        if text:
            # A line is a paragraph: sentences never go over the end of one.
            if self.pieces:
                self.pieces.append("\n")
                base += 1
            self.pieces.append(text)
            self._length = base + len(text)
        return base

    def _place_links(self, paragraph: str, is_plain: bool) -> bool:
        """Appends a paragraph whose markers are all of links, without spaces at their ends.

        A link that another link interrupts is not an anchor.
        """
        text, *links = paragraph.split(OPEN)
        pieces, indices = [text], []
        for link in links:
            index, _, label_and_after = link.partition(SEPARATOR)
            label, close, after = label_and_after.partition(CLOSE)
            indices.append(int(index) if close and label else -1)
            pieces += (label, after if CLOSE not in after else after.replace(CLOSE, ""))
        text = "".join(pieces)
        if not is_plain and not text.isprintable():
            return False
        base = self._add_text(text)
        ends = list(accumulate(map(len, pieces), initial=base))
        targets = self._targets
        self.anchors += [
            Anchor(start, end, named_target(text[start - base : end - base], targets[index]))
            for start, end, index in zip(ends[1:-1:2], ends[2::2], indices, strict=True)
            if index >= 0
        ]
        return True

    def _place_markers(self, paragraph: str) -> None:
        """Appends a paragraph with markers of any kind except notes."""
        pieces: list[str] = []
        length = position = 0
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
            # The neighbourhood is enough, and keeps many holes in one paragraph linear.
            elif _is_hole("".join(pieces[-8:]), paragraph[position : position + 200]):
                holes.append(length)
        text = paragraph[position:]
        if length == 0 or (pieces and pieces[-1].endswith(" ")):
            text = text.removeprefix(" ")
        text = "".join([*pieces, text]).rstrip()
        base = self._add_text(text)
        for start, end, index in anchors:
            label = text[start:end]
            start += len(label) - len(label.lstrip())
            end = start + len(label.strip())
            if start < end:
                target = named_target(text[start:end], self._targets[index])
                self.anchors.append(Anchor(base + start, base + end, target))
        if text:
            self.holes.extend(base + min(hole, len(text)) for hole in holes)


def _without_empty_parentheses(paragraph: str) -> str:
    """Removes brackets whose content is missing, and separators next to notes in brackets."""

    def replacement(match: re.Match[str]) -> str:
        return HOLE if HOLE in match[0] else NOTE

    # The patterns below try every bracket, and few paragraphs need them.
    if not _has_bracket_at_marker(paragraph):
        return paragraph
    paragraph = _EMPTY_PARENTHESES.sub(replacement, paragraph)
    if NOTE in paragraph:
        paragraph = _LEADING_NOTES.sub(r"\1", paragraph)
        paragraph = _TRAILING_NOTES.sub(r"\1", paragraph)
    return paragraph


def _has_bracket_at_marker(paragraph: str) -> bool:
    pieces = paragraph.replace(HOLE, NOTE).split(NOTE)
    return any(
        piece.rstrip(_PUNCTUATION_CHARS).endswith(("(", "（", "[")) for piece in pieces[:-1]
    ) or any(piece.lstrip(_PUNCTUATION_CHARS).startswith((")", "）", "]")) for piece in pieces[1:])


def _without_notes(paragraph: str) -> str:
    """Removes notes; also the space before a note if a space or punctuation follows the note."""
    pieces: list[str] = []
    for text in filter(None, paragraph.split(NOTE)):
        if pieces and text[0] in " .,;:!?)" and pieces[-1].endswith(" "):
            pieces[-1] = pieces[-1][:-1]
        pieces.append(text)
    return "".join(pieces)


def _is_hole(before: str, after: str) -> bool:
    """Whether text is missing inside a sentence between `before` and `after`.

    A missing box or image before a paragraph, or between two sentences, is not a hole.
    """
    after = _MARKED.sub("", after).lstrip()
    before = before.rstrip()
    if before and not _SENTENCE_END.search(before):
        return True
    return bool(after) and (after[0].islower() or after[0] in ",;:.)%’'")
