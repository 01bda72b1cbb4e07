"""CoNLL-like column files: one token a line, blank lines between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ontology.compressed import open_bytes

_SPACES = re.compile(" +")
_TAG = re.compile(r"O|[BIESLU]-\S+")


@dataclass
class ColumnSentence:
    """One sentence of a column file: its tokens, and its tags as written."""

    tokens: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


def read_columns(path: str) -> Iterator[ColumnSentence]:
    """The sentences of a column file (.xz, .bz2, .gz too).

    Raises:
        ValueError: no line of the file holds a token and a tag.
        OSError: the file cannot be read.
    """
    with open_bytes(path) as file:
        content = file.read()
    yield from parse_columns(content, path)


def parse_columns(content: bytes, where: str) -> Iterator[ColumnSentence]:
    """The sentences of column text, in UTF-8, or else in Latin-1.

    The tag is the last column. Columns are parted by tabs where a line has one, else by white
    space; a leading index column is left out, lines without tag (comments, `IMGID:1`) are passed
    over, `-DOCSTART-` ends a sentence.

    Raises:
        ValueError: no line holds a token and a tag; `where` is named.
    """
    sentence = ColumnSentence()
    empty = True
    for line in _decoded(content).split("\n"):
        columns = _columns(line)
        if columns is None:
            if sentence.tokens:
                yield sentence
                sentence = ColumnSentence()
        elif len(columns) > 1 and _TAG.fullmatch(columns[-1]):
            indexed = len(columns) > 2 and columns[0].isdigit() and "\t" in line
            sentence.tokens.append(columns[1] if indexed else columns[0])
            sentence.tags.append(columns[-1])
            empty = False
    if sentence.tokens:
        yield sentence
    if empty:
        raise ValueError(f"{where}: no line with a token and a tag (CoNLL columns expected)")


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _columns(line: str) -> list[str] | None:
    """Columns of a line; None at the end of a sentence."""
    line = line.rstrip(" \t\r")
    if not line.strip() or line.startswith("-DOCSTART-"):
        return None
    return line.split("\t") if "\t" in line else _SPACES.split(line)
