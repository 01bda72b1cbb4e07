"""The stages of a domain corpus: the graph of wiki categories, then the sentences.

categories   documents             -> categories/
sentences    documents, entities   -> sentences/, annotation/
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from nerbert.errors import UserError
from nerbert.storage import parts
from nerbert.storage.folders import Folder
from nerbert.storage.parts import Report, add
from nerbert.storage.places import Place, local_copies
from nerbert.text.overlap import SentenceIndex
from ontology.dictionary import Dictionary
from pipeline.documents.rows import made_in_time, read_documents
from pipeline.domain.category_graph import EDGES, WALKED, Graph, edges
from pipeline.domain.plan import DomainPlan
from pipeline.domain.report import DomainReport
from pipeline.domain.sentences import COLUMNS, READ, DomainSelector
from pipeline.entities.resolve import open_table
from pipeline.examples.propagation import Propagation
from pipeline.execution.part_pass import Gather, PartPass, Stage
from pipeline.language import CommonWords


class _DomainPass(PartPass):
    """A pass over the parts of documents."""

    def __init__(self, plan: DomainPlan, folder: Folder) -> None:
        self._plan, self._folder = plan, folder

    def elements(self) -> Sequence[str]:
        return self._plan.parts

    def part(self, element: Place) -> Place:
        return self._folder.path / element.name


@dataclass
class _SourceReport(Report):
    source: str


class WriteEdges(_DomainPass):
    """Writes the edges of the graph of wiki categories in each part."""

    name, report = "wiki categories", _SourceReport

    def make(self, element: Place, part: Place, gathered: None) -> _SourceReport:
        with parts.writer(part, EDGES) as writer:
            writer.write_batch(edges(element))
        return _SourceReport(element.name)


class WriteSentences(_DomainPass):
    """Writes the sentences of the domain, and the annotation of those with mentions."""

    name, report = "sentences", DomainReport

    def open(self) -> None:
        plan = self._plan
        categories = parts.read_tables([plan.categories_path], WALKED)
        with local_copies(plan.settings.exclude) as paths:
            excluded = SentenceIndex.of_files(paths, plan.settings.columns)
        table = open_table(plan.entities)
        names = None
        if plan.settings.mentions == "all":
            dictionary = Dictionary.open(plan.dictionary) if plan.dictionary else None
            common = CommonWords.from_json(plan.words.read_bytes())
            names = Propagation(table, dictionary, common, plan.language)
        self._selector = DomainSelector(
            table, categories, plan.settings, plan.domain, plan.tree, excluded, plan.language, names
        )

    def make(self, element: Place, part: Place, gathered: None) -> DomainReport:
        counts = DomainReport(element.name)
        name = element.name.replace(".parquet", ".conll")
        annotation = self._plan.annotation.path / name
        with parts.writer_if_rows(part, COLUMNS) as write, annotation.atomic_write() as conll:
            for batch in read_documents(element, READ):
                for documents, selected in made_in_time(batch, self._selected):
                    if selected is None:
                        counts.pages["too-slow"] += len(documents)
                        continue
                    batch_counts, rows, text = selected
                    add(vars(counts), vars(batch_counts))
                    write(rows)
                    conll.write(text.encode("utf-8", "backslashreplace"))
        return counts

    def _selected(self, batch: pa.RecordBatch) -> tuple[DomainReport, pa.RecordBatch, str]:
        counts = DomainReport()
        return counts, *self._selector.select(batch, counts)


def category_stage(plan: DomainPlan) -> Stage:
    """`documents/` -> `categories/`."""
    return [WriteEdges(plan, plan.categories), _finish(plan.categories)]


def sentence_stage(plan: DomainPlan) -> Stage:
    """`documents/` and `entities/` -> `sentences/` and `annotation/`."""
    return [WriteSentences(plan, plan.sentences), _finish(plan.sentences, plan.annotation)]


def _finish(*folders: Folder) -> Gather:
    def finish(reports: list[Report], _: None) -> None:
        for folder in folders:
            folder.finish(parts=len(reports))

    return Gather("end", finish)


def walk(plan: DomainPlan) -> pa.Table:
    """Finds the wiki categories of the domain, and writes them.

    Raises:
        UserError: a root is unknown, or the dump has no category pages.
    """
    paths = [plan.categories.path / part.name for part in plan.parts]
    domain = plan.domain
    graph = Graph(parts.read_tables(paths, EDGES))
    try:
        walked = graph.walk(domain.roots, domain.depth, domain.skip)
    except UserError as error:
        if plan.settings.roots or not plan.settings.domain:
            raise
        reason = str(error).removeprefix("--roots: ")
        raise UserError(
            f"--domain {plan.settings.domain}: {reason}{' ' if reason.endswith('?') else '. '}"
            "Give wiki categories that the dump has, with --roots"
        ) from None
    with parts.writer(plan.categories_path, WALKED) as writer:
        writer.write_table(walked)
    return walked


def total(plan: DomainPlan) -> DomainReport:
    """Sums of the counts of all finished parts."""
    step = WriteSentences(plan, plan.sentences)
    reports = (parts.finished(step.part(source), DomainReport) for source in plan.parts)
    return DomainReport.sum(report for report in reports if report is not None)
