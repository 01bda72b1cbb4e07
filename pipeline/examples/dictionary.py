"""The dictionary of a dump: texts of links that nearly always lead to the same page.

It is counted by sorting on disk: each part of documents leaves its surfaces sorted by their key,
and each bucket of keys is merged by itself. The result is mapped into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nerbert.storage import parts
from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from ontology.dictionary import LEAST
from ontology.entity_table import NO_CLASS, EntityTable
from ontology.titles import Keys, title_keys
from pipeline.documents.rows import read_documents
from pipeline.entities.resolve import open_table
from pipeline.examples.contexts import CONTEXTS, contexts, sample_bound
from pipeline.examples.counts import Statistics
from pipeline.examples.inner import LINKS, linked_inside
from pipeline.examples.mentions import COLUMNS, sentences_of
from pipeline.execution.part_pass import PartPass
from pipeline.plan import DICTIONARY, Plan, PlanPass

Ints = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

SURFACES = pa.schema(
    [
        ("key", pa.uint64()),  # of the text of the link
        ("entity", pa.int32()),  # that it leads to, -1 for an unknown page
        ("links", pa.int64()),
        ("target", pa.string()),  # title that the link names; the first one of several
    ]
)
"""Columns of `examples/surfaces/` and `examples/dictionary/`, sorted by key and entity."""

SHARE = 0.8
"""Share of the links of a surface that must lead to one page."""

FEWEST = 2
"""Links of a surface that is known on pages which link its page by another text: another case of a
name, as "Угорщини" for "Угорщина"."""


def counted(
    texts: Sequence[str], entities: Int32, targets: pa.StringArray, links: int = 1
) -> pa.Table:
    """SURFACES of some links.

    Args:
        texts: text of each link.
        entities: entity index of each link.
        targets: title that each link names.
        links: what each of them counts.
    """
    keys = title_keys(pa.array(texts, pa.string()))
    return _summed(keys, entities, np.full(len(keys), links), targets)


def merged(tables: Sequence[pa.Table]) -> pa.Table:
    """SURFACES of all links that several tables count."""
    table = pa.concat_tables([SURFACES.empty_table(), *tables])
    keys, entities, links = (table.column(name).to_numpy() for name in SURFACES.names[:3])
    return _summed(keys, entities, links, table.column("target"))


def _summed(
    keys: Keys, entities: Int32, links: Ints, targets: pa.StringArray | pa.ChunkedArray
) -> pa.Table:
    order = np.lexsort((entities, keys))
    keys, entities = keys[order], entities[order]
    new = np.ones(len(keys), bool)
    new[1:] = (keys[1:] != keys[:-1]) | (entities[1:] != entities[:-1])
    first = np.flatnonzero(new)
    sums = np.add.reduceat(links[order], first) if len(first) else links[order]
    columns = [keys[first], entities[first], sums, targets.take(order[first])]
    return pa.table(columns, schema=SURFACES)


def agreed(table: pa.Table, least: int, is_typed: npt.NDArray[np.bool_], titled: Int32) -> pa.Table:
    """The surfaces that nearly always lead to one page, and the titles that are doubtful.

    A title of a page with a class is doubtful if of the links with this text half lead elsewhere,
    or several and more than a fifth. Its entity is -1, and it has no links.

    Args:
        table: SURFACES of all links.
        least: least number of links of a surface.
        is_typed: whether each entity has a class; the last entry is for index -1.
        titled: entity that has the surface of each row as a title, -1 for none.
    """
    keys, entities, links = (table.column(name).to_numpy() for name in SURFACES.names[:3])
    _, first, groups = np.unique(keys, return_index=True, return_inverse=True)
    totals = np.bincount(groups, links, len(first))
    is_agreed = (totals[groups] >= least) & (links >= SHARE * totals[groups]) & is_typed[entities]
    to_title = np.bincount(groups, links * (entities == titled), len(first))
    to_others = totals - to_title
    is_doubtful = (2 * to_others >= totals) | ((to_others > 1) & (to_title < SHARE * totals))
    is_doubtful &= is_typed[titled[first]]
    doubtful = keys[first][is_doubtful & (np.bincount(groups, is_agreed, len(first)) == 0)]
    nothing = np.zeros(len(doubtful), np.int64)
    rows = [doubtful, (nothing - 1).astype(np.int32), nothing, pa.nulls(len(doubtful), pa.string())]
    tables = [table.filter(pa.array(is_agreed)), pa.table(rows, schema=SURFACES)]
    return pa.concat_tables(tables).sort_by("key")


@contextmanager
def dictionary_writer(path: Place, least: int) -> Iterator[pa.ipc.RecordBatchFileWriter]:
    """Opens a dictionary for writing. It appears under `path` when the block ends.

    Args:
        path: path of the dictionary.
        least: links of a surface that is known on all pages.
    """
    schema = SURFACES.with_metadata({LEAST: str(least)})
    with path.atomic_write() as file, pa.ipc.new_file(file, schema) as writer:
        yield writer


_PARTS_PER_BUCKET = 8
"""A bucket holds as many surfaces as so many parts: some 50 MB."""
_MOST_BUCKETS = 1024
_ROWS = 65_536
_WHOLE = 1 << 64


@dataclass
class SurfacesReport(Report):
    """Number of surfaces of a part or bucket, and of their links."""

    surfaces: int
    links: int


class _DictionaryPass(PlanPass, PartPass):
    report = SurfacesReport
    folder = ""

    def part(self, element: Place) -> Place:
        return self._plan.examples.path / self.folder / element.name

    @cached_property
    def _table(self) -> EntityTable:
        return open_table(self._plan.entities.path)


class CountSurfaces(_DictionaryPass):
    """Counts the links of each surface, in each part of documents."""

    name, folder = "surfaces", "surfaces"

    def elements(self) -> Sequence[Place]:
        return self._plan.parts if self._plan.uses_dictionary or self._plan.fills else ()

    def contexts(self, element: Place) -> Place:
        """Path of CONTEXTS of a part of documents."""
        return self._plan.examples.path / "contexts" / element.name

    def make(self, element: Place, part: Place, statistics: Statistics) -> SurfacesReport:
        batches, bound, language = [], sample_bound(statistics), self._plan.language
        with parts.writer_if_rows(self.contexts(element), CONTEXTS) as write:
            for batch in read_documents(element, ["title", "names", "text", *COLUMNS]):
                sentences = sentences_of(batch, self._table)
                documents = sentences.documents[sentences.anchor_sentences]
                spans = documents, sentences.anchor_starts, sentences.anchor_ends
                texts, entities = batch.column("text").to_pylist(), sentences.entities
                places = zip(*(column.tolist() for column in spans), strict=True)
                surfaces = [texts[document][start:end] for document, start, end in places]
                batches.append(counted(surfaces, entities, sentences.targets))
                titles, names = batch.column("title"), batch.column("names").to_pylist()
                keys, inside = linked_inside(
                    titles, names, documents, surfaces, sentences, self._table, language
                )
                targets = sentences.targets.take(pa.array(inside))
                batches.append(counted(keys, entities[inside], targets, LINKS))
                if self._plan.fills:
                    write(contexts(texts, titles, spans, surfaces, entities, self._table, bound))
        table = merged(batches)
        with parts.writer(part, SURFACES) as writer:
            writer.write_table(table, row_group_size=_ROWS)
        return _counts(table)


class MergeSurfaces(_DictionaryPass):
    """Sums the counts of all parts; keeps what `agreed` says."""

    name, folder = "dictionary", "dictionary"

    def elements(self) -> Sequence[Place]:
        """The buckets, by the first bits of the keys."""
        if not self._plan.uses_dictionary:
            return ()
        count = min(_MOST_BUCKETS, -(-len(self._plan.parts) // _PARTS_PER_BUCKET))
        return [Place(f"part-{bucket:05d}-{count:05d}.parquet") for bucket in range(count)]

    def make(self, element: Place, part: Place, gathered: object) -> SurfacesReport:
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
        titled = self._table.lookup_keys(table.column("key").to_numpy())
        least = min(FEWEST, self._plan.settings.dictionary_links)
        table = agreed(table, least, is_typed, titled)
        with parts.writer(part, SURFACES) as writer:
            writer.write_table(table)
        return _counts(table)


def _counts(table: pa.Table) -> SurfacesReport:
    return SurfacesReport(len(table), int(np.sum(table.column("links").to_numpy())))


def dictionary_path(plan: Plan) -> Place:
    """Path of the dictionary of a run."""
    return plan.examples.path / DICTIONARY


def write_dictionary(plan: Plan) -> None:
    """Joins the buckets to one file, which workers map into memory."""
    merge = MergeSurfaces(plan)
    with dictionary_writer(dictionary_path(plan), plan.settings.dictionary_links) as writer:
        for element in merge.elements():
            for batch in parts.read_batches(merge.part(element), rows=_ROWS):
                writer.write_batch(batch)
