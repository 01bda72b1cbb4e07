"""A document: the plain text of a page, its sentences and anchors, as a row of Arrow columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from itertools import accumulate, chain, pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.commands.process import time_limit
from nerbert.errors import TooSlowError
from nerbert.storage import parts
from nerbert.storage.places import Place
from nerbert.text.common_nouns import NO_NOUNS, CommonNouns
from nerbert.text.sentences import SentenceModel
from ontology.titles import normal_title
from pipeline.documents.sentences import add_sentences, with_doubts
from pipeline.dump.pages import WIKITEXT, Page, redirect_section
from pipeline.dump.site import ARTICLE, CATEGORY, TEMPLATE, Site, language
from pipeline.dump.units import Unit, read_unit
from pipeline.wikitext.names import named_target
from pipeline.wikitext.render import Rendered, render

T = TypeVar("T")
PAGE_SECONDS = 60.0
"""The largest pages take a second; one that takes longer than this is made to do so."""
_LONGEST_OPENING = 20_000
"""Characters before the first heading, with the infobox."""
_HEADING = re.compile(r"\n==")
_BOLD = re.compile(r"(?<!')'{3}(?:'')?([^'\n\[\]{}|<>=*]{2,80})(?:'')?'{3}(?!')")
"""A text between bold marks, which may be italic, too."""

ANCHOR = pa.struct(
    [
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("target", pa.string()),
        ("name", pa.bool_()),  # whether the text may be a name, by its letters
        ("doubt", pa.int8()),  # what speaks against the name; see `pipeline.wikitext.names`
    ]
)

SCHEMA = pa.schema(
    [
        ("page_id", pa.int64()),
        ("namespace", pa.int32()),
        ("title", pa.string()),
        ("redirect", pa.string()),  # normal title that it leads to; null for other pages
        ("revision_id", pa.int64()),
        ("timestamp", pa.string()),
        ("templates", pa.list_(pa.string())),  # names, in the order of their first characters
        ("template_arguments", pa.list_(pa.list_(pa.string()))),  # "name=value" of each template
        ("categories", pa.list_(pa.string())),  # wiki categories
        ("names", pa.list_(pa.string())),  # in bold letters before the first heading
        ("is_disambiguation", pa.bool_()),
        ("other_language", pa.bool_()),  # the text is not in the wiki's language
        ("text", pa.string()),
        ("holes", pa.list_(pa.int32())),  # characters of `text` where running text is missing
        ("sentence_starts", pa.list_(pa.int32())),  # characters of `text`
        ("sentence_ends", pa.list_(pa.int32())),
        ("sentence_holes", pa.list_(pa.bool_())),  # running text is missing in the sentence
        ("sentence_markup", pa.list_(pa.bool_())),  # the paragraph has left-over markup
        ("anchors", pa.list_(ANCHOR)),  # offsets in characters of `text`
    ]
)
"""Columns of `documents/part-*.parquet`: one row per page, in the order of the dump."""

Row = dict[str, Any]


_MOST_ROWS, _TEXT_BYTES = 1024, 4_000_000
"""Sizes of a batch of documents; what is made of it takes some twenty times as much as its text."""


def to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Converts rows to columns of SCHEMA."""
    columns = [
        _anchor_column([row["anchors"] for row in rows])
        if column.name == "anchors"
        else pa.array([row[column.name] for row in rows], column.type)
        for column in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _anchor_column(by_page: Sequence[Sequence[tuple[int, int, str, bool, bool]]]) -> pa.ListArray:
    flat = list(chain.from_iterable(by_page))
    columns = zip(*flat, strict=True) if flat else ((),) * len(ANCHOR)
    offsets = list(accumulate(map(len, by_page), initial=0))
    fields = [pa.array(values, kind.type) for values, kind in zip(columns, ANCHOR, strict=True)]
    anchors = pa.StructArray.from_arrays(fields, fields=list(ANCHOR))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), anchors)


