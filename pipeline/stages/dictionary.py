"""The passes that make the dictionary of the dump: count surfaces, and merge the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from nerbert import files, parts
from nerbert.parts import Report
from ontology.entity_table import NO_CLASS, EntityTable
from pipeline.labels.dictionary import SURFACES, agreed, counted, dictionary_writer, merged
from pipeline.labels.mentions import COLUMNS, sentences_of
from pipeline.plan import DICTIONARY, Plan
from pipeline.stages.part_pass import PartPass
from pipeline.stages.resolve import open_table

_PARTS_PER_BUCKET = 8
"""A bucket holds as many surfaces as so many parts: some 50 MB."""
_MOST_BUCKETS = 1024
_ROWS = 65_536
_WHOLE = 1 << 64


@dataclass(frozen=True)
class SurfacesReport(Report):
    """Number of surfaces of a part or bucket, and of their links."""

    surfaces: int
    links: int


class _DictionaryPass(PartPass):
    report = SurfacesReport
    folder = ""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def part(self, element: str) -> str:
        return files.join(self._plan.examples.path, self.folder, files.name(element))

    @cached_property
    def _table(self) -> EntityTable:
        return open_table(self._plan.entities.path)


class CountSurfaces(_DictionaryPass):
    """Counts the links of each surface, in each part of documents."""

    name, folder = "surfaces", "surfaces"

    def elements(self) -> Sequence[str]:
        return self._plan.parts if self._plan.uses_dictionary else ()

    def make(self, element: str, part: str, known: object) -> SurfacesReport:
        found = []
        for batch in parts.read_batches(element, ["text", *COLUMNS], rows=1024):
            sentences = sentences_of(batch, self._table)
            documents = sentences.documents[sentences.anchor_sentences].tolist()
            starts, ends = sentences.anchor_starts.tolist(), sentences.anchor_ends.tolist()
            texts = batch.column("text").to_pylist()
            surfaces = [
                texts[document][start:end]
                for document, start, end in zip(documents, starts, ends, strict=True)
            ]
            found.append(counted(surfaces, sentences.entities, sentences.targets))
        table = merged(found)
        with parts.writer(part, SURFACES) as writer:
            writer.write_table(table, row_group_size=_ROWS)
        return _counts(table)


class MergeSurfaces(_DictionaryPass):
    """Sums the counts of all parts; keeps the surfaces that nearly always lead to one page."""

    name, folder = "dictionary", "dictionary"

    def elements(self) -> Sequence[str]:
        """The buckets, by the first bits of the keys."""
        if not self._plan.uses_dictionary:
            return ()
        count = min(_MOST_BUCKETS, -(-len(self._plan.parts) // _PARTS_PER_BUCKET))
        return [f"part-{bucket:05d}-{count:05d}.parquet" for bucket in range(count)]

    def make(self, element: str, part: str, known: object) -> SurfacesReport:
        bucket, count = map(int, element.removesuffix(".parquet").split("-")[1:])
        bounds = (_WHOLE * bucket // count, _WHOLE * (bucket + 1) // count)
        surfaces = CountSurfaces(self._plan)
        table = merged(
            [
                parts.read_range(surfaces.part(source), "key", *bounds)
                for source in surfaces.elements()
            ]
        )
        is_typed = np.append(self._table.classes != NO_CLASS, False)
        table = agreed(table, self._plan.settings.dictionary_links, is_typed)
        with parts.writer(part, SURFACES) as writer:
            writer.write_table(table)
        return _counts(table)


def _counts(table: pa.Table) -> SurfacesReport:
    return SurfacesReport(len(table), int(np.sum(table.column("links").to_numpy())))


def dictionary_path(plan: Plan) -> str:
    """Path of the dictionary of a run."""
    return files.join(plan.examples.path, DICTIONARY)


def write_dictionary(plan: Plan) -> None:
    """Joins the buckets to one file, which workers map into memory."""
    merge = MergeSurfaces(plan)
    with dictionary_writer(dictionary_path(plan)) as writer:
        for element in merge.elements():
            for batch in parts.read_batches(merge.part(element), rows=_ROWS):
                writer.write_batch(batch)
