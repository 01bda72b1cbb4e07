"""The extract stage: units of dump files -> parts of documents."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from nerbert.text.sentences import SENTENCES, SentenceModel
from pipeline.documents.duplicates import DropSuperseded, Revision, superseded
from pipeline.documents.previous import Previous
from pipeline.documents.report import DocumentsReport, duplicate_files, lost_pages, total
from pipeline.documents.sample import sampled_texts
from pipeline.documents.unit_documents import write_documents
from pipeline.dump.units import Unit
from pipeline.execution.part_pass import Gather, PartPass, Stage
from pipeline.language import CommonWords, trained
from pipeline.plan import WORDS, Plan, PlanPass

_LOGGER = logging.getLogger("nerbert")


class WriteDocuments(PlanPass, PartPass):
    """The pass that writes the documents of each unit."""

    name = "extract"
    report = DocumentsReport

    def elements(self) -> Sequence[Unit]:
        """The units, largest first: a large last unit would keep one worker busy alone."""
        return sorted(self._plan.units, key=lambda unit: unit.start - unit.end)

    def part(self, element: Unit) -> Place:
        return self._plan.documents.path / element.part

    def open(self) -> None:
        self._model = SentenceModel.from_json(model_path(self._plan).read_bytes())
        self._common = CommonWords.from_json(words_path(self._plan).read_bytes())
        run = self._plan.settings.previous
        self._previous = Previous(run, self._model) if run else None

    def make(self, element: Unit, part: Place, gathered: None) -> DocumentsReport:
        return write_documents(
            element,
            part,
            self._model,
            self._common,
            list_items=self._plan.settings.list_items,
            lexicon=self._plan.has_lexicon,
            previous=self._previous,
        )


class WriteShare(WriteDocuments):
    """Writes every N-th of the documents' parts, from the K-th on."""

    def __init__(self, plan: Plan, number: int, of: int) -> None:
        """Takes the plan, K (from 1) and N."""
        super().__init__(plan)
        self._number, self._of = number, of

    def elements(self) -> Sequence[Unit]:
        return super().elements()[self._number - 1 :: self._of]


def share_of_extract(plan: Plan, number: int, of: int) -> Stage:
    """Dump -> some parts of `documents/`; `extract_stage` makes the others, and what follows."""
    return [extract_stage(plan)[0], WriteShare(plan, number, of)]


def model_path(plan: Plan) -> Place:
    """Path of the Punkt model of a run's dump."""
    return plan.documents.path / SENTENCES


def words_path(plan: Plan) -> Place:
    """Path of the most frequent words of a run's dump."""
    return plan.documents.path / WORDS


def extract_stage(plan: Plan) -> Stage:
    """Dump -> `documents/`: models of the language, then a part of documents for each unit."""

    def write_models(_: list[Report], __: None) -> None:
        if words_path(plan).exists():  # it is written last
            return
        texts = sampled_texts(plan.units, plan.settings.seed)
        model = plan.pretrained or trained(texts, plan.language)
        common = CommonWords.train(texts, plan.language, plan.has_lexicon)
        model_path(plan).write_bytes(model.to_json().encode())
        words_path(plan).write_bytes(common.to_json().encode())

    def find_superseded(reports: list[DocumentsReport], _: None) -> dict[int, set[Revision]]:
        return superseded(dict(enumerate(plan.parts)), reports)

    def finish(reports: list[DocumentsReport], _: Any) -> None:
        ordered = sorted(reports, key=lambda report: report.unit)
        counts = {
            **total(ordered),
            "duplicate_files": duplicate_files(plan.units, ordered),
            "lost_pages": lost_pages(plan.units, ordered),
        }
        plan.documents.finish(counts=counts)
        if run := plan.settings.previous:
            n_pages = sum(report.taken_over for report in ordered)
            _LOGGER.info("extract: %s pages as in %s, not parsed again", f"{n_pages:,}", run)

    write = WriteDocuments(plan)
    return [
        Gather("models of the language", write_models),
        write,
        Gather("revisions of pages", find_superseded),
        DropSuperseded(write),
        Gather("end of extract", finish),
    ]
