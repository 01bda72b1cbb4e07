"""Small corpora written by hand."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

from nerbert.text.tags import LabelSet
from pipeline.examples.rows import schema

LABELS = LabelSet(("ENTITY", "City", "Scientist"))
ROW = {
    "targets": [],
    "token_starts": [],
    "page_id": 1,
    "title": "T",
    "revision_id": 1,
    "sentence": 0,
    "start": 0,
    "end": 0,
    "copy": 0,
}


def example(number, text, unlinked=()):
    """An example of words `word` or `word/B-City`."""
    pairs = [word.partition("/") for word in text.split()]
    tags = [LABELS.tags.index(tag) if tag else 0 for _, _, tag in pairs]
    words = [word for word, _, _ in pairs]
    marks = [word in unlinked for word in words]
    return {**ROW, "id": f"1:{number}:0", "tokens": words, "ner_tags": tags, "unlinked": marks}


def write_part(path, rows, labels=LABELS, without=()):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, schema=schema(labels)).drop_columns(list(without))
    pq.write_table(table, path)


def write_corpus(folder, train, validation=None, labels=LABELS):
    """A corpus of two train parts and a validation part."""
    half = len(train) // 2
    write_part(folder / "train" / "part-00000.parquet", train[:half], labels)
    write_part(folder / "train" / "part-00001.parquet", train[half:], labels)
    write_part(folder / "validation" / "part-00000.parquet", validation or train, labels)
    (folder / "labels.json").write_text(json.dumps(labels.to_json()))
    return folder


def simple_corpus(folder, sentences=40):
    """A corpus that a tagger can learn at once."""
    cities = ("Bern", "Ulm", "Rom", "Genf")
    people = ("Ada Byron", "Emmy Noether")
    rows = []
    for number in range(sentences):
        first, last = people[number % 2].split()
        text = f"{first}/B-Scientist {last}/I-Scientist lived in {cities[number % 4]}/B-City" + (
            " for many years" * (number % 5)
        )
        rows.append(example(number, text, unlinked=("lived",)))
    return write_corpus(folder, rows)
