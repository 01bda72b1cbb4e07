"""Labelled texts in the formats of other tools."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from finetune.tagger.texts import Entity, Prediction, entities_of
from nerbert.errors import UserError
from nerbert.storage import files
from nerbert.text.columns import Sentence
from nerbert.text.tags import tags_to_spans
from nerbert.text.tokens import Span


@dataclass(frozen=True)
class Labelled:
    """A text with its words and mentions.

    Attributes:
        text: the text.
        words: first character of each word, and one after its last.
        tags: tag of each word.
        entities: the mentions, with offsets in characters.
        is_predicted: whether a tagger found them.
    """

    text: str
    words: list[Span]
    tags: list[str]
    entities: list[Entity]
    is_predicted: bool

    @classmethod
    def of_sentence(cls, sentence: Sentence) -> Labelled:
        """A sentence of a set; single spaces join its tokens."""
        words: list[Span] = []
        for token in sentence.tokens:
            start = words[-1][1] + 1 if words else 0
            words.append((start, start + len(token)))
        text = " ".join(sentence.tokens)
        entities = entities_of(words, sentence.tags, [1.0] * len(words), text)
        return cls(text, words, sentence.tags, entities, False)

    @classmethod
    def of_prediction(cls, text: str, prediction: Prediction) -> Labelled:
        """A text that a tagger has labelled."""
        return cls(text, prediction.spans, prediction.tags, prediction.entities, True)

    @property
    def tokens(self) -> list[str]:
        """The words, without their offsets."""
        return [self.text[start:end] for start, end in self.words]


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


def _refused(number: int, token: str, what: str) -> UserError:
    return UserError(f"text {number}: the token {token!r} cannot {what}; choose --format jsonl")


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


def write_gliner(rows: Rows, path: Path) -> int:
    """Writes the list of GLiNER's training: tokens, and mentions by first and last token."""
    return _write_list(
        (
            {
                "tokenized_text": row.tokens,
                "ner": [[start, end - 1, name] for start, end, name in tags_to_spans(row.tags)],
            }
            for row in rows
        ),
        path,
    )


def write_label_studio(rows: Rows, path: Path) -> int:
    """Writes tasks of Label Studio, and beside them the labelling interface, as `.xml`.

    Mentions of a set are annotations; those of a tagger are predictions, to be corrected.
    """
    types: dict[str, None] = {}

    def tasks() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(rows, start=1):
            types.update(dict.fromkeys(entity.type for entity in row.entities))
            result = [_region(entity, place) for place, entity in enumerate(row.entities)]
            kind = "predictions" if row.is_predicted else "annotations"
            yield {"id": number, "data": {"text": row.text}, kind: [{"result": result}]}

    count = _write_list(tasks(), path)
    labels = "".join(f"\n    <Label value={quoteattr(name)}/>" for name in sorted(types))
    view = f'<View>\n  <Labels name="label" toName="text">{labels}\n  </Labels>\n'
    view += '  <Text name="text" value="$text"/>\n</View>\n'
    files.write_bytes(str(interface(path)), view.encode())
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

    Raises:
        UserError: a token is empty.
    """
    # An extra installs it.
    from spacy.tokens import Doc, DocBin
    from spacy.tokens import Span as SpacySpan
    from spacy.vocab import Vocab

    vocab, documents = Vocab(), DocBin()
    for number, row in enumerate(rows, start=1):
        if "" in row.tokens:
            raise _refused(number, "", "be a token of spaCy")
        words, spaces, places = _spacy_words(row)
        doc = Doc(vocab, words=words, spaces=spaces)
        doc.ents = [
            SpacySpan(doc, places[start], places[end - 1] + 1, label=name)
            for start, end, name in tags_to_spans(row.tags)
        ]
        documents.add(doc)
    files.write_bytes(str(path), documents.to_bytes())
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
        if rest := gap.removeprefix(" "):
            words.append(rest)
            spaces.append(False)
    return words, spaces, places


WRITERS: dict[str, Callable[[Rows, Path], int]] = {
    "conll": write_conll,
    "jsonl": write_jsonl,
    "spacy": write_spacy,
    "gliner": write_gliner,
    "label-studio": write_label_studio,
}
"""Name of a format -> function that writes a file, and returns the number of texts."""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_lines(lines: Iterable[str], path: Path) -> int:
    count = 0
    with files.atomic_write(str(path)) as file:
        for line in lines:
            file.write(f"{line}\n".encode())
            count += 1
    return count


def _write_list(rows: Iterable[Any], path: Path) -> int:
    """Writes a JSON list, a row at a time."""
    count = 0
    with files.atomic_write(str(path)) as file:
        file.write(b"[")
        for row in rows:
            file.write((",\n" if count else "\n").encode() + _json(row).encode())
            count += 1
        file.write(b"\n]\n")
    return count
