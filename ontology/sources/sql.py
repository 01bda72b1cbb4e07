"""Reads tables of MediaWiki's SQL dumps: Wikidata ids, descriptions and English titles of pages.

A dump has long INSERT statements with rows such as `(305,'wikibase_item','Q11686834',NULL)`. Each
quote in a string has a backslash, so a quote without one is never inside of a string. The rows that
are wanted are found by the text behind their first value, and the others are not looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from nerbert.storage.places import Place
from ontology.titles import normal_title

Ids = npt.NDArray[np.int64]

_BLOCK = 1 << 22
_HEAD = 1 << 16
_STRING = re.compile(rb"((?:[^'\\]|\\.)*)'")
_ROW_END = re.compile(rb"(?<!\\)(?:\\\\)*'\),\s*\(")
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_LONGEST_ROW = 4096
_LARGEST_QID = (1 << 32) - 1


_COLUMNS = {
    "page_props": ("pp_page", "pp_propname", "pp_value"),
    "langlinks": ("ll_from", "ll_lang", "ll_title"),
}
"""The first columns of each table. Source: MediaWiki, maintenance/tables.json."""
_DATABASE = re.compile(rb"^-- Host: .*\bDatabase: (\w+)", re.MULTILINE)
_COLUMN = re.compile(rb"^\s+`(\w+)`", re.MULTILINE)
_LAST_LINE = b"-- Dump completed"
"""mysqldump ends with this line."""


def check_table(path: Place, table: str, wiki: str | None = None) -> None:
    """Checks that a file is the SQL dump of a table.

    Args:
        path: path of the file.
        table: name of the table, page_props or langlinks.
        wiki: name of the wiki's database, such as enwiki; None if it is not known.

    Raises:
        ValueError: it is not, or it is of another wiki, has other columns, or none of the rows that
            are wanted.
        OSError, EOFError: the file cannot be read.
    """
    head = next(path.read_blocks(_HEAD), b"")
    if f"`{table}`".encode() not in head:
        raise ValueError(f"no SQL dump of the table {table}")
    database = _DATABASE.search(head)
    if wiki and database and database[1].decode() != wiki:
        raise ValueError(f"a table of {database[1].decode()}, and the dump is of {wiki}")
    declared = head.partition(b"CREATE TABLE")[2].partition(b"(")[2]
    columns = tuple(name.decode() for name in _COLUMN.findall(declared))
    needed = _COLUMNS[table]
    if columns and columns[: len(needed)] != needed:
        raise ValueError(f"its columns are {', '.join(columns[:4])}, not {', '.join(needed)}")
    rows: Iterator[object] = (
        read_page_props(path) if table == "page_props" else read_langlinks(path)
    )
    if next(rows, None) is None:
        kind = {"page_props": "a Wikidata id", "langlinks": "an English title"}[table]
        raise ValueError(f"no row with {kind}; is it complete?")


def read_page_props(path: Place, counts: Counter[str] | None = None) -> Iterator[tuple[Ids, Ids]]:
    """Reads the Wikidata ids of pages from a dump of `page_props`, block by block.

    Args:
        path: path of the file.
        counts: is increased by `rows`, and by `truncated` for a file without mysqldump's last line.

    Yields:
        Ids of pages, and their Wikidata ids, without the Q; shapes (rows,).

    Raises:
        ValueError: a row is not as in MediaWiki's table.
        OSError, EOFError: the file cannot be read, or is truncated.
    """
    # Cutting inside an unrelated string value is safe; wanted rows never contain one.
    for block in _pieces(path, lambda block: block.rfind(b"),") + 1, counts):
        before, after = _around(block, b",'wikibase_item','")
        # Test pages have other values than Q ids.
        qids = [text[1 : text.find(b"'")] if text[:1] == b"Q" else b"0" for text in after]
        numbers = [int(text) if text.isdigit() else 0 for text in qids]
        known_qids = np.array([n if n <= _LARGEST_QID else 0 for n in numbers], np.int64)
        pages = _page_ids(path, before)
        if (known_qids > 0).any():
            _count(counts, rows=int((known_qids > 0).sum()))
            yield pages[known_qids > 0], known_qids[known_qids > 0]


def read_descriptions(path: Place) -> Iterator[tuple[Ids, list[str]]]:
    """Reads the short descriptions of pages from a dump of `page_props`, block by block.

    Source: Wikibase's property `wikibase-shortdesc`; the template of the page comes before the
    description of its Wikidata item.

    Args:
        path: path of the file, which `read_page_props` reads without an error.

    Yields:
        Ids of pages, and their descriptions.

    Raises:
        ValueError: a row is not as in MediaWiki's table.
        OSError, EOFError: the file cannot be read, or is truncated.
    """
    for block in _pieces(path, _whole_rows, None):
        before, after = _around(block, b",'wikibase-shortdesc','")
        if before:
            yield _page_ids(path, before), [_text(value) for value in after]


def read_langlinks(
    path: Place, counts: Counter[str] | None = None, language: str = "en"
) -> Iterator[tuple[Ids, list[str]]]:
    """Reads the titles of pages on another wiki from a dump of `langlinks`, block by block.

    Links to sections are left out: the section is about the page, not the page of that title.

    Args:
        path: path of the file.
        counts: as for `read_page_props`.
        language: code of the other wiki.

    Yields:
        Ids of pages, and the normal titles of the pages that they link to.

    Raises:
        ValueError: a row is not as in MediaWiki's table.
        OSError, EOFError: the file cannot be read, or is truncated.
    """
    for block in _pieces(path, _whole_rows, counts):
        before, after = _around(block, f",'{language}','".encode())
        titles = [normal_title(_text(value)) for value in after]
        titled = [number for number, title in enumerate(titles) if title and "#" not in title]
        if titled:
            _count(counts, rows=len(titled))
            yield _page_ids(path, before)[titled], [titles[number] for number in titled]


def _count(counts: Counter[str] | None, **numbers: int) -> None:
    if counts is not None:
        counts.update(numbers)


def _pieces(
    path: Place, end_of_rows: Callable[[bytes], int], counts: Counter[str] | None
) -> Iterator[bytes]:
    """Blocks of a file that end with a whole row."""
    carry = b""
    for block in path.read_blocks(_BLOCK):
        block = carry + block
        end = end_of_rows(block)
        carry = block[end:]
        yield block[:end]
    _count(counts, truncated=int(_LAST_LINE not in carry))
    yield carry


def _whole_rows(block: bytes) -> int:
    """Where the last whole row of a block ends; 0 if none does."""
    start = max(0, len(block) - _LONGEST_ROW)
    ends = [match.end() - 1 for match in _ROW_END.finditer(block, start)]
    return ends[-1] if ends else 0


def _around(block: bytes, text: bytes) -> tuple[list[bytes], list[bytes]]:
    """The bytes before and after each occurrence of a text."""
    pieces = block.split(text)
    return pieces[:-1], pieces[1:]


def _page_ids(path: str, before: Sequence[bytes]) -> Ids:
    """The ids that begin the rows, which are the ends of some texts."""
    try:
        return np.array([int(text[text.rfind(b"(") + 1 :]) for text in before], np.int64)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path}: a row does not begin with the id of a page ({error})") from None


def _text(value: bytes) -> str:
    """The string that a value begins with, as far as its closing quote."""
    match = _STRING.match(value)
    if match is None:
        return ""
    plain = _ESCAPED.sub(rb"\1", match[1]) if b"\\" in match[1] else match[1]
    return plain.decode("utf-8", "replace")
