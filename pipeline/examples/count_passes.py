"""Passes of the stage corpus that count: linked entities, and mentions by category."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from nerbert.storage import parts
from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from ontology.entity_table import SOURCES
from pipeline.entities.resolve import open_table
from pipeline.examples import filters
from pipeline.examples.counts import Statistics
from pipeline.examples.mentions import COLUMNS, Labelling, sentences_of
from pipeline.execution.part_pass import PartPass
from pipeline.plan import PlanPass

ANCHORS = ("no-name", "unknown-page", "no-class", *SOURCES[1:])
"""Kinds of anchors: no name; to an unknown page, one without class, one with a class by source."""

LINKED = pa.schema([("entity", pa.int32()), ("mentions", pa.int64())])
"""Columns of `examples/linked/part-*.parquet`: numbers of links to each entity."""


class CorpusPass(PlanPass, PartPass):
    """A pass over the parts of documents."""

    folder: str = ""
    """Folder of its parts below `examples/`."""

    def part(self, element: Place) -> Place:
        return self._plan.examples.path / self.folder / element.name

    def open(self) -> None:
        self._table = open_table(self._plan.entities.path)
        self._labelling = Labelling.of(self._table, self._plan.categories, self._plan.tree)


@dataclass
class LinkedReport(Report):
    """Numbers of anchors in a part, by kind of page in the order of `ANCHORS`."""

    source: str
    anchors: list[int]


class CountLinked(CorpusPass):
    """Counts the links to each entity."""

    name, report, folder = "linked", LinkedReport, "linked"

    def make(self, element: Place, part: Place, gathered: None) -> LinkedReport:
        linked = np.zeros(len(self._table.classes), np.int64)
        anchors = np.zeros(len(ANCHORS), np.int64)
        for batch in parts.read_batches(element, COLUMNS):
            sentences = sentences_of(batch, self._table, self._plan.settings.names_only)
            entities = sentences.entities
            targets = entities[entities >= 0]
            linked += np.bincount(targets, minlength=len(linked))
            anchors[0] += sentences.common
            anchors[1] += len(entities) - len(targets)
            anchors[2:] += np.bincount(self._table.sources[targets], minlength=len(SOURCES))
        once = np.flatnonzero(linked)
        columns = [pa.array(once, pa.int32()), pa.array(linked[once])]
        with parts.writer(part, LINKED) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=LINKED))
        return LinkedReport(element.name, anchors.tolist())


@dataclass
class MentionsReport(Report):
    """Numbers of mentions of each category, in the sentences of a part that have a category."""

    mentions: dict[str, int] = field(default_factory=dict)


class CountMentions(CorpusPass):
    """Counts the mentions of each category, in sentences with a category."""

    name, report, folder = "frequent", MentionsReport, "frequent"

    def make(self, element: Place, part: Place, statistics: Statistics) -> MentionsReport:
        labelling = self._labelling.keep(statistics.categories)
        counts = np.zeros(len(labelling.names), np.int64)
        for batch in parts.read_batches(element, COLUMNS):
            sentences = sentences_of(batch, self._table, self._plan.settings.names_only)
            labels = labelling.label(sentences.entities)
            has_category = filters.with_category(sentences, labels)
            counts += filters.mention_counts(sentences, labels, has_category, len(counts))
        return MentionsReport(dict(zip(labelling.names, counts.tolist(), strict=True)))
