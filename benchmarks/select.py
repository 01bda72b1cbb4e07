"""Speed of the corpus stage on generated documents, and its time for a full Wikipedia.

python -m benchmarks.select [--sentences 2000000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.resolve import generated_facts
from nerbert.storage import parts
from nerbert.storage.places import Place
from nerbert.text.overlap import SentenceIndex
from ontology.categories import CategorySet
from ontology.classes import ClassTree
from ontology.voting.building import build
from pipeline.documents.rows import SCHEMA, to_batch
from pipeline.examples import filters
from pipeline.examples.counts import SelectionReport
from pipeline.examples.mentions import COLUMNS, Labelling, sentences_of
from pipeline.examples.selector import DOCUMENT_COLUMNS, Selector
from pipeline.settings import CorpusSettings
from pipeline.wikitext.render import Anchor

ENGLISH_SENTENCES = 300e6
"""Sentences of English Wikipedia: 100 GB of XML at the rate of the English slice (3,000 a MB)."""
BEFORE_TOKENS, ALL = "select, before tokens", "select, all"
_TITLES = 400_000
_PER_PAGE, _PER_PART = 100, 500
_SENTENCE = (
    "The old town of Northwest lies on a river; its mayor since 1999 is J. Smith (no. {:04}). "
)


def generated_documents(sentences: int) -> Iterator[pa.RecordBatch]:
    """Pages of 100 sentences with one link each, on average, to one of the titles."""
    draw = np.random.default_rng(0)
    size = len(_SENTENCE.format(0))
    starts = [n * size for n in range(_PER_PAGE)]
    ends = [start + size - 1 for start in starts]
    for first in range(0, sentences // _PER_PAGE, _PER_PART):
        text = "".join(_SENTENCE.format(n) for n in range(_PER_PAGE))
        rows = []
        for page in range(first, min(first + _PER_PART, sentences // _PER_PAGE)):
            linked = np.flatnonzero(draw.random(_PER_PAGE) < 0.6)
            anchors = []
            for sentence in linked.tolist():
                for place in (16, 46)[: 1 + (sentence % 3 == 0)]:
                    number = int(draw.integers(0, _TITLES))
                    title = f"Title {number * 2654435761 % 2**32:x} of {number}"
                    start = sentence * size + place
                    anchors.append(Anchor(start, start + 9, title))
            rows.append(
                {
                    "page_id": page,
                    "namespace": 0,
                    "title": f"Page {page}",
                    "redirect": None,
                    "revision_id": page,
                    "timestamp": "",
                    "templates": [],
                    "template_arguments": [],
                    "categories": [],
                    "is_disambiguation": False,
                    "text": text,
                    "sentence_starts": starts,
                    "sentence_ends": ends,
                    "sentence_holes": [False] * _PER_PAGE,
                    "anchors": anchors,
                }
            )
        yield to_batch(rows)


def _spent(paths: Sequence[Place]) -> tuple[dict[str, float], int]:
    """CPU seconds of each pass over the parts, and the number of examples."""
    tree = ClassTree.shipped()
    pages, types = generated_facts(_TITLES)
    table = build(pages, [types], tree).table
    labelling = Labelling.of(table, CategorySet.load("specific"), tree)
    selector = Selector(table, labelling, labelling.names[:2], CorpusSettings(), SentenceIndex([]))
    selection, again = SelectionReport(), SelectionReport()
    linked = np.zeros(len(table.classes), np.int64)
    examples = 0

    def count(batch: pa.RecordBatch) -> None:
        nonlocal linked
        found = sentences_of(batch, table).entities
        linked += np.bincount(found[found >= 0], minlength=len(linked))

    def frequent(batch: pa.RecordBatch) -> None:
        sentences = sentences_of(batch, table)
        labels = labelling.label(sentences.entities)
        kept = filters.with_category(sentences, labels)
        filters.mention_counts(sentences, labels, kept, len(labelling.names))

    def keep(batch: pa.RecordBatch) -> None:
        sentences = sentences_of(batch, table)
        selector.keep(batch, sentences, labelling.label(sentences.entities), again)

    def select(batch: pa.RecordBatch) -> None:
        nonlocal examples
        examples += sum(len(rows) for rows in selector.select(batch, selection).values())

    spent: dict[str, float] = {}
    for name, columns, work in (
        ("count", COLUMNS, count),
        ("frequent", COLUMNS, frequent),
        (BEFORE_TOKENS, DOCUMENT_COLUMNS, keep),
        (ALL, DOCUMENT_COLUMNS, select),
    ):
        start = time.process_time()
        for path in paths:
            for batch in parts.read_batches(path, columns, rows=1024):
                work(batch)
        spent[name] = time.process_time() - start
    return spent, examples


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=2_000_000)
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, batch in enumerate(generated_documents(options.sentences)):
            paths.append(Place(f"{folder}/part-{number:05d}.parquet"))
            with parts.writer(paths[-1], SCHEMA) as writer:
                writer.write_batch(batch)
        spent, examples = _spent(paths)
    both = spent["count"] + spent["frequent"]
    before_s, all_s = both + spent[BEFORE_TOKENS], both + spent[ALL]
    for name, seconds in spent.items():
        print(f"{name:24}{seconds:8.1f} CPU s{options.sentences / seconds:14,.0f} sentences/s")
    rate = options.sentences / before_s
    print(f"all passes before tokens {rate:,.0f} sentences/s/core")
    print(f"{examples:,} examples of {options.sentences:,} sentences")
    hours = ENGLISH_SENTENCES / options.sentences * all_s / 3600
    print(f"full English ({ENGLISH_SENTENCES / 1e6:.0f} M sentences): {hours:.1f} core-hours")
    if options.json:
        numbers = {
            "sentences": options.sentences,
            "examples": examples,
            "cpu_s": spent,
            "sentences_per_s_before_tokens": rate,
            "english_core_hours": hours,
        }
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
