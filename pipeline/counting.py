"""The first two passes of the corpus stage: how often entities are linked, categories mentioned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.utils.shared import Shared

from ontology.categories import CategorySet
from ontology.classes import ClassTree
from ontology.entities import SOURCES, EntityTable
from pipeline import files, filters, parts, report
from pipeline.config import BalanceSettings, SelectSettings
from pipeline.labelling import (
    COLUMNS,
    Labelling,
    distinct_entities,
    frequent_categories,
    kept_categories,
    sentences_of,
)
from pipeline.resolve import open_table

LINKED = pa.schema([("entity", pa.int32()), ("mentions", pa.int64())])
"""Columns of `examples/linked/part-*.parquet`: how often each entity is linked."""

Statistics = dict[str, Any]


@dataclass(frozen=True)
class CorpusPlan:
    """What the stage reads, decides by, and where it writes."""

    documents: tuple[str, ...]
    entities: str
    tree: ClassTree
    categories: CategorySet
    select: SelectSettings
    balance: BalanceSettings
    examples_folder: str
    corpus_folder: str
    card: report.CardFacts

    def part(self, source: str, *folder: str) -> str:
        """Path under `examples/` for what is made from a part of documents."""
        name = files.name(source)
        return files.join(self.examples_folder, *folder, name)


class PartDoFn(beam.DoFn):
    """A pass over parts of documents. The entity table is opened once per process."""

    def __init__(self, plan: CorpusPlan) -> None:
        self._plan = plan
        self._shared = Shared()

    def setup(self) -> None:
        plan = self._plan
        self._table, self._labelling = self._shared.acquire(lambda: _Opened(plan)).pair


class _Opened:
    """What workers share: Shared needs an object it can refer to weakly."""

    def __init__(self, plan: CorpusPlan) -> None:
        table = open_table(plan.entities)
        self.pair: tuple[EntityTable, Labelling]
        self.pair = table, Labelling.of(table, plan.categories, plan.tree)


class CountLinked(PartDoFn):
    """Writes how often each entity is linked in a part; yields where, and the anchors' types."""

    def process(self, source: str) -> Iterator[parts.Report]:
        part = self._plan.part(source, "linked")
        found = parts.finished(part)
        if found is None:
            linked = np.zeros(len(self._table.classes), np.int64)
            anchors = np.zeros(len(SOURCES) + 1, np.int64)
            for batch in parts.read_batches(source, COLUMNS):
                entities = sentences_of(batch, self._table).entities
                known = entities[entities >= 0]
                linked += np.bincount(known, minlength=len(linked))
                anchors[0] += len(entities) - len(known)
                anchors[1:] += np.bincount(self._table.sources[known], minlength=len(SOURCES))
            once = np.flatnonzero(linked)
            columns = [pa.array(once, pa.int32()), pa.array(linked[once])]
            with parts.writer(part, LINKED) as writer:
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=LINKED))
            found = parts.finish(part, {"source": files.name(source),
                                        "anchors": anchors.tolist()})  # fmt: skip
        yield found


class Scarce(PartDoFn):
    """Decides which categories have enough entities."""

    def process(self, _: Any, reports: list[parts.Report]) -> Iterator[Statistics]:
        linked = np.zeros(len(self._table.classes), np.int64)
        anchors = np.zeros(len(SOURCES) + 1, np.int64)
        for found in sorted(reports, key=lambda item: item["source"]):
            anchors += found["anchors"]
            for batch in parts.read_batches(self._plan.part(found["source"], "linked")):
                linked[batch.column("entity").to_numpy()] += batch.column("mentions").to_numpy()
        distinct, mentions = distinct_entities(linked, self._labelling)
        yield {
            "kept": kept_categories(distinct, self._plan.select.min_entities),
            "entities": distinct, "mentions": mentions,
            "anchors": dict(zip(("unknown-page", "no-class", "dbpedia", "infobox"),
                                anchors.tolist(), strict=True)),
        }  # fmt: skip


class CountMentions(PartDoFn):
    """Counts the mentions of each category in sentences with a category."""

    def process(self, source: str, scarce: Statistics) -> Iterator[parts.Report]:
        part = self._plan.part(source, "frequent")
        found = parts.finished(part)
        if found is None:
            labelling = self._labelling.keep(scarce["kept"])
            counts = np.zeros(len(labelling.names), np.int64)
            for batch in parts.read_batches(source, COLUMNS):
                sentences = sentences_of(batch, self._table)
                labels = labelling.label(sentences.entities)
                kept = filters.with_category(sentences, labels)
                counts += filters.mention_counts(sentences, labels, kept, len(counts))
            mentions = dict(zip(labelling.names, counts.tolist(), strict=True))
            found = parts.finish(part, {"mentions": mentions})
        yield found


def frequent(_: Any, reports: list[parts.Report], scarce: Statistics, size: int) -> Statistics:
    """The most frequent categories, and what is known so far."""
    mentions: dict[str, int] = {}
    for found in reports:
        parts.add_counts(mentions, found["mentions"])
    mentions = dict(sorted(mentions.items()))
    return {**scarce, "with_category": mentions, "frequent": frequent_categories(mentions, size)}
