"""The runs that a join reads: their examples before balancing, with its own labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nerbert.digests import uniform
from nerbert.errors import UserError
from nerbert.storage import parts
from nerbert.storage.folders import STATE, Folder
from nerbert.storage.places import Place
from nerbert.storage.records import read_record
from nerbert.text.corpus import SPLITS
from nerbert.text.tags import LabelSet
from ontology.categories import ENTITY
from ontology.entity_table import EntityTable
from pipeline.entities.resolve import open_table
from pipeline.examples.report import CorpusReport
from pipeline.examples.rows import COLUMNS

Strings = npt.NDArray[np.object_]

LANGUAGE = pa.field("language", pa.string())
"""The column that a join adds: code of the wiki's language."""

JOINED = COLUMNS.append(LANGUAGE)
"""Columns of an example of several wikis."""


@dataclass(frozen=True)
class Run:
    """A finished run of `nerbert corpus`.

    Attributes:
        folder: its output folder.
        fingerprint: changes with anything that decides its examples.
        labels: its categories.
        report: report of its corpus.
    """

    folder: Place
    fingerprint: str
    labels: LabelSet
    report: CorpusReport

    @classmethod
    def open(cls, folder: Place) -> Run:
        """Opens a run, and checks that all its files are there.

        Raises:
            UserError: the folder is none, or its run has not finished.
        """
        states = {}
        for name in ("entities", "examples", "corpus"):
            path = folder / name
            state = read_record(path / STATE)
            if "fingerprint" not in state or not Folder(path, state).is_complete():
                raise UserError(
                    f"{folder}: no finished run ({name} is missing or not whole); give an output "
                    "folder of nerbert corpus, or run that again"
                )
            states[name] = state
        corpus = folder / "corpus"
        categories = (corpus / "labels.json").read_json()["categories"]
        return cls(
            folder,
            states["corpus"]["fingerprint"],
            LabelSet(tuple(categories)),
            CorpusReport.from_json((corpus / "report.json").read_json()),
        )

    @cached_property
    def parts(self) -> list[str]:
        """Names of the parts of its examples, in order.

        Raises:
            UserError: they lack columns.
        """
        paths = sorted(
            path for split in SPLITS for path in self.examples_path(split, "part-*.parquet").files()
        )
        for path in paths:
            if lost := set(COLUMNS.names) - set(parts.column_names(path)):
                raise UserError(
                    f"{path}: no column {min(lost)}, an older version made it; run nerbert corpus "
                    "again"
                )
        return sorted({path.name for path in paths})

    def examples_path(self, split: str, name: str) -> Place:
        """Path of a part of its examples before balancing."""
        return self.folder / "examples" / split / name


@dataclass(frozen=True)
class JoinedExamples:
    """The examples of a run with the splits, labels and ids of the join.

    Attributes:
        run: the run.
        labels: categories of the join.
        share: share of pages whose examples are for validation.
        seed: seed of that draw.
    """

    run: Run
    labels: LabelSet
    share: float
    seed: int

    @property
    def language(self) -> str:
        """Code of the wiki's language."""
        return self.run.report.language

    @cached_property
    def _table(self) -> EntityTable:
        return open_table(self.run.folder / "entities")

    @cached_property
    def _label_ids(self) -> npt.NDArray[np.int32]:
        """The label id in the join of each label id of the run, shape (tags,)."""
        places = {tag: number for number, tag in enumerate(self.labels.tags)}
        return np.array([places[tag] for tag in self.run.labels.tags], np.int32)

    def batches(
        self, part: str, columns: Sequence[str] = COLUMNS.names
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Reads a part, batch by batch, with the split of each.

        Args:
            part: name of the part.
            columns: columns to read, with those that decide the split: "title" and "page_id".
        """
        for path in (self.run.examples_path(split, part) for split in SPLITS):
            for batch in parts.read_batches(path, columns) if path.exists() else ():
                splits = self.splits_of(batch)
                for split in SPLITS:
                    rows = batch.filter(pa.array(splits == split, pa.bool_()))
                    yield split, self._translated(rows)

    def train_tags(self) -> Iterator[pa.ListArray]:
        """Reads the label ids of the train examples, batch by batch."""
        for part in self.run.parts:
            for split, batch in self.batches(part, ("title", "page_id", "ner_tags")):
                if split == "train":
                    yield batch.column("ner_tags")

    def splits_of(self, batch: pa.RecordBatch) -> Strings:
        """The split of each example: by its page's Wikidata item, and else by its page.

        Translations of a page have one item, so they are in one split.
        """
        items = self._table.items_of(self._table.lookup(batch.column("title")))
        keys = [
            item or f"{self.language}:{page}"
            for item, page in zip(items, batch.column("page_id").to_pylist(), strict=True)
        ]
        is_validation = {
            key: uniform(self.seed, "validation", key) < self.share for key in dict.fromkeys(keys)
        }
        return np.array([SPLITS[is_validation[key]] for key in keys], dtype=object)

    def _translated(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        tags = columns["ner_tags"]
        lengths = tags.value_lengths().to_numpy(zero_copy_only=False)
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        values = self._label_ids[tags.flatten().to_numpy(zero_copy_only=False)]
        columns["ner_tags"] = pa.ListArray.from_arrays(bounds, pa.array(values))
        if "id" in columns:
            ids = [f"{self.language}:{example_id}" for example_id in columns["id"].to_pylist()]
            columns["id"] = pa.array(ids, pa.string())
            columns[LANGUAGE.name] = pa.array([self.language] * len(batch), LANGUAGE.type)
        schema = pa.schema([JOINED.field(name) for name in columns])
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)


def joined_labels(runs: Sequence[Run]) -> LabelSet:
    """The categories of all runs: `ENTITY`, then the others by name."""
    names = {name for run in runs for name in run.labels.categories}
    return LabelSet(tuple(sorted(names, key=lambda name: (name != ENTITY, name))))
