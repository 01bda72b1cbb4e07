"""The resolve stage: documents and DBpedia's files -> the entity table."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.pvalue import AsDict, AsList, PCollection

from ontology.classes import ClassTree
from ontology.entities import SOURCES, EntityTable, PageFacts, TypeFacts
from ontology.infobox import InfoboxMapping, resolve_redirect
from ontology.instance_types import read_instance_types
from ontology.titles import title_keys
from pipeline import files, parts
from pipeline.site import ARTICLE, TEMPLATE

FACTS = pa.schema([
    ("key", pa.uint64()),  # of the page's title
    ("target", pa.uint64()),  # key of the title a redirect leads to; 0 for other pages
    ("class", pa.string()),  # class its infobox gives, null for none
])  # fmt: skip
"""Columns of `entities/pages/part-*.parquet` (a row a page) and `entities/types/part-*.parquet`."""

_TABLE_FILES = ("keys.npy", "entities.npy", "classes.npy", "sources.npy", "classes.json")


@dataclass(frozen=True)
class ResolvePlan:
    """What the stage reads and where it writes."""

    documents: tuple[str, ...]
    types: tuple[str, ...]
    mapping: InfoboxMapping
    tree: ClassTree
    folder: str


def template_redirects(part: str) -> Iterator[tuple[str, str]]:
    """Redirects between templates in a part of documents: (name, name), without namespace."""
    for batch in parts.read_batches(part, ["namespace", "title", "redirect"]):
        for row in batch.to_pylist():
            if row["namespace"] == TEMPLATE and row["redirect"]:
                yield row["title"].partition(":")[2], row["redirect"].partition(":")[2]


def page_facts(
    batch: pa.RecordBatch, mapping: InfoboxMapping, redirects: Mapping[str, str]
) -> pa.RecordBatch:
    """FACTS of the articles and redirects of a batch of documents."""
    batch = batch.filter(pa.array(batch.column("namespace").to_numpy() == ARTICLE))
    redirect = batch.column("redirect")
    is_redirect = redirect.is_valid().to_numpy(zero_copy_only=False)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(title_keys(batch.column("title"))),
            pa.array(title_keys(redirect) * is_redirect),
            pa.array(_infobox_classes(batch, mapping, redirects), pa.string()),
        ],
        schema=FACTS,
    )


def _infobox_classes(
    batch: pa.RecordBatch, mapping: InfoboxMapping, redirects: Mapping[str, str]
) -> list[str | None]:
    """Class by the first mapped template of each page; only pages that have one are looked at."""
    classes: list[str | None] = [None] * len(batch)
    column = batch.column("templates")
    names = column.flatten().dictionary_encode()
    mapped = np.array(
        [resolve_redirect(name, redirects) in mapping for name in names.dictionary.to_pylist()]
        or [False],
        bool,
    )
    found = np.flatnonzero(mapped[names.indices.to_numpy(zero_copy_only=False)])
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    pages = np.repeat(np.arange(len(batch)), lengths)
    arguments = batch.column("template_arguments").flatten()
    for place in found.tolist():
        if classes[pages[place]] is None:
            template = (names[place].as_py(), arguments[place].as_py())
            classes[pages[place]] = mapping.class_of([template], redirects)
    return classes


class _PageFacts(beam.DoFn):
    """Writes what a part of documents says of its pages, and yields its report."""

    def __init__(self, plan: ResolvePlan) -> None:
        self._plan = plan

    def process(self, source: str, redirects: dict[str, str]) -> Iterator[parts.Report]:
        part = files.join(self._plan.folder, "pages", files.name(source))
        report = parts.finished(part)
        if report is None:
            columns = ["namespace", "title", "redirect", "templates", "template_arguments"]
            with parts.writer(part, FACTS) as writer:
                for batch in parts.read_batches(source, columns):
                    writer.write_batch(page_facts(batch, self._plan.mapping, redirects))
            report = parts.finish(part, {"part": part.rpartition("pages")[2].strip("/\\")})
        yield report


class _TypeFacts(beam.DoFn):
    """Writes what one of DBpedia's files says, and yields its report."""

    def __init__(self, plan: ResolvePlan) -> None:
        self._plan = plan

    def process(self, numbered: tuple[int, str]) -> Iterator[parts.Report]:
        number, path = numbered
        part = files.join(self._plan.folder, "types", f"part-{number:05d}.parquet")
        report = parts.finished(part)
        if report is None:
            name = files.name(path)
            with files.local_copies([path]) as (local,):
                counts = write_type_facts(local, part, self._plan.tree)
            report = parts.finish(
                part, {"part": f"part-{number:05d}.parquet", "file": name, **counts}
            )
        yield report


