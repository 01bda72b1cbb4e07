"""CoNLL-like column files: one token per line, blank lines between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nerbert.files import open_decompressed

_SPACES = re.compile(" +")
_TAG = re.compile(r"O|[BIESLU]-\S+")


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
        ValueError: no line of the file holds a token and a tag.
        OSError: the file cannot be read.
    """
    with open_decompressed(path) as file:
        content = file.read()
    yield from parse_columns(content, path)


def parse_columns(content: bytes, where: str) -> Iterator[Sentence]:
    """Reads the sentences of column text in UTF-8, or in Latin-1 if it is not valid UTF-8.

    The last column is the tag. Tabs separate the columns of a line that has a tab, spaces those of
    other lines. A leading index column is ignored, lines without a tag (comments, `IMGID:1`) are
    skipped, and `-DOCSTART-` ends a sentence.

    Args:
        content: the text.
        where: name of the file, for errors.

    Raises:
        ValueError: no line holds a token and a tag.
    """
    sentence = Sentence([], [])
    empty = True
    for line in _decoded(content).split("\n"):
        columns = _columns(line)
        if columns is None:
            if sentence.tokens:
                yield sentence
                sentence = Sentence([], [])
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
    """Columns of a line; None for a line that ends a sentence."""
    line = line.rstrip(" \t\r")
    if not line.strip() or line.startswith("-DOCSTART-"):
        return None
    return line.split("\t") if "\t" in line else _SPACES.split(line)
