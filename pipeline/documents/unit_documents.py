"""Writes the documents of a unit of a dump, and lists what could not be read."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nerbert.errors import TooSlowError
from nerbert.storage import parts
from nerbert.storage.places import Place
from nerbert.text.common_nouns import NO_NOUNS
from nerbert.text.sentences import SentenceModel
from pipeline.documents.previous import Previous
from pipeline.documents.report import DocumentsReport, count_content
from pipeline.documents.rows import SCHEMA, Row, document, kept_as, page_limit, to_batch
from pipeline.documents.sentences import add_sentences, with_doubts
from pipeline.dump.pages import BadPage, Page, failed_page
from pipeline.dump.site import ARTICLE
from pipeline.dump.units import Damage, Unit, read_unit
from pipeline.language import CommonWords

_NO_ID = 1 << 63
"""Arrow cannot represent ids from here on; their pages are set aside."""
_ROWS, _CHARS = 500, 2_000_000
"""Documents are written together: at most this number, or this length of their texts."""


def write_documents(
    unit: Unit,
    part: Place,
    model: SentenceModel,
    common: CommonWords | None = None,
    *,
    list_items: bool = False,
    lexicon: bool = False,
    previous: Previous | None = None,
) -> DocumentsReport:
    """Writes the documents of a unit, and a list of what could not be read.

    Args:
        unit: the unit.
        part: path of the part. The list is written to the folder `quarantine` beside it.
        model: model of sentences.
        common: the most frequent words of the wiki; without them no page is in another language.
        list_items: whether items of lists are kept as paragraphs.
        lexicon: whether the Japanese lexicon decides which texts may be names.
        previous: documents of an earlier dump; those of unchanged pages are taken over.
    """
    streams: Counter[int] = Counter()
    with parts.writer(part, SCHEMA) as writer:
        documents = _Documents(unit, model, common, list_items, lexicon, writer, previous)
        for page in read_unit(unit, streams):
            documents.add(page)
        documents.flush()
    if documents.quarantine:
        lines = (json.dumps(item, ensure_ascii=False) + "\n" for item in documents.quarantine)
        name = unit.part.replace(".parquet", ".jsonl")
        path = part.folder / "quarantine" / name
        path.write_bytes("".join(lines).encode("utf-8", "backslashreplace"))
    pages, aside, damage, content = (
        dict(sorted(count.items()))
        for count in (documents.pages, documents.aside, documents.damage, documents.content)
    )
    return DocumentsReport(
        unit.index,
        pages,
        aside,
        damage,
        content,
        *documents.page_range,
        documents.superseded,
        {str(n): times for n, times in sorted(streams.items()) if n},
        documents.holes,
        documents.taken_over,
    )


class _Documents:
    """Writes the documents of one unit. A bad page is set aside, and the others are written."""

    def __init__(
        self,
        unit: Unit,
        model: SentenceModel,
        common: CommonWords | None,
        list_items: bool,
        lexicon: bool,
        writer: pq.ParquetWriter,
        previous: Previous | None = None,
    ) -> None:
        self._unit, self._model, self._common, self._writer = unit, model, common, writer
        nouns = common.nouns if common else NO_NOUNS
        self._how: dict[str, Any] = {"list_items": list_items, "lexicon": lexicon, "nouns": nouns}
        self._previous = previous
        self.taken_over = 0
        self._rows: list[tuple[str, Row]] = []
        self._chars = 0
        self.pages: Counter[str] = Counter()
        self.aside: Counter[str] = Counter()
        self.damage: Counter[str] = Counter()
        self.content: Counter[str] = Counter()
        self.quarantine: list[dict[str, Any]] = []
        self._revisions: dict[int, int] = {}  # page id -> newest revision
        self._last: int | None = None
        self.page_range: tuple[int | None, int | None] = (None, None)
        self.superseded = 0
        self.holes: list[dict[str, int | None]] = []
        self._open_holes: list[dict[str, int | None]] = []  # no page was read behind them

    def add(self, page: Page | BadPage | Damage) -> None:
        if isinstance(page, Damage):
            self.damage.update({page.reason: 1, "bytes": page.lost})
            self.quarantine.append(
                {
                    "reason": page.reason,
                    "file": page.path.name,
                    "byte": page.position,
                    "lost": page.lost,
                    "detail": page.detail,
                }
            )
            if page.reason == "corrupt":
                hole: dict[str, int | None] = {"bytes": page.lost, "before": page.pages_before}
                hole |= {"previous": self._last, "next": None}
                self.holes.append(hole)
                self._open_holes.append(hole)
            return
        self.pages["read"] += 1
        if isinstance(page, BadPage):
            self._set_aside(page)
            return
        if page.page_id < _NO_ID:
            self._note_id(page.page_id)
        kind = kept_as(page)
        if kind in ("other-namespace", "other-content"):
            self.pages[kind] += 1
            return
        earlier_revision = self._revisions.get(page.page_id)
        if earlier_revision is not None and earlier_revision >= page.revision_id:
            self.pages["duplicate"] += 1
            return
        # Outside of the block: a damaged part of the earlier run is no fault of the page.
        earlier_row = self._previous.row(page) if self._previous else None
        try:
            with page_limit():
                row = (
                    document(page, self._unit.site, self._model, **self._how)
                    if earlier_row is None
                    else self._read_anew(earlier_row)
                )
        except TooSlowError as error:
            self._set_aside(BadPage("too-slow", page.page_id, page.title, str(error)))
            return
        except Exception as error:  # one page in millions must not end the run; it is counted
            self._set_aside(failed_page(error, page.page_id, page.title))
            return
        self.superseded += earlier_revision is not None
        self._revisions[page.page_id] = page.revision_id
        row["other_language"] = bool(self._common and self._common.is_other_language(row["text"]))
        self._rows.append((kind, row))
        self._chars += len(row["text"])
        if len(self._rows) == _ROWS or self._chars > _CHARS:
            self.flush()

    def _read_anew(self, row: Row) -> Row:
        """The row of an earlier dump, with what the models of this dump say."""
        self.taken_over += 1
        if row["namespace"] == ARTICLE and row["redirect"] is None:
            if nouns := self._how["nouns"]:  # nothing else about a link is of the whole dump
                language, lexicon = self._unit.site.language, self._how["lexicon"]
                row["anchors"] = with_doubts(row["anchors"], row["text"], language, lexicon, nouns)
            if nouns or not (self._previous and self._previous.keeps_sentences(row["text"])):
                add_sentences(row, self._model)
        return row

    def _note_id(self, page_id: int) -> None:
        first, last = self.page_range
        self.page_range = (min(page_id, first or page_id), max(page_id, last or page_id))
        self._last = page_id
        while self._open_holes:
            self._open_holes.pop()["next"] = page_id

    def flush(self) -> None:
        """Writes the collected documents; those that Arrow cannot represent are set aside."""
        rows, self._rows, self._chars = self._rows, [], 0
        try:
            batch = to_batch([row for _, row in rows])
        except (pa.ArrowException, OverflowError, UnicodeError):  # such as an id above 2**63
            rows = [pair for pair in rows if self._fits(pair[1])]
            batch = to_batch([row for _, row in rows])
        for kind, row in rows:
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