def write_type_facts(path: str, part: str, tree: ClassTree) -> dict[str, Any]:
    """Writes the statements of an instance-types file as FACTS, and returns what was counted.

    Classes that the ontology does not know are kept under their own name, as classes without
    ancestors, and counted; so are classes it knows under another name.
    """
    counts: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    renamed: Counter[str] = Counter()
    titles: list[str] = []
    classes: list[str] = []
    with parts.writer(part, FACTS) as writer:

        def flush() -> None:
            keys = pa.array(title_keys(titles))
            nothing = pa.array(np.zeros(len(titles), np.uint64))
            names = pa.array(classes, pa.string())
            writer.write_batch(pa.RecordBatch.from_arrays([keys, nothing, names], schema=FACTS))
            titles.clear()
            classes.clear()

        for statement in read_instance_types(path):
            counts["lines"] += 1
            if statement is None:
                counts["other_lines"] += 1
                continue
            title, name = statement
            known = tree.known_name(name)
            if known is None:
                unknown[name] += 1
            elif known != name:
                renamed[f"{name} -> {known}"] += 1
            titles.append(title)
            classes.append(known or name)
            if len(titles) == 100_000:
                flush()
        flush()
    return {**counts, "unknown_classes": dict(sorted(unknown.items())),
            "renamed_classes": dict(sorted(renamed.items()))}  # fmt: skip


def _read_facts(folder: str, names: Sequence[str]) -> tuple[Any, Any, list[str], Any]:
    """Keys, targets, class names and class indices (-1 for none) of the FACTS in some parts."""
    tables = []
    for name in names:
        with files.open_read(files.join(folder, name)) as file:
            tables.append(pq.read_table(file, columns=FACTS.names))
    table = pa.concat_tables(tables) if tables else FACTS.empty_table()
    classes = table.column("class").combine_chunks().dictionary_encode()
    indices = classes.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    keys, targets = (table.column(name).to_numpy() for name in ("key", "target"))
    return keys, targets, classes.dictionary.to_pylist(), indices


class _BuildTable(beam.DoFn):
    """Builds the entity table and writes it; yields the state of the finished stage."""

    def __init__(self, plan: ResolvePlan, state: dict[str, Any]) -> None:
        self._plan = plan
        self._state = state

    def process(
        self, _: Any, pages: list[parts.Report], types: list[parts.Report]
    ) -> Iterator[dict[str, Any]]:
        folder = self._plan.folder
        page_parts = sorted(report["part"] for report in pages)
        type_parts = sorted(report["part"] for report in types)
        keys, targets, names, indices = _read_facts(files.join(folder, "pages"), page_parts)
        facts = PageFacts(keys, targets, names, indices)
        keys, _, names, indices = _read_facts(files.join(folder, "types"), type_parts)
        table = EntityTable.build(facts, TypeFacts(keys, names, indices), self._plan.tree)
        save_table(table, folder)
        by_source = np.bincount(table.sources, minlength=len(SOURCES)).tolist()
        counts = {
            "titles": len(table), "entities": len(table.classes),
            "redirects": int((facts.targets != 0).sum()),
            "entities_by_source": dict(zip(SOURCES, by_source, strict=True)),
            "types_files": sorted(types, key=lambda report: report["part"]),
        }  # fmt: skip
        state = {**self._state, "complete": True, "counts": counts}
        files.write_json(files.join(folder, "stage.json"), state)
        yield state


def save_table(table: EntityTable, folder: str) -> None:
    """Writes the table into a folder, local or remote."""
    if not files.is_remote(folder):
        table.save(folder)
        return
    with tempfile.TemporaryDirectory() as local:
        table.save(local)
        for name in _TABLE_FILES:
            files.write_bytes(files.join(folder, name), (Path(local) / name).read_bytes())


def open_table(folder: str) -> EntityTable:
    """The table in a folder; a remote one is copied to the local disk first."""
    if not files.is_remote(folder):
        return EntityTable.open(folder)
    with tempfile.TemporaryDirectory() as local:
        for name in _TABLE_FILES:
            (Path(local) / name).write_bytes(files.read_bytes(files.join(folder, name)))
        return EntityTable.open(local)  # the mapping outlives the file's name


class Resolve(beam.PTransform[Any, Any]):
    """Root -> the state of the finished stage; writes `entities/`."""

    def __init__(self, plan: ResolvePlan, state: dict[str, Any]) -> None:
        super().__init__()
        self._plan = plan
        self._state = state

    def expand(self, root: Any) -> PCollection[Any]:
        documents = root | "Documents" >> beam.Create(self._plan.documents) | beam.Reshuffle()
        redirects = documents | "Template redirects" >> beam.FlatMap(template_redirects)
        pages = documents | beam.ParDo(_PageFacts(self._plan), AsDict(redirects))
        types = (
            root
            | "Types" >> beam.Create(list(enumerate(self._plan.types)))
            | "Spread types" >> beam.Reshuffle()
            | beam.ParDo(_TypeFacts(self._plan))
        )
        build = _BuildTable(self._plan, self._state)
        return root | "End" >> beam.Create([None]) | beam.ParDo(build, AsList(pages), AsList(types))