def read_documents(path: Place, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a part of documents in order, in batches of some 4 MB of text.

    Args:
        path: path of the part.
        columns: columns to read, with "text".
    """
    for batch in parts.read_batches(path, columns, rows=_MOST_ROWS):
        sizes = pc.fill_null(pc.binary_length(batch.column("text")), 0).to_numpy()
        bounds = np.flatnonzero(np.diff(np.cumsum(sizes) // _TEXT_BYTES)) + 1
        for start, end in pairwise([0, *bounds.tolist(), len(batch)]):
            yield batch.slice(start, end - start)


def page_limit() -> AbstractContextManager[None]:
    """Raises a TooSlowError in a block that takes longer than a page may."""
    return time_limit(PAGE_SECONDS)


def made_in_time(
    batch: pa.RecordBatch, make: Callable[[pa.RecordBatch], T]
) -> Iterator[tuple[pa.RecordBatch, T | None]]:
    """Results of `make` for documents, in order; None if one takes more than `PAGE_SECONDS`.

    A batch that takes longer is halved until the document is found.

    Args:
        batch: documents.
        make: makes something of documents, each by itself.
    """
    try:
        with page_limit():
            result: T | None = make(batch)
    except TooSlowError:
        if len(batch) > 1:
            for half in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
                yield from made_in_time(half, make)
            return
        result = None
    yield batch, result


def kept_as(page: Page) -> str:
    """Kind of a page: article, redirect or category; others are dropped.

    These are other-namespace, and other-content for pages of JSON, CSS, Lua or data.
    """
    if page.model != WIKITEXT:
        return "other-content"
    if page.redirect is not None:
        redirects = (ARTICLE, TEMPLATE, CATEGORY)
        return "redirect" if page.namespace in redirects else "other-namespace"
    return {ARTICLE: "article", CATEGORY: "category"}.get(page.namespace, "other-namespace")


def articles(units: Sequence[Unit]) -> Iterator[Page]:
    """The articles of some units, in order, each page id once."""
    page_ids: set[int] = set()
    for unit in units:
        for page in read_unit(unit):
            if (
                isinstance(page, Page)
                and kept_as(page) == "article"
                and page.page_id not in page_ids
            ):
                page_ids.add(page.page_id)
                yield page


def empty_row(**columns: Any) -> Row:
    """The row of an article without text; `columns` are its other values."""
    return {
        "page_id": 1,
        "namespace": ARTICLE,
        "title": "",
        "redirect": None,
        "revision_id": 1,
        "timestamp": "",
        "templates": [],
        "template_arguments": [],
        "categories": [],
        "names": [],
        "is_disambiguation": False,
        "other_language": False,
        "text": "",
        "holes": [],
        "sentence_starts": [],
        "sentence_ends": [],
        "sentence_holes": [],
        "sentence_markup": [],
        "anchors": [],
        **columns,
    }


def document(
    page: Page,
    site: Site,
    model: SentenceModel,
    *,
    list_items: bool = False,
    lexicon: bool = False,
    nouns: CommonNouns = NO_NOUNS,
) -> Row:
    """Makes the document of a page; see `pipeline.documents.unit_documents`."""
    row = empty_row(
        page_id=page.page_id,
        namespace=page.namespace,
        title=page.title,
        redirect=_redirect(page, site),
        revision_id=page.revision_id,
        timestamp=page.timestamp,
    )
    if page.redirect is not None:
        return row
    rendered = render(page.wikitext, site, list_items=list_items)
    row["categories"] = list(rendered.categories)
    row["templates"] = [template.name for template in rendered.templates]
    row["template_arguments"] = [list(template.arguments) for template in rendered.templates]
    if page.namespace != ARTICLE:
        return row
    row["is_disambiguation"] = is_disambiguation(page, rendered, site)
    row["text"] = rendered.text
    row["names"] = bold_names(page.wikitext, rendered.text)
    row["holes"] = list(rendered.holes)
    # MediaWiki shows a link to the page itself as bold text.
    anchors = [
        (anchor.start, anchor.end, anchor.target)
        for anchor in rendered.anchors
        if anchor.target != page.title
    ]
    row["anchors"] = with_doubts(anchors, rendered.text, site.language, lexicon, nouns)
    add_sentences(row, model)
    return row


def _redirect(page: Page, site: Site) -> str | None:
    """The title that a page redirects to, with the section if it is about something else."""
    if page.redirect is None or page.namespace != ARTICLE:
        return page.redirect
    section = redirect_section(page.wikitext, site)
    return named_target(page.title, f"{page.redirect}#{section}" if section else page.redirect)


def bold_names(wikitext: str, text: str) -> list[str]:
    """The names in bold letters before the first heading, which are those of the page itself.

    Source: English Wikipedia, Manual of Style, section "Bold text": title and other names.
    """
    opening = _HEADING.split(wikitext[:_LONGEST_OPENING], maxsplit=1)[0]
    names = (" ".join(match[1].split()) for match in _BOLD.finditer(opening))
    return list(dict.fromkeys(name for name in names if len(name) > 1 and name in text))


@cache
def _disambiguation_templates(code: str) -> frozenset[str]:
    names = language(code).disambiguation + language("en").disambiguation
    return frozenset(normal_title(name).lower() for name in names)


def is_disambiguation(page: Page, rendered: Rendered, site: Site) -> bool:
    """Whether a page only lists the meanings of a name.

    Source: MediaWiki's Disambiguator extension (`__DISAMBIG__`) and the templates that each wiki
    names in MediaWiki:Disambiguationspage.
    """
    if page.title.endswith("(disambiguation)") or "__DISAMBIG__" in page.wikitext:
        return True
    template_names = _disambiguation_templates(site.language)
    return any(template.name.lower() in template_names for template in rendered.templates)
