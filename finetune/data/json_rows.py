"""Reads sets in JSON: texts with character spans, or tokens with tags, also as JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from nerbert.storage.places import Place
from nerbert.text.columns import Sentence, Sentences
from nerbert.text.lines import chosen_columns
from nerbert.text.schemes import TagError, read_tags
from nerbert.text.tags import spans_to_tags

WORD_COLUMNS = ("tokens", "words")
TAG_COLUMNS = ("ner_tags", "tags", "labels", "ner")
"""Names of the columns of words and of tags."""

LABEL_FILES = ("label2id.json", "label.json")
"""Files with the numbers of tags, as T-NER's sets have them beside their splits."""

_TOKEN = re.compile(r"[A-Za-z]+|\d+|\S")
"""Tokens of a text without spaces: a run of Latin letters, a run of digits, or one character."""

Row = tuple[list[str], list[str]]


def read(path: Place, columns: str | None = None) -> Sentences:
    """Reads the sentences of a file: a list of rows, or a row on each line, in strict IOB2.

    A row is `{"tokens": [...], "tags": [...]}`, with tags or their numbers, or
    `{"text", "entities": [{"span": [start, end], "type"}]}`, also with "start" and "end".

    Args:
        path: path of the file.
        columns: keys of tokens and tags, such as "word=tokens,tag=fine"; None for usual ones.

    Raises:
        ValueError: a row is none of these, or the tags are of no scheme.
        OSError: the file cannot be read.
    """
    with path.open_decompressed() as file:
        content = file.read().decode("utf-8-sig")
    names = cache(lambda: beside(Path(path).parent))
    return sentences(_rows(content), columns, names)


def sentences(
    rows: Iterable[tuple[str, Any]],
    columns: str | None = None,
    names: Callable[[], dict[int, str] | None] = lambda: None,
) -> Sentences:
    """The sentences of rows, in strict IOB2.

    Args:
        rows: place of each row, for errors, and the row; see `read`.
        columns: keys of tokens and tags; None for usual ones.
        names: gives the names of tags by number; it is called if a tag is a number.

    Raises:
        ValueError: a row has another form, or holds half of a character, or a tag is of no scheme.
    """
    table = cache(names)
    places, parsed = [], []
    for place, row in rows:
        try:
            parsed.append(_parsed(row, columns, table))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error
        places.append(place)
    # The names of numbers are tags of the set, also where it has no such mention.
    all_names = (table() or {}).values() if table.cache_info().currsize else ()
    try:
        tags, scheme = read_tags([row[1] for row in parsed], all_names)
    except TagError as error:
        raise ValueError(f"{places[error.sentence]}: {error}") from None
    return Sentences(
        (Sentence(row[0], row_tags) for row, row_tags in zip(parsed, tags, strict=True)), scheme
    )


def _parsed(row: Any, columns: str | None, names: Callable[[], dict[int, str] | None]) -> Row:
    """The tokens and tags of a row."""
    try:
        if columns is None and "text" in row and "entities" in row:
            row["text"].encode()
            return _from_spans(row["text"], sorted(map(_span, row["entities"])))
        words, tags = columns_of(row, columns)
        tokens, named_tags = list(row[words]), [_named(tag, names) for tag in row[tags]]
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


def columns_of(row: Mapping[str, Any], columns: str | None) -> tuple[str, str]:
    """The keys of tokens and tags in a row, or in a table.

    Raises:
        ValueError: there are none, or two of tags.
    """
    if columns is not None:
        pair = chosen_columns(columns)
        if missing := [name for name in pair if name not in row]:
            raise ValueError(f"no {missing[0]!r}; there are {', '.join(row)}")
        return pair
    words = next((name for name in WORD_COLUMNS if name in row), None)
    tags = [name for name in TAG_COLUMNS if isinstance(row.get(name), Sequence)]
    if words is None or not tags:
        problem = "neither tokens and tags, nor text and entities"
        raise ValueError(f"{problem}; there are {', '.join(row)}")
    if any(row[name] != row[tags[0]] for name in tags):
        remedy = f"say which, such as --columns word={words},tag={tags[0]}"
        raise ValueError(f"{' and '.join(tags)} both hold tags; {remedy}")
    return words, tags[0]


def _named(tag: Any, names: Callable[[], dict[int, str] | None]) -> str:
    """A tag, also by its number.

    Raises:
        ValueError: a number has no name, or the tag is neither a text nor a number.
    """
    if isinstance(tag, str):
        return tag
    if not isinstance(tag, int) or isinstance(tag, bool):
        raise ValueError(f"tag {tag!r} is no text such as B-PER, and no number")
    if (table := names()) is None:
        raise ValueError(
            "tags are numbers without names; save them as ClassLabel, or put "
            f"{LABEL_FILES[0]} beside the file"
        )
    return table[tag]


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
    for start_edge, right in pairwise(edges):
        tokens += (match.span() for match in _TOKEN.finditer(text, start_edge, right))
    starts = {start: index for index, (start, _) in enumerate(tokens)}
    ends = {end: index + 1 for index, (_, end) in enumerate(tokens)}
    try:
        spans = [(starts[start], ends[end], name) for start, end, name in entities]
    except KeyError as error:
        raise ValueError(f"no token begins or ends at character {error}") from error
    return [text[start:end] for start, end in tokens], spans_to_tags(spans, len(tokens))
