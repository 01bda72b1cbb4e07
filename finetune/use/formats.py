"""Labelled texts in the formats of other tools: parts of the seam `exports`.

Each function writes a file or folder, and returns the number of texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import quoteattr

import pyarrow as pa

from finetune.tagger.entities import Entity
from finetune.use.labelled import Labelled
from nerbert.errors import UserError
from nerbert.storage import parts
from nerbert.storage.places import Place
from nerbert.text.corpus import SPLITS
from nerbert.text.tags import LabelSet

Rows = Iterable[Labelled]


_NO_CELL = re.compile(r"[\t\n\r]|^-DOCSTART-")


def write_conll(rows: Rows, path: Path) -> int:
    """Writes `token TAB tag` lines, a blank line after each text.

    Raises:
        UserError: a token cannot stand in a column.
    """
    return _write_lines(_blocks(rows), path)


def _blocks(rows: Rows) -> Iterator[str]:
    for number, row in enumerate(rows, start=1):
        for token in row.tokens:
            if _NO_CELL.search(token):
                raise _refused(number, token, "stand in a column")
        yield "".join(f"{w}\t{t}\n" for w, t in zip(row.tokens, row.tags, strict=True))


def _refused(number: int, token: str, reason: str) -> UserError:
    return UserError(f"text {number}: the token {token!r} cannot {reason}; choose --format jsonl")


def write_jsonl(rows: Rows, path: Path) -> int:
    """Writes a JSON object on each line: text, and mentions with offsets in characters."""
    return _write_lines((_json(_plain(row)) for row in rows), path)


def _plain(row: Labelled) -> dict[str, Any]:
    entities = [asdict(entity) for entity in row.entities]
    for entity in entities:
        entity["score"] = round(entity["score"], 4)
        if not row.is_predicted:
            del entity["score"]
    return {"text": row.text, "entities": entities}


def write_label_studio(rows: Rows, path: Path, types: dict[str, None] | None = None) -> int:
    """Writes tasks of Label Studio, and beside them the labelling interface, as `.xml`.

    Mentions of a set are annotations; those of a tagger are predictions, to be corrected.

    Args:
        rows: the texts.
        path: path of the tasks.
        types: types that people may give a mention, besides those of the texts; it is read when all
            rows are written.
    """
    types = {} if types is None else types

    def tasks() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(rows, start=1):
            types.update(dict.fromkeys(entity.type for entity in row.entities))
            result = [_region(entity, place) for place, entity in enumerate(row.entities)]
            kind = "predictions" if row.is_predicted else "annotations"
            yield {"id": number, "data": {"text": row.text}, kind: [{"result": result}]}

    count = write_list(tasks(), path)
    labels = "".join(f"\n    <Label value={quoteattr(name)}/>" for name in sorted(types))
    view = f'<View>\n  <Labels name="label" toName="text">{labels}\n  </Labels>\n'
    view += '  <Text name="text" value="$text"/>\n</View>\n'
    Place(interface(path)).write_bytes(view.encode())
    return count


def interface(path: Path) -> Path:
    """Where the labelling interface of a file of tasks is."""
    return path.with_suffix(".xml")


def _region(entity: Entity, number: int) -> dict[str, Any]:
    place = {"start": entity.start, "end": entity.end, "text": entity.text}
    return {
        "id": str(number),
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "score": round(entity.score, 4),
        "value": {**place, "labels": [entity.type]},
    }


def write_spacy(rows: Rows, path: Path) -> int:
    """Writes a DocBin of spaCy, for `spacy train` and `DocBin().from_disk`.

    `doc.ents` are the mentions. `doc.spans["sc"]`, which the span categoriser learns from, has
    those inside of mentions, too.

    Raises:
        UserError: a token is empty.
    """
    # An extra installs it.
    import spacy.util
    from spacy.tokens import Doc, DocBin
    from spacy.tokens import Span as SpacySpan
    from spacy.vocab import Vocab

    vocab, documents = Vocab(), DocBin()
    for number, row in enumerate(rows, start=1):
        if "" in row.tokens:
            raise _refused(number, "", "be a token of spaCy")
        words, spaces, places = _spacy_words(row)
        doc = Doc(vocab, words=words, spaces=spaces)
        spans = [
            SpacySpan(doc, places[start], places[end - 1] + 1, label=name)
            for start, end, name in row.spans
        ]
        doc.ents = spacy.util.filter_spans(spans)
        doc.spans["sc"] = spans
        documents.add(doc)
    Place(path).write_bytes(documents.to_bytes())
    return len(documents)


def _spacy_words(row: Labelled) -> tuple[list[str], list[bool], list[int]]:
    """Words, whether a space follows each, and the place of each of our words among them.

    spaCy keeps one space behind a word; other white space is a word of its own.
    """
    words: list[str] = []
    spaces: list[bool] = []
    places = []
    edges = [*row.words, (len(row.text), len(row.text))]
    first = row.text[: edges[0][0]]
    if first:
        words.append(first)
        spaces.append(False)
    for (start, end), (following, _) in pairwise(edges):
        places.append(len(words))
        gap = row.text[end:following]
        words.append(row.text[start:end])
        spaces.append(gap.startswith(" "))
        if remainder := gap.removeprefix(" "):
            words.append(remainder)
            spaces.append(False)
    return words, spaces, places


_EXAMPLE = pa.schema(
    [
        ("id", pa.string()),
        ("tokens", pa.list_(pa.string())),
        ("ner_tags", pa.list_(pa.int32())),
        ("token_starts", pa.list_(pa.int32())),
        ("unlinked", pa.list_(pa.bool_())),
    ]
)
"""Columns of the examples of a corpus that labelled texts have, too."""
_VALIDATED = 20
"""One text of so many is for validation."""


def write_corpus(rows: Rows, path: Path) -> int:
    """Writes a folder that pre-training reads, with an example for each text with words.

    Doubtful words are `unlinked`: the loss ignores them.
    """
    numbers: dict[str, int] = {}
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        count = _write_splits(rows, Path(folder, "corpus"), numbers)
        if not numbers:
            raise UserError(
                f"{path}: no mention in {count:,} texts; give other --types or --min-score"
            )
        labels = LabelSet(tuple(numbers))
        (Place(folder) / "corpus" / "labels.json").write_json(labels.to_json())
        Path(folder, "corpus").rename(path)
    return count


def _write_splits(rows: Rows, folder: Path, numbers: dict[str, int]) -> int:
    """Writes both splits; adds the number of each type; returns the number of examples."""
    count = 0
    examples: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    with ExitStack() as stack:
        files_of = {
            split: stack.enter_context(parts.writer(Place(folder / split / _PART), _EXAMPLE))
            for split in SPLITS
        }
        for number, row in enumerate(rows, start=1):
            if row.words:
                count += 1
                split = SPLITS[count % _VALIDATED == 0]
                examples[split].append(_example(number, row, numbers))
                if len(examples[split]) == _ROWS:
                    files_of[split].write_table(pa.Table.from_pylist(examples[split], _EXAMPLE))
                    examples[split] = []
        for split, last in examples.items():
            files_of[split].write_table(pa.Table.from_pylist(last, _EXAMPLE))
    return count


_PART = "part-00000.parquet"
_ROWS = 10_000  # rows that are written together


def _example(number: int, row: Labelled, numbers: dict[str, int]) -> dict[str, Any]:
    """A row of a corpus; a new type gets the next number."""
    label_ids = [
        0 if tag == "O" else 2 * numbers.setdefault(tag[2:], len(numbers)) + 1 + (tag[0] == "I")
        for tag in row.tags
    ]
    return {
        "id": str(number),
        "tokens": row.tokens,
        "ner_tags": label_ids,
        "token_starts": [start for start, _ in row.words],
        "unlinked": row.doubtful,
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_lines(lines: Iterable[str], path: Path) -> int:
    count = 0
    with Place(path).atomic_write() as file:
        for line in lines:
            file.write(f"{line}\n".encode())
            count += 1
    return count


def write_list(rows: Iterable[Any], path: Path) -> int:
    """Writes a JSON list, a row at a time."""
    count = 0
    with Place(path).atomic_write() as file:
        file.write(b"[")
        for row in rows:
            file.write((",\n" if count else "\n").encode() + _json(row).encode())
            count += 1
        file.write(b"\n]\n")
    return count
