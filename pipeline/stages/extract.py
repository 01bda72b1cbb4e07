"""The extract stage: units of dump files -> parts of documents."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nerbert import files, parts
from nerbert.corpus import SENTENCES
from nerbert.digests import digest64
from nerbert.parts import Report
from nerbert.text.sentences import SentenceModel
from pipeline.dump.pages import BadPage, Page, failed_page
from pipeline.dump.units import Damage, Unit, read_unit
from pipeline.plan import WORDS, Plan
from pipeline.sentences.common_words import CommonWords
from pipeline.sentences.model import trained
from pipeline.stages.documents import SCHEMA, Row, articles, document, kept_as, to_batch
from pipeline.stages.documents_report import DocumentsReport, count_content, lost_pages, total
from pipeline.stages.duplicates import DropDuplicates, duplicates
from pipeline.stages.part_pass import Gather, PartPass, Stage
from pipeline.stages.time_limit import TooSlowError, time_limit
from pipeline.wikitext.render import render

SCANNED_CHARS = 3_000_000
"""Characters of wikitext from the start of the dump; Punkt is trained on a sample of them."""
SAMPLED_CHARS = 500_000
"""Characters of text in this sample. Articles with small digests of their id are taken first.

More text does not help: on English pages, models of 0.25 and of 2 million characters agree equally
well with NLTK's own model.
"""
_LARGEST_SAMPLE = 200_000
_PAGE_SECONDS = 60.0
"""The largest pages take a second; one that takes longer than this is made to do so."""
_ROWS, _CHARS = 500, 2_000_000
"""Documents are written together: at most this number, or this length of their texts."""


def sampled_texts(units: Sequence[Unit], seed: int) -> list[str]:
    """Texts of some articles of a dump, which the models of its language are trained on.

    They are chosen by a digest of their id, so they do not depend on the dump's compression.
    """
    found: list[tuple[int, int, str]] = []  # digest, page id, wikitext
    scanned = 0
    for page in articles(units):
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
    return [text for _, text in sorted(texts)]


@contextmanager
def _no_cycle_search() -> Iterator[None]:
    """Turns off the search for reference cycles: a unit makes millions of objects without any."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def write_documents(
    unit: Unit,
    part: str,
    model: SentenceModel,
    common: CommonWords | None = None,
    *,
    list_items: bool = False,
) -> DocumentsReport:
    """Writes the documents of a unit, and a list of what could not be read.

    Args:
        unit: the unit.
        part: path of the part. The list is written to the folder `quarantine` beside it.
        model: model of sentences.
        common: the most frequent words of the wiki; without them no page is in another language.
        list_items: whether items of lists are kept as paragraphs.
    """
    with parts.writer(part, SCHEMA) as writer:
        documents = _Documents(unit, model, common, list_items, writer)
        for page in read_unit(unit):
            documents.add(page)
        documents.flush()
    if documents.quarantine:
        lines = (json.dumps(item, ensure_ascii=False) + "\n" for item in documents.quarantine)
        name = unit.part.replace(".parquet", ".jsonl")
        path = files.join(part[: -len(unit.part)], "quarantine", name)
        files.write_bytes(path, "".join(lines).encode("utf-8", "backslashreplace"))
    pages, aside, damage, content = (
        dict(sorted(count.items()))
        for count in (documents.pages, documents.aside, documents.damage, documents.content)
    )
    return DocumentsReport(unit.index, pages, aside, damage, content, *documents.page_range)


