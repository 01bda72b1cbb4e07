"""Reads sets in JSON: texts with character spans, or tokens with tags, also as JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from nerbert.storage.files import open_decompressed
from nerbert.text.tags import spans_to_tags

WORD_COLUMNS = ("tokens", "words")
TAG_COLUMNS = ("ner_tags", "tags", "labels", "ner")
"""Names of the columns of words and of tags; the first one that is there is read."""

LABEL_FILES = ("label2id.json", "label.json")
"""Files with the numbers of tags, as T-NER's sets have them beside their splits."""

_TOKEN = re.compile(r"[A-Za-z]+|\d+|\S")
"""Tokens of a text without spaces: a run of Latin letters, a run of digits, or one character."""

Row = tuple[list[str], list[str]]


def read(path: str) -> Iterator[Row]:
    """The tokens and tags of each row of a file: a list of rows, or a row on each line.

    A row is `{"tokens": [...], "tags": [...]}`, with tags or their numbers, or
    `{"text", "entities": [{"span": [start, end], "type"}]}`, also with "start" and "end".

    Raises:
        ValueError: a row is none of these.
        OSError: the file cannot be read.
    """
    with open_decompressed(path) as file:
        content = file.read().decode("utf-8-sig")
    names = cache(lambda: beside(Path(path).parent))
    for place, row in _rows(content):
        try:
            yield parsed(row, names)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error


def parsed(row: Any, names: Callable[[], dict[int, str] | None] = lambda: None) -> Row:
    """The tokens and tags of a row.

    Args:
        row: see `read`.
        names: gives the names of tags by number; it is called if a tag is a number.

    Raises:
        ValueError: the row has another form, or holds half of a character.
    """
    try:
        if "text" in row and "entities" in row:
            row["text"].encode()
            return _from_spans(row["text"], sorted(map(_span, row["entities"])))
        words, tags = column(row, WORD_COLUMNS), column(row, TAG_COLUMNS)
        if words is None or tags is None:
            raise ValueError("neither tokens and tags, nor text and entities")
        numbered = any(isinstance(tag, int) for tag in row[tags])
        tokens, named_tags = list(row[words]), named(row[tags], names() if numbered else None)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(repr(error)) from error
    if len(tokens) != len(named_tags) or not all(isinstance(token, str) for token in tokens):
        raise ValueError(f"{len(tokens)} tokens and {len(named_tags)} tags, not one of each")
    "".join(tokens).encode()
    return tokens, named_tags


def _rows(content: str) -> Iterator[tuple[str, Any]]:
    """The rows of a file, each with its place."""
    if content.lstrip().startswith("["):
        yield from ((f"entry {number}", row) for number, row in enumerate(json.loads(content)))
        return
    for number, line in enumerate(content.split("\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(f"line {number}: no JSON ({error})") from error
            yield f"line {number}", row


def column(columns: Any, names: Sequence[str]) -> str | None:
    """The first of some names that is a column."""
    return next((name for name in names if name in columns), None)


def named(tags: Sequence[Any], names: dict[int, str] | None) -> list[str]:
    """Tags by their numbers; tags that are no numbers stay.

    Raises:
        ValueError: there are numbers without names.
    """
    if names is None and any(isinstance(tag, int) for tag in tags):
        raise ValueError(f"tags are numbers without names; put {LABEL_FILES[0]} beside the file")
    return [names[tag] if isinstance(tag, int) and names else str(tag) for tag in tags]


def beside(folder: Path) -> dict[int, str] | None:
    """The names of tags by number, from a label file in a folder or above it; None without one.

    Raises:
        ValueError: the file is not an object of names and numbers.
    """
    for place in (folder, folder.parent):
        for name in LABEL_FILES:
            if (place / name).is_file():
                return numbered(place / name)
    return None


def numbered(path: Path) -> dict[int, str]:
    """The names in a label file, by number.

    Raises:
        ValueError: the file is not an object of names and numbers.
    """
    table = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(table, dict) or not all(isinstance(n, int) for n in table.values()):
        raise ValueError(f'{path}: not {{"O": 0, "B-LOC": 1, ...}}')
    return {number: name for name, number in table.items()}


def _span(entity: Any) -> tuple[int, int, str]:
    start, end = entity["span"] if "span" in entity else (entity["start"], entity["end"])
    return start, end, entity["type"]


def _from_spans(text: str, entities: Sequence[tuple[int, int, str]]) -> Row:
    """Tokens and tags of a text. The text is split at the ends of its entities.

    Args:
        text: text of the sentence.
        entities: start, end (characters) and type of each entity, in order.
    """
    edges = sorted({0, len(text), *(edge for start, end, _ in entities for edge in (start, end))})
    tokens: list[tuple[int, int]] = []
    for left, right in pairwise(edges):
        tokens += (match.span() for match in _TOKEN.finditer(text, left, right))
    starts = {start: index for index, (start, _) in enumerate(tokens)}
    ends = {end: index + 1 for index, (_, end) in enumerate(tokens)}
    try:
        spans = [(starts[start], ends[end], name) for start, end, name in entities]
    except KeyError as error:
        raise ValueError(f"no token begins or ends at character {error}") from error
    return [text[start:end] for start, end in tokens], spans_to_tags(spans, len(tokens))
