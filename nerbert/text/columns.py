"""CoNLL-like column files: one token per line, blank lines between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from nerbert.storage.files import open_decompressed

_SPACES = re.compile(" +")
_TAG = re.compile(r"O|[BIMESLU]-.*\S")
_COMMENT = re.compile(r"#.*|IMGID:\S+")
"""A line without a tag that is no token: a comment, or the image of a post on Twitter."""
_OUTSIDE, _INSIDE = re.compile(r"\*|\([^()*]+[*)]"), re.compile(r"\*\)?")
"""Column of OntoNotes outside of a name, `*`, `(GPE*` or `(GPE)`, and inside, `*` or `*)`."""
_LANGUAGE = re.compile(r"[a-z]{2,}(?:-[a-z]+)*:")
_INDEXED = 0.9
"""Share of the lines whose first column must count the tokens of its sentence to be an index."""

_Line = tuple[int, list[str]]
"""Number of a line, and its columns."""


@dataclass(frozen=True)
class Sentence:
    """One sentence: its tokens and their tags."""

    tokens: list[str]
    tags: list[str]

    def __str__(self) -> str:
        """`Bern/B-City is/O old/O`."""
        return " ".join(map("/".join, zip(self.tokens, self.tags, strict=True)))


def read_columns(path: str) -> Iterator[Sentence]:
    """Reads the sentences of a column file, which may be compressed (.xz, .bz2, .gz).

    Raises:
        ValueError: a line is neither a token with a tag, nor blank, nor a comment.
        OSError: the file cannot be read.
    """
    with open_decompressed(path) as file:
        content = file.read()
    yield from parse_columns(content, path)


def check_columns(path: str) -> None:
    """Checks that all of a column file can be read; raises as `read_columns`."""
    for _ in read_columns(path):
        pass


def parse_columns(content: bytes, where: str) -> Iterator[Sentence]:
    """Reads the sentences of column text in UTF-8 or Latin-1.

    The last column is the tag; in files of two columns whose first one is, that one (the sets of
    MIT). Tabs separate the columns of a line that has a tab, spaces those of other lines. A first
    column that counts the tokens of each sentence is ignored, as are comments (`# ...`, `IMGID:1`)
    and a prefix that all tokens share (`en:EU`, as in PAN-X); `-DOCSTART-` ends a sentence. In
    OntoNotes (`*_gold_conll` of CoNLL-2012, with lines `#begin document`), the fourth column is the
    token, and the eleventh has the names in brackets.

    Args:
        content: the text.
        where: name of the file, for errors.

    Raises:
        ValueError: a line is none of these, or no line holds a token and a tag.
    """
    lines = [(line, _columns(line)) for line in _decoded(content, where).split("\n")]
    if any(line.startswith("#begin document") for line, _ in lines):
        lines = list(_ontonotes(lines, where))
    if _is_tag_first([columns for _, columns in lines if columns]):
        lines = [(line, columns and columns[::-1]) for line, columns in lines]
    sentences = list(_sentences(lines, where))
    if not sentences:
        raise ValueError(f"{where}: no line with a token and a tag (CoNLL columns expected)")
    indexed = _is_indexed(sentences)
    tokens = [[_token(line, indexed, where) for line in lines] for lines in sentences]
    start = len(_shared_prefix(tokens))
    for words, lines_here in zip(tokens, sentences, strict=True):
        yield Sentence([word[start:] for word in words], [columns[-1] for _, columns in lines_here])


def _ontonotes(
    lines: Iterable[tuple[str, list[str] | None]], where: str
) -> Iterator[tuple[str, list[str] | None]]:
    """The lines with two columns, token and tag, instead of those of CoNLL-2012."""
    name = ""  # type of the name that is open
    for number, (line, columns) in enumerate(lines, start=1):
        if line.startswith("#"):
            columns = None
        mark = columns[10] if columns and len(columns) > 10 else ""
        fits = (_INSIDE if name else _OUTSIDE).fullmatch(mark) if columns else not name
        if not fits:
            raise ValueError(f"{where}: line {number}: column 11 must be *, (X*, *) or (X)")
        if columns:
            name = mark.strip("()*") or name
            begins = mark.startswith("(")
            columns = [columns[3], f"{'B' if begins else 'I'}-{name}" if name else "O"]
            name = "" if mark.endswith(")") else name
        yield line, columns


def _is_tag_first(lines: Sequence[Sequence[str]]) -> bool:
    """Whether the first of two columns is the tag."""
    first = sum(len(line) == 2 and _is_tag(line[0]) and not _is_tag(line[1]) for line in lines)
    return first > sum(_is_tag(line[-1]) for line in lines)


@lru_cache(maxsize=4096)
def _is_tag(column: str) -> bool:
    return _TAG.fullmatch(column) is not None


def _shared_prefix(sentences: Sequence[Sequence[str]]) -> str:
    """The language that all tokens of a file begin with, such as `en:`; empty if there is none."""
    match = _LANGUAGE.match(sentences[0][0])
    prefix = match[0] if match else ""
    return (
        prefix
        if prefix and all(word.startswith(prefix) for row in sentences for word in row)
        else ""
    )


def _sentences(lines: Iterable[tuple[str, list[str] | None]], where: str) -> Iterator[list[_Line]]:
    """The lines of each sentence."""
    block: list[_Line] = []
    for number, (line, columns) in enumerate(lines, start=1):
        if columns is None:
            if block:
                yield block
            block = []
        elif len(columns) > 1 and _is_tag(columns[-1]):
            block.append((number, columns))
        elif not _COMMENT.fullmatch(line.strip()):
            raise ValueError(
                f"{where}: line {number}: {line.strip()[:40]!r} is no token with a tag; the last "
                "column must be O, or B-, I-, M-, E-, S-, L- or U- and a type"
            )
    if block:
        yield block


def _is_indexed(sentences: Sequence[Sequence[_Line]]) -> bool:
    """Whether the first column of a file counts the tokens of each sentence, from 0 or 1."""
    lines = counted = 0
    for sentence in sentences:
        first = sentence[0][1][0]
        start = int(first) if first in ("0", "1") else -1
        lines += len(sentence)
        counted += sum(
            len(columns) > 2 and columns[0] == str(start + place)
            for place, (_, columns) in enumerate(sentence)
        )
    return counted > _INDEXED * lines


def _token(line: _Line, indexed: bool, where: str) -> str:
    number, columns = line
    if indexed and not (len(columns) > 2 and columns[0].isdecimal()):
        raise ValueError(
            f"{where}: line {number}: begins with {columns[0]!r}, but the first column of this "
            "file is the number of the token"
        )
    return columns[indexed]  # it may be empty: some sets have lost the characters of a token


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


def _columns(line: str) -> list[str] | None:
    """Columns of a line; None for a line that ends a sentence."""
    line = line.rstrip(" \t\r")
    if not line.strip() or line.startswith("-DOCSTART-"):
        return None
    return line.split("\t") if "\t" in line else _SPACES.split(line)
