"""From documents to a domain corpus: the graph of wiki categories, a walk in it, the sentences.

graph       documents             -> categories/
walk        categories            -> wiki_categories.parquet
sentences   documents, entities   -> sentences/, annotation/, report.json, README.md
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.pvalue import AsList, PCollection
from apache_beam.utils.shared import Shared

from ontology.entities import EntityTable
from pipeline import files, parts
from pipeline.domain_corpus import COLUMNS, READ, Picker, Taken, summed
from pipeline.domain_plan import RECORD, Plan, beside, present, walk
from pipeline.errors import UserError
from pipeline.filters import Contamination
from pipeline.resolve import open_table
from pipeline.runner import Runner
from pipeline.stages import Folder
from pipeline.wiki_categories import EDGES, edges

_LOGGER = logging.getLogger("nerbert")


def run(plan: Plan, runner: Runner) -> str:
    """Makes what is not up to date.

    Returns:
        What was made, in lines for people.

    Raises:
        UserError: a root is unknown, nothing is below it, or no page is in the domain.
    """
    settings = plan.settings
    files.write_json(files.join(settings.output, RECORD), asdict(settings))
    if not plan.graph.is_complete():
        plan.graph.prepare()
        runner.run(_PerPart(plan, _Edges(plan), plan.graph), len(plan.parts))
    if plan.sentences.is_complete():
        _LOGGER.info("sentences: up to date")
    else:
        plan.sentences.prepare()
        files.remove_tree(files.join(settings.output, "annotation"))
        walked = walk(plan)
        _LOGGER.info("%s", f"walk: {len(walked):,} wiki categories below "
                           f"{', '.join(settings.domain.roots)}")  # fmt: skip
        runner.run(_PerPart(plan, _Sentences(plan), plan.sentences), len(plan.parts))
    counts = summed(
        [
            report
            for part in plan.parts
            if (report := parts.finished(beside(plan.sentences, part))) is not None
        ]
    )
    if not counts["sentences"].get("taken"):
        raise UserError(
            f"{settings.output}: no page of {settings.documents} is in the domain "
            f"({', '.join(settings.domain.roots)}, depth {settings.domain.depth}); name other "
            "--roots, or a larger --depth"
        )
    return present(plan, counts)


class _Edges(beam.DoFn):
    """Writes what a part says of the graph."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def process(self, source: str) -> Iterator[parts.Report]:
        part = beside(self._plan.graph, source)
        report = parts.finished(part)
        if report is None:
            with parts.writer(part, EDGES) as writer:
                writer.write_batch(edges(source))
            report = parts.finish(part, {"source": files.name(source)})
        yield report


class _Sentences(beam.DoFn):
    """Writes the sentences of a part. Table and graph are opened once per process."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._shared = Shared()

    def setup(self) -> None:
        self._opened = self._shared.acquire(lambda: _Opened(self._plan))

    def process(self, source: str) -> Iterator[parts.Report]:
        part = beside(self._plan.sentences, source)
        report = parts.finished(part)
        if report is None:
            taken = self._write(source, part)
            report = parts.finish(part, {"source": files.name(source), **taken.to_json()})
        yield report

    def _write(self, source: str, part: str) -> Taken:
        settings, taken = self._plan.settings, Taken()
        picker = Picker(self._opened.table, self._opened.walked, settings, self._plan.tree,
                        self._opened.contamination)  # fmt: skip
        name = files.name(source).replace(".parquet", ".conll")
        annotation = files.join(settings.output, "annotation", name)
        with parts.writer_if_rows(part, COLUMNS) as write, files.atomic_write(annotation) as conll:
            for batch in parts.read_batches(source, READ, rows=1024):
                rows, text = picker.pick(batch, taken)
                write(rows)
                conll.write(text.encode("utf-8", "backslashreplace"))
        return taken


class _Opened:
    """What the workers of a process share."""

    def __init__(self, plan: Plan) -> None:
        self.table: EntityTable = open_table(plan.entities)
        with files.open_read(plan.walked) as file:
            self.walked: pa.Table = pq.read_table(file)
        with files.local_copies(plan.settings.exclude) as paths:
            self.contamination = Contamination(paths)


class _PerPart(beam.PTransform[Any, Any]):
    """Root -> the state of the finished folder; one element a part of documents."""

    def __init__(self, plan: Plan, work: beam.DoFn, folder: Folder) -> None:
        super().__init__()
        self._plan, self._work, self._folder = plan, work, folder

    def expand(self, root: Any) -> PCollection[Any]:
        documents = root | "Documents" >> beam.Create(self._plan.parts) | beam.Reshuffle()
        reports = documents | "Parts" >> beam.ParDo(self._work)
        end = beam.Map(_finished, AsList(reports), self._folder)
        return root | "End" >> beam.Create([None]) | "Finish" >> end


def _finished(_: Any, reports: Sequence[parts.Report], folder: Folder) -> dict[str, Any]:
    """Marks a folder as complete."""
    state = {**folder.state, "complete": True, "parts": len(reports)}
    files.write_json(folder.state_path, state)
    return state
