"""Reads named-entity sets from files with any columns and tagging scheme, as strict IOB2."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from itertools import chain
from zipfile import BadZipFile, ZipFile

from finetune.data import json_rows
from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.columns import Sentence, Sentences, parse_columns, read_columns
from nerbert.text.schemes import Scheme

_LOGGER = logging.getLogger("nerbert")


def read(path: str | os.PathLike[str], columns: str | None = None) -> Sentences:
    """Reads the sentences of a file, in strict IOB2. Corrections are logged.

    A file may be:
    - columns that are separated by tabs or spaces, the tag last (or first of two);
    - a zip of such files: all of them, or `FILE.zip:MEMBER`;
    - `.json` or `.jsonl`: see `finetune.data.json_rows.read`.

    Files may be compressed (.xz, .bz2, .gz). Tags may be of any scheme of `nerbert.text.schemes`.

    Args:
        path: path of the file.
        columns: "word=2,tag=3", by number or name; None to recognise them.

    Raises:
        UserError: the file cannot be read, or has none of these formats.
    """
    path = Place(path)
    try:
        sentences = _sentences(path, columns)
    except (OSError, EOFError, ValueError, BadZipFile) as error:
        message = str(error)
        raise UserError(message if path in message else f"{path}: {message}") from error
    log_scheme(path, sentences.scheme)
    return sentences


def log_scheme(where: str, scheme: Scheme) -> None:
    """Logs the scheme of a set, if its tags were converted."""
    if not scheme.strict:
        _LOGGER.info("%s: %s", where, scheme)


def write(sentences: Iterable[Sentence], path: str | os.PathLike[str]) -> None:
    """Writes `token TAB tag` lines, a blank line after each sentence."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for sentence in sentences:
            for token, tag in zip(sentence.tokens, sentence.tags, strict=True):
                file.write(f"{token}\t{tag}\n")
            file.write("\n")


def _sentences(path: Place, columns: str | None) -> Sentences:
    """The sentences of a file of any format."""
    if re.search(r"\.jsonl?(\.\w+)?$", path):
        return json_rows.read(path, columns)
    if match := re.fullmatch(r"(.+\.zip)(?::(.+))?", path):
        return _from_zip(match[1], match[2], columns)
    return read_columns(path, columns)


def _from_zip(path: str, member: str | None, columns: str | None) -> Sentences:
    """Rows of a member of a zip, or of all members in the order of names; a README is skipped."""
    with ZipFile(path) as archive:
        names = [
            name
            for name in sorted(archive.namelist())
            if not name.endswith("/") and "README" not in name
        ]
        if member is not None and member not in names:
            raise ValueError(f"{path}:{member}: not in the archive, which has {', '.join(names)}")
        members = [
            parse_columns(archive.read(name), f"{path}:{name}", columns)
            for name in ([member] if member else names)
        ]
    schemes = " and ".join(sorted({member_rows.scheme.name for member_rows in members}))
    scheme = Scheme(schemes, sum(member_rows.scheme.opened for member_rows in members))
    return Sentences(chain.from_iterable(members), scheme)