class _Documents:
    """Writes the documents of one unit. A bad page is set aside, and the others are written."""

    def __init__(
        self,
        unit: Unit,
        model: SentenceModel,
        common: CommonWords | None,
        list_items: bool,
        writer: pq.ParquetWriter,
    ) -> None:
        self._unit, self._model, self._common, self._writer = unit, model, common, writer
        self._list_items = list_items
        self._rows: list[tuple[str, Row]] = []
        self._chars = 0
        self.pages: Counter[str] = Counter()
        self.aside: Counter[str] = Counter()
        self.damage: Counter[str] = Counter()
        self.content: Counter[str] = Counter()
        self.quarantine: list[dict[str, Any]] = []
        self._ids: set[int] = set()
        self.page_range: tuple[int | None, int | None] = (None, None)

    def add(self, page: Page | BadPage | Damage) -> None:
        if isinstance(page, Damage):
            self.damage.update({page.reason: 1, "bytes": page.lost})
            self.quarantine.append(
                {
                    "reason": page.reason,
                    "file": files.name(page.path),
                    "byte": page.position,
                    "lost": page.lost,
                    "detail": page.detail,
                }
            )
            return
        self.pages["read"] += 1
        if isinstance(page, BadPage):
            self._set_aside(page)
            return
        if page.page_id in self._ids:
            self.pages["duplicate"] += 1
            return
        self._ids.add(page.page_id)
        kind = kept_as(page)
        if kind in ("other-namespace", "other-content"):
            self.pages[kind] += 1
            return
        try:
            with time_limit(_PAGE_SECONDS):
                row = document(page, self._unit.site, self._model, list_items=self._list_items)
        except TooSlowError as error:
            self._set_aside(BadPage("too-slow", page.page_id, page.title, str(error)))
            return
        except Exception as error:  # one page in millions must not end the run; it is counted
            self._set_aside(failed_page(error, page.page_id, page.title))
            return
        row["other_language"] = bool(self._common and self._common.is_other_language(row["text"]))
        self._rows.append((kind, row))
        self._chars += len(row["text"])
        if len(self._rows) == _ROWS or self._chars > _CHARS:
            self.flush()

    def flush(self) -> None:
        """Writes the collected documents; those that Arrow cannot represent are set aside."""
        rows, self._rows, self._chars = self._rows, [], 0
        try:
            batch = to_batch([row for _, row in rows])
        except (pa.ArrowException, OverflowError, UnicodeError):  # such as an id above 2**63
            rows = [pair for pair in rows if self._fits(pair[1])]
            batch = to_batch([row for _, row in rows])
        for kind, row in rows:
            first, last = self.page_range
            number = row["page_id"]
            self.page_range = (min(number, first or number), max(number, last or number))
            self.pages[kind] += 1
            count_content(row, self.content)
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
        self.quarantine.append(
            {
                "reason": page.reason,
                "page_id": page.page_id,
                "title": page.title,
                "detail": page.detail,
            }
        )


class WriteDocuments(PartPass):
    """The pass that writes the documents of each unit."""

    name = "extract"
    report = DocumentsReport

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def elements(self) -> Sequence[Unit]:
        """The units, largest first: a large last unit would keep one worker busy alone."""
        return sorted(self._plan.units, key=lambda unit: unit.start - unit.end)

    def part(self, element: Unit) -> str:
        return files.join(self._plan.documents.path, element.part)

    def open(self) -> None:
        self._model = SentenceModel.from_json(files.read_bytes(model_path(self._plan)))
        self._common = CommonWords.from_json(files.read_bytes(words_path(self._plan)))

    def make(self, element: Unit, part: str, known: None) -> DocumentsReport:
        with _no_cycle_search():
            return write_documents(
                element, part, self._model, self._common, list_items=self._plan.settings.list_items
            )


def model_path(plan: Plan) -> str:
    """Path of the Punkt model of a run's dump."""
    return files.join(plan.documents.path, SENTENCES)


def words_path(plan: Plan) -> str:
    """Path of the most frequent words of a run's dump."""
    return files.join(plan.documents.path, WORDS)


def extract_stage(plan: Plan) -> Stage:
    """Dump -> `documents/`: models of the language, then a part of documents for each unit."""

    def write_models(_: list[Report], __: None) -> None:
        if files.exists(words_path(plan)):  # it is written last
            return
        with _no_cycle_search():
            texts = sampled_texts(plan.units, plan.settings.seed)
            model = plan.pretrained or trained(texts, plan.language)
            common = CommonWords.train(texts)
        files.write_bytes(model_path(plan), model.to_json().encode())
        files.write_bytes(words_path(plan), common.to_json().encode())

    def find_duplicates(reports: list[DocumentsReport], _: None) -> dict[int, Any]:
        return duplicates(dict(enumerate(plan.parts)), reports)

    def finish(reports: list[DocumentsReport], _: Any) -> None:
        counts = total(sorted(reports, key=lambda report: report.unit))
        size = sum(source.size for source in plan.inputs)
        lost = lost_pages(counts["damage"], counts["pages"].get("read", 0), size)
        plan.documents.finish(counts={**counts, "lost_pages": lost})

    write = WriteDocuments(plan)
    return [
        Gather("models of the language", write_models),
        write,
        Gather("page ids", find_duplicates),
        DropDuplicates(write),
        Gather("end of extract", finish),
    ]
