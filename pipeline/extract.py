"""The extract stage: units of dump files -> parts of documents."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.pvalue import AsList, AsSingleton, PCollection

from pipeline import files, parts
from pipeline.config import ExtractSettings
from pipeline.documents import SCHEMA, Row, document, kept_as, to_batch
from pipeline.dump import BadPage, Page, failed_page
from pipeline.sentences import SentenceModel
from pipeline.stable_hash import digest64
from pipeline.units import Damage, Unit, read_unit
from pipeline.wikitext import render

SCANNED_CHARS = 3_000_000
"""Characters of wikitext from the dump's beginning: of its articles some train Punkt."""
SAMPLED_CHARS = 500_000
"""Characters of their text that train it: pages with the smallest digest of their id first.

More do not help: on English pages 0.25 to 2 million agree equally with NLTK's own model.
"""
_LARGEST_SAMPLE = 200_000
_ROWS, _CHARS = 500, 2_000_000
"""Documents wait until there are so many, or their text is so long, to be written together."""


@dataclass(frozen=True)
class ExtractPlan:
    """What the stage reads and where it writes."""

    units: tuple[Unit, ...]
    settings: ExtractSettings
    folder: str

    @property
    def model_path(self) -> str:
        """Where the sentence model is kept."""
        return files.join(self.folder, "sentences.json")


def train_sentence_model(units: Sequence[Unit], seed: int) -> SentenceModel:
    """Punkt trained on articles chosen by a digest of their id, the same for any container."""
    found: list[tuple[int, int, str]] = []  # digest, page id, wikitext
    scanned = 0
    for page in (page for unit in units for page in read_unit(unit)):
        if not isinstance(page, Page) or kept_as(page) != "article":
            continue
        scanned += len(page.wikitext)
        if len(page.wikitext) <= _LARGEST_SAMPLE:
            found.append((digest64(seed, "punkt", page.page_id), page.page_id, page.wikitext))
        if scanned > SCANNED_CHARS:
            break
    texts: list[tuple[int, str]] = []
    chars = 0
    for _, page_id, wikitext in sorted(found):
        text = render(wikitext, units[0].site).text
        texts.append((page_id, text))
        chars += len(text)
        if chars > SAMPLED_CHARS:
            break
    return SentenceModel.train(text for _, text in sorted(texts))


class _SentenceModel(beam.DoFn):
    """Writes the sentence model and yields its path."""

    def __init__(self, plan: ExtractPlan) -> None:
        self._plan = plan

    def process(self, _: Any) -> Iterator[str]:
        path = self._plan.model_path
        if not files.exists(path):
            with _no_cycle_search():
                model = train_sentence_model(self._plan.units, self._plan.settings.seed)
            files.write_bytes(path, model.to_json().encode())
        yield path


class _Extract(beam.DoFn):
    """Writes the documents of a unit and yields its report."""

    def __init__(self, plan: ExtractPlan) -> None:
        self._plan = plan
        self._model: SentenceModel | None = None

    def process(self, unit: Unit, model_path: str) -> Iterator[parts.Report]:
        part = files.join(self._plan.folder, unit.part)
        report = parts.finished(part)
        if report is None:
            if self._model is None:
                self._model = SentenceModel.from_json(files.read_bytes(model_path))
            with _no_cycle_search():
                counts = write_documents(unit, part, self._model, self._plan.settings)
            report = parts.finish(part, counts)
        yield report


