"""The lines of column files: each has a token and its tag, or ends a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator

_SPACES = re.compile(" +")
_LINE_END = re.compile(r"\r\n|\r|\n")
_TAG = re.compile(r"[Oo]|[BIMESLUbi][-_].*\S")
_COMMENT = re.compile(r"# *[\w:.-]+ *=(\s.*)?")
"""A comment of CoNLL-U: `# text = ...`."""
_IMAGE = re.compile(r"IMGID:\S+")
"""The image of a post on Twitter, on a line of its own."""
_HEADER = re.compile(r"#? *(?:global\.columns *=)? *")
"""Start of a line with names of columns, as in CoNLL-U Plus."""
_OUTSIDE, _INSIDE = re.compile(r"\*|\([^()*]+[*)]"), re.compile(r"\*\)?")
"""Column of OntoNotes outside of a name, `*`, `(GPE*` or `(GPE)`, and inside, `*` or `*)`."""


@dataclass(frozen=True)
class Line:
    """A line: its number from 1, its text, and its cells; None if it ends a sentence."""

    number: int
    text: str
    cells: list[str] | None


def chosen_columns(text: str) -> tuple[str, str]:
    """The columns of words and tags in "word=2,tag=3": numbers from 1, or names.

    Raises:
        ValueError: the text has another form.
    """
    match = re.fullmatch(r"word=([^,=]+),tag=([^,=]+)", text)
    if not match or match[1] == match[2] or "0" in match.groups():
        raise ValueError("write word=2,tag=3: two columns, by number from 1 or by name")
    return match[1], match[2]


def _checked(text: str | None) -> str | None:
    if text is not None:
        chosen_columns(text)
    return text


ColumnsText = Annotated[str | None, AfterValidator(_checked)]
"""Type of an option: which columns are read, in the form that `chosen_columns` takes."""


def read_lines(content: bytes, where: str, columns: str | None) -> list[Line]:
    """The lines of a file without comments: the last cell is the tag, the first the word.

    For the arguments and errors, see `nerbert.text.columns.parse_columns`.
    """
    texts = _LINE_END.split(_decoded(content, where))
    lines = [Line(number, text, _cells(text)) for number, text in enumerate(texts, start=1)]
    if any(line.text.startswith("#begin document") for line in lines):
        return list(_ontonotes(lines, where))
    if columns is not None:
        return list(_pairs(lines, *chosen_columns(columns), where))
    lines = _without_comments(lines)
    if _is_tag_first([line.cells for line in lines if line.cells]):
        return [Line(row.number, row.text, row.cells and row.cells[::-1]) for row in lines]
    return lines


def _without_comments(lines: Sequence[Line]) -> list[Line]:
    """The lines without comments. A `#` with the columns of a token, and a tag, is a token."""
    rows = [line.cells for line in lines if line.cells and not line.text.startswith("#")]
    widths = {len(cells) for cells in rows}
    tags = {cells[-1] for cells in rows}
    has_tabs = all("\t" in line.text for line in lines if line.cells and line.text[0] != "#")

    def is_comment(line: Line) -> bool:
        if not line.cells or not line.text.startswith("#"):
            return _IMAGE.fullmatch(line.text.strip()) is not None
        is_text = has_tabs and "\t" not in line.text and line.text.startswith("# ")
        is_row = len(line.cells) in widths or (not rows and len(line.cells) > 1)
        has_tag = is_row and (is_tag(line.cells[-1]) or line.cells[-1] in tags)
        return not has_tag or is_text or _COMMENT.fullmatch(line.text) is not None

    return [line for line in lines if not is_comment(line)]


def _pairs(lines: Iterable[Line], word: str, tag: str, where: str) -> Iterator[Line]:
    """The lines with two columns, word and tag: those that a user chose."""
    names: list[str] | None = None
    if not (word.isdecimal() and tag.isdecimal()):
        lines = iter(lines)
        header = next((line.text for line in lines if line.text.strip()), "")
        names = (_cells(_HEADER.sub("", header, count=1)) or []) + [""]
        for name in (word, tag):
            if name not in names:
                header_text = ", ".join(names[:-1])[:100]
                raise ValueError(f"{where}: no column {name!r}; the first line has {header_text}")
    places = [names.index(name) if names else int(name) - 1 for name in (word, tag)]
    for line in lines:
        cells = line.cells
        is_row = cells is not None and len(cells) > max(places)
        if cells and (_IMAGE.fullmatch(line.text.strip()) or _COMMENT.fullmatch(line.text)):
            continue
        if cells and line.text.startswith("#") and not is_row:
            continue
        pair = [cells[place] for place in places] if cells and is_row else cells and cells[:1]
        yield Line(line.number, line.text, pair)


def _ontonotes(lines: Iterable[Line], where: str) -> Iterator[Line]:
    """The lines with two columns, token and tag, instead of those of CoNLL-2012."""
    name = ""  # type of the mention that has begun and not ended
    for line in lines:
        cells = None if line.text.startswith("#") else line.cells
        mark = cells[10] if cells and len(cells) > 10 else ""
        fits = (_INSIDE if name else _OUTSIDE).fullmatch(mark) if cells else not name
        if not fits:
            raise ValueError(f"{where}: line {line.number}: column 11 must be *, (X*, *) or (X)")
        if cells:
            name = mark.strip("()*") or name
            begins = mark.startswith("(")
            cells = [cells[3], f"{'B' if begins else 'I'}-{name}" if name else "O"]
            name = "" if mark.endswith(")") else name
        yield Line(line.number, line.text, cells)


def _is_tag_first(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of two columns is the tag."""
    first = sum(len(row) == 2 and is_tag(row[0]) and not is_tag(row[1]) for row in rows)
    return first > sum(is_tag(row[-1]) for row in rows)


@lru_cache(maxsize=4096)
def is_tag(column: str) -> bool:
    """Whether a column is O, or a prefix and a type."""
    return _TAG.fullmatch(column) is not None


def _decoded(content: bytes, where: str) -> str:
    """The text in UTF-8; in Latin-1 if most of its lines with other letters are no UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    valid = 0
    invalid: list[int] = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.isascii():
            try:
                line.decode("utf-8")
                valid += 1
            except UnicodeDecodeError:
                invalid.append(number)
    if valid >= len(invalid):
        raise ValueError(
            f"{where}: line {invalid[0]}: no UTF-8, as {valid} other lines are; repair this line"
        )
    return content.decode("latin-1")


def _cells(line: str) -> list[str] | None:
    """Columns of a line; None for a line that ends a sentence."""
    line = line.rstrip(" \t\r")
    if not line.strip() or line.startswith("-DOCSTART-"):
        return None
    return line.split("\t") if "\t" in line else _SPACES.split(line)
