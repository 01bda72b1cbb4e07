"""Finds the dump files that a user names, by the names that Wikimedia gives its files.

Source: https://meta.wikimedia.org/wiki/Data_dumps/Dump_format and the lists of files of the dumps.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from nerbert.errors import UserError
from nerbert.storage import files

_INDEX = re.compile(r"index\d*\.txt")
_DUMP = re.compile(r"\.xml(?!\.(md5|sha1))(?![a-z])")
"""`x.xml`, `x.xml.bz2`, `x.xml-p1p41242.bz2`."""
_WIKIMEDIAS = re.compile(
    r"(?P<dump>.+wiki.*-(?:\d{8}|latest))"
    r"-pages-(?P<kind>articles|meta-current|meta-history)(?P<multistream>-multistream)?"
    r"(?P<part>\d*)\.xml(?P<pages>-p\d+p\d+)?.*"
)
_LOGGER = logging.getLogger("nerbert")


def find_dumps(patterns: Sequence[str]) -> list[str]:
    """Finds the dump files that paths, globs and folders name; numbers in names are compared.

    Index files are left out, and in a folder all files that are no XML.

    Raises:
        UserError: a path, glob or folder names no file, or two files have the same pages.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        try:
            there = files.find(pattern)
        except OSError as error:
            raise UserError(f"--dump {pattern}: cannot be read ({error}); check the path") from None
        names = [path for path in there if not _INDEX.search(files.name(path))]
        if names != [pattern] and not any(sign in files.name(pattern) for sign in "*?["):
            names = _in_folder(pattern, names)
        if not names:
            raise UserError(f"--dump {pattern}: no such file; give a path, a glob or a directory")
        found.update(dict.fromkeys(names))
    dumps = sorted(found, key=_natural)
    _check_once(dumps)
    return dumps


def _in_folder(folder: str, paths: Sequence[str]) -> list[str]:
    dumps = [path for path in paths if _DUMP.search(files.name(path))]
    if others := sorted(set(paths) - set(dumps)):
        _LOGGER.info(
            "--dump %s: %d files that are no XML are left out, such as %s",
            *(folder, len(others), files.name(others[0])),
        )
    return dumps


def _check_once(paths: Sequence[str]) -> None:
    """Checks that no file has the pages of another one, as far as the names say.

    Raises:
        UserError: a whole dump is beside its parts, two kinds of a dump are given, or a file is
            given twice, once compressed.
    """
    kinds: dict[str, tuple[object, str]] = {}
    unpacked: dict[str, str] = {}
    for path in paths:
        match = _WIKIMEDIAS.fullmatch(files.name(path))
        if match is None:
            continue
        is_whole = not (match["part"] or match["pages"])
        kind = (match["kind"], match["multistream"], is_whole)
        first, other = kinds.setdefault(match["dump"], (kind, path))
        if first == kind:
            other = unpacked.setdefault(re.sub(r"\.(bz2|gz|xz)$", "", match[0]), path)
            if other == path:
                continue
        raise UserError(f"--dump {path}: has the pages of {other}, too; give one of the two")


def _natural(name: str) -> list[tuple[int, int, str]]:
    pieces = re.split(r"(\d+)", name)
    return [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in pieces]