@contextmanager
def _no_cycle_search() -> Iterator[None]:
    """Keeps Python from looking for cycles of objects: a unit makes millions, hardly any in one."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def write_documents(
    unit: Unit, part: str, model: SentenceModel, settings: ExtractSettings
) -> parts.Report:
    """Writes the documents of a unit to `part`, and what could not be read beside it.

    Returns:
        Counts: of pages by what became of them, set aside by reason, and of what documents hold.
    """
    with parts.writer(part, SCHEMA) as writer:
        documents = _Documents(unit, model, settings, writer)
        for page in read_unit(unit):
            documents.add(page)
        documents.flush()
    if documents.quarantine:
        lines = (json.dumps(item, ensure_ascii=False) + "\n" for item in documents.quarantine)
        name = unit.part.replace(".parquet", ".jsonl")
        path = files.join(part[: -len(unit.part)], "quarantine", name)
        files.write_bytes(path, "".join(lines).encode("utf-8", "backslashreplace"))
    return {
        "unit": unit.index,
        "pages": dict(sorted(documents.pages.items())),
        "set_aside": dict(sorted(documents.aside.items())),
        "content": dict(sorted(documents.content.items())),
    }


class _Documents:
    """Writes the documents of one unit as its pages come; one bad page takes no other along."""

    def __init__(self, unit: Unit, model: SentenceModel, settings: ExtractSettings,
                 writer: pq.ParquetWriter) -> None:  # fmt: skip
        self._unit, self._model, self._settings, self._writer = unit, model, settings, writer
        self._rows: list[tuple[str, Row]] = []
        self._chars = 0
        self.pages: Counter[str] = Counter()
        self.aside: Counter[str] = Counter()
        self.content: Counter[str] = Counter()
        self.quarantine: list[dict[str, Any]] = []

    def add(self, page: Page | BadPage | Damage) -> None:
        if isinstance(page, Damage):
            self.content[f"damage-{page.reason}"] += 1
            damage = {"reason": page.reason, "byte": page.position, "detail": page.detail}
            self.quarantine.append(damage)
            return
        self.pages["read"] += 1
        if isinstance(page, BadPage):
            self._set_aside(page)
            return
        kind = kept_as(page)
        if kind == "other-namespace":
            self.pages[kind] += 1
            return
        try:
            row = document(page, self._unit.site, self._model,
                           list_items=self._settings.list_items)  # fmt: skip
        except Exception as error:
            self._set_aside(failed_page(error, page.page_id, page.title))
            return
        self._rows.append((kind, row))
        self._chars += len(row["text"])
        if len(self._rows) == _ROWS or self._chars > _CHARS:
            self.flush()

    def flush(self) -> None:
        """Writes the documents that wait; those that Arrow does not take are set aside."""
        rows, self._rows, self._chars = self._rows, [], 0
        try:
            batch = to_batch([row for _, row in rows])
        except (pa.ArrowException, OverflowError, UnicodeError):
            rows = [pair for pair in rows if self._fits(pair[1])]
            batch = to_batch([row for _, row in rows])
        for kind, row in rows:
            self.pages[kind] += 1
            _count(row, self.content)
        self._writer.write_batch(batch)

    def _fits(self, row: Row) -> bool:
        try:
            to_batch([row])
        except (pa.ArrowException, OverflowError, UnicodeError) as error:
            self._set_aside(failed_page(error, row["page_id"], row["title"]))
            return False
        return True

    def _set_aside(self, page: BadPage) -> None:
        self.aside[page.reason] += 1
        self.quarantine.append({"reason": page.reason, "page_id": page.page_id,
                                "title": page.title, "detail": page.detail})  # fmt: skip


def _count(row: Row, content: Counter[str]) -> None:
    content["sentences"] += len(row["sentence_starts"])
    content["holes"] += sum(row["sentence_holes"])
    content["anchors"] += len(row["anchors"])
    content["characters"] += len(row["text"])
    content["disambiguation_pages"] += row["is_disambiguation"]


def total(reports: Sequence[parts.Report]) -> dict[str, dict[str, int]]:
    """Sums of the reports of all units."""
    summed: dict[str, dict[str, int]] = {"pages": {}, "set_aside": {}, "content": {}}
    for report in reports:
        for group, counts in summed.items():
            parts.add_counts(counts, report[group])
    return {group: dict(sorted(counts.items())) for group, counts in summed.items()}


class _Finish(beam.DoFn):
    """Writes the sums of all reports: the stage is done."""

    def __init__(self, folder: str, state: dict[str, Any]) -> None:
        self._folder = folder
        self._state = state

    def process(self, _: Any, reports: list[parts.Report]) -> Iterator[dict[str, Any]]:
        summed = total(sorted(reports, key=lambda report: report["unit"]))
        state = {**self._state, "complete": True, "counts": summed}
        files.write_json(files.join(self._folder, "stage.json"), state)
        yield state


class Extract(beam.PTransform[Any, Any]):
    """Root -> the state of the finished stage; writes `documents/`."""

    def __init__(self, plan: ExtractPlan, state: dict[str, Any]) -> None:
        super().__init__()
        self._plan = plan
        self._state = state

    def expand(self, root: Any) -> PCollection[Any]:
        largest_first = sorted(self._plan.units, key=lambda unit: unit.start - unit.end)
        model = root | "Dump" >> beam.Create([None]) | beam.ParDo(_SentenceModel(self._plan))
        reports = (
            root
            | "Units" >> beam.Create(largest_first)
            | beam.Reshuffle()
            | beam.ParDo(_Extract(self._plan), AsSingleton(model))
        )
        finish = _Finish(self._plan.folder, self._state)
        return root | "End" >> beam.Create([None]) | beam.ParDo(finish, AsList(reports))
