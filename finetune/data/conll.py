"""Reads named-entity sets from files with any columns and tagging scheme, as strict IOB2."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator
from zipfile import BadZipFile, ZipFile

from finetune.data import json_rows
from nerbert.errors import UserError
from nerbert.text.columns import Sentence, parse_columns, read_columns
from nerbert.text.tags import Scheme, scheme_of, to_iob2

_LOGGER = logging.getLogger("nerbert")


class Sentences(list[Sentence]):
    """The sentences of a file.

    Attributes:
        path: path of the file.
        scheme: tagging scheme of the file. If it is IOB2, `scheme.opened` tags were corrected.
    """

    def __init__(self, sentences: Iterable[Sentence], path: str, scheme: Scheme) -> None:
        super().__init__(sentences)
        self.path = path
        self.scheme = scheme

    @property
    def types(self) -> list[str]:
        """Entity types, sorted."""
        return sorted({tag[2:] for sentence in self for tag in sentence.tags if tag != "O"})


def read(path: str | os.PathLike[str]) -> Sentences:
    """Reads the sentences of a file, in strict IOB2. Corrections are logged.

    A file may be:
    - columns that are separated by tabs or spaces, the tag last (or first of two), of any scheme
      (IOB1, IOB2 with or without stray I-, IOBES, BILOU);
    - a zip of such files: all of them, or `FILE.zip:MEMBER`;
    - `.json` or `.jsonl`: see `finetune.data.json_rows.read`.

    Files may be compressed (.xz, .bz2, .gz).

    Raises:
        UserError: the file cannot be read, or has none of these formats.
    """
    path = os.fspath(path)
    try:
        rows = list(_rows(path))
    except (OSError, EOFError, ValueError, BadZipFile) as error:
        message = str(error)
        raise UserError(message if path in message else f"{path}: {message}") from error
    scheme = scheme_of(tags for _, tags in rows)
    if scheme.name != "IOB2":
        _LOGGER.info("%s: %s converted to IOB2", path, scheme.name)
    elif scheme.opened:
        _LOGGER.info("%s: %d mentions begin with I-, changed to B-", path, scheme.opened)
    return Sentences((Sentence(words, to_iob2(tags)) for words, tags in rows), path, scheme)


def write(sentences: Iterable[Sentence], path: str | os.PathLike[str]) -> None:
    """Writes `token TAB tag` lines, a blank line after each sentence."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for sentence in sentences:
            for token, tag in zip(sentence.tokens, sentence.tags, strict=True):
                file.write(f"{token}\t{tag}\n")
            file.write("\n")


def _rows(path: str) -> Iterator[tuple[list[str], list[str]]]:
    """The tokens and tags in a file of any format, not yet converted."""
    if re.search(r"\.jsonl?(\.\w+)?$", path):
        yield from json_rows.read(path)
    elif match := re.fullmatch(r"(.+\.zip)(?::(.+))?", path):
        yield from _from_zip(match[1], match[2])
    else:
        yield from ((row.tokens, row.tags) for row in read_columns(path))


def _from_zip(path: str, member: str | None) -> Iterator[tuple[list[str], list[str]]]:
    """Rows of a member of a zip, or of all members in the order of names; a README is skipped."""
    with ZipFile(path) as archive:
        names = [
            name
            for name in sorted(archive.namelist())
            if not name.endswith("/") and "README" not in name
        ]
        if member is not None and member not in names:
            raise ValueError(f"{path}:{member}: not in the archive, which has {', '.join(names)}")
        for name in [member] if member else names:
            rows = parse_columns(archive.read(name), f"{path}:{name}")
            yield from ((row.tokens, row.tags) for row in rows)
