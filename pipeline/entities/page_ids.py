"""The Wikidata ids and English titles of the dump's pages, from MediaWiki's tables."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nerbert.errors import UserError
from nerbert.storage import parts
from nerbert.storage.places import Place
from ontology.sources.phrases import NounPhrases
from ontology.sources.sql import Ids, read_descriptions, read_langlinks, read_page_props
from ontology.sources.types import WIKIDATA
from ontology.titles import Keys, title_keys
from pipeline.plan import Plan

PAGE_IDS = pa.schema(
    [
        ("page_id", pa.int64()),
        ("key", pa.uint64()),  # of the page's title
        ("qid", pa.uint32()),  # number of the Wikidata item; 0 for none
        ("english", pa.string()),  # normal title on the English Wikipedia; null for none
        ("phrases", pa.list_(pa.string())),  # by the description; see `ontology.sources.phrases`
    ]
)
"""Columns of `entities/page_ids.parquet`, one row for each article with any of these."""

Values = TypeVar("Values", Ids, list[str])

_LOGGER = logging.getLogger("nerbert")
_ROWS = 65_536
_PAGES = ["page_id", "key", "target"]


def ids_path(plan: Plan) -> Place:
    """Path of the ids of a run's pages."""
    return plan.entities.path / "page_ids.parquet"


def write_page_ids(plan: Plan) -> dict[str, Any]:
    """Joins the pages of the dump with the tables that the user gave.

    Returns:
        Number of articles, and for each kind of table the number of rows that were read, of
        articles with a row, and of files that are truncated.
    """
    settings = plan.settings
    pages, keys = _articles(plan)
    qids = np.zeros(len(pages), np.uint32)
    props: Counter[str] = Counter()
    for rows, values in _joined("--page-props", settings.page_props, pages, read_page_props, props):
        qids[rows] = values
    english: dict[int, str] = {}
    links: Counter[str] = Counter()
    for rows, titles in _joined("--langlinks", settings.langlinks, pages, read_langlinks, links):
        english.update(zip(rows.tolist(), titles, strict=True))
    described, described_as = _descriptions(plan, pages)
    has_id = qids > 0
    counts: dict[str, Any] = {"articles": len(pages)}
    if settings.page_props:
        n_described = int((described >= 0).sum())
        counts["page_props"] = {"pages": int(has_id.sum()), "described": n_described, **props}
    if settings.langlinks:
        counts["langlinks"] = {"pages": len(english), **links}
    has_id[list(english)] = True
    has_id |= described >= 0
    with parts.writer(ids_path(plan), PAGE_IDS) as writer:
        for start in range(0, len(pages), _ROWS):
            rows = start + np.flatnonzero(has_id[start : start + _ROWS])
            titles = pa.array([english.get(row) for row in rows.tolist()], pa.string())
            phrases = [described_as[number] if number >= 0 else None for number in described[rows]]
            arrays = [*map(pa.array, (pages[rows], keys[rows], qids[rows])), titles]
            arrays.append(pa.array(phrases, PAGE_IDS.field("phrases").type))
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=PAGE_IDS))
    return counts


def _descriptions(plan: Plan, pages: Ids) -> tuple[npt.NDArray[np.int32], list[list[str]]]:
    """Index of the phrases of each article, -1 for none, and the phrases."""
    rules = NounPhrases.shipped(plan.language)
    numbers: dict[tuple[str, ...], int] = {}
    of_articles = np.full(len(pages), -1, np.int32)

    def read(path: Place, _: Counter[str]) -> Iterator[tuple[Ids, list[str]]]:
        return read_descriptions(path)

    tables = plan.settings.page_props
    for rows, texts in _joined("--page-props", tables, pages, read, Counter()):
        phrases = [tuple(rules.of_description(text)) for text in texts]
        of_articles[rows] = [
            numbers.setdefault(row, len(numbers)) if row else -1 for row in phrases
        ]
    return of_articles, [list(phrases) for phrases in numbers]


def _articles(plan: Plan) -> tuple[Ids, Keys]:
    """Ids of the dump's articles, sorted, and the keys of their titles."""
    folder = plan.entities.path / "pages"
    ids, keys = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
    for part in sorted(part.name for part in plan.parts):
        for batch in parts.read_batches(folder / part, _PAGES, rows=_ROWS):
            articles = batch.filter(pa.array(batch.column("target").to_numpy() == 0))
            ids.append(articles.column("page_id").to_numpy())
            keys.append(articles.column("key").to_numpy())
    pages = np.concatenate(ids)
    order = np.argsort(pages, kind="stable")
    return pages[order], np.concatenate(keys)[order]


def _joined(
    flag: str,
    paths: Sequence[Place],
    pages: Ids,
    read: Callable[[Place, Counter[str]], Iterator[tuple[Ids, Values]]],
    counts: Counter[str],
) -> Iterator[tuple[Ids, Values]]:
    """The rows of tables about pages of the dump: indices of the pages, and the values.

    Raises:
        UserError: a table cannot be read.
    """
    if not len(pages):
        return
    for path in paths:
        truncated = counts["truncated"]
        try:
            for ids, values in read(path, counts):
                place = np.minimum(np.searchsorted(pages, ids), len(pages) - 1)
                matched = np.flatnonzero(pages[place] == ids)
                yield place[matched], _at_rows(values, matched)
        except ValueError as error:
            raise UserError(f"{flag} {path}: {error}; give MediaWiki's SQL dump") from None
        except (OSError, EOFError) as error:
            raise UserError(f"{flag} {path}: cannot be read ({error}); is it complete?") from None
        if counts["truncated"] > truncated:
            _LOGGER.warning(
                "%s %s: truncated (no '-- Dump completed' at its end): pages have no row; get the "
                "file again",
                flag,
                path,
            )


def _at_rows(values: Values, rows: Ids) -> Values:
    if isinstance(values, np.ndarray):
        return values[rows]
    return [values[row] for row in rows.tolist()]


class Subjects:
    """Finds the pages of the dump that statements are about."""

    def __init__(self, language: str, ids: pa.Table) -> None:
        """Takes the language of the dump, and the ids of its pages (PAGE_IDS)."""
        self._language = language
        english = ids.filter(ids.column("english").is_valid())
        self._english = _Index(
            title_keys(english.column("english").combine_chunks()), _keys(english)
        )
        items = ids.filter(pa.array(ids.column("qid").to_numpy() > 0))
        self._items = _Index(items.column("qid").to_numpy().astype(np.uint64), _keys(items))

    @classmethod
    def of(cls, plan: Plan) -> Subjects:
        """Reads the ids of a run's pages."""
        table = parts.read_tables([ids_path(plan)], PAGE_IDS)
        return cls(plan.language, table)

    def reaches(self, source: str) -> bool:
        """Whether pages can be found for subjects of a source: own and English titles, items."""
        if source in (WIKIDATA, "en") and source != self._language:
            return bool(len(self._items if source == WIKIDATA else self._english))
        return source == self._language

    def keys(self, source: str, subjects: Keys) -> Keys:
        """Keys of the titles of pages, 0 for subjects without a page in the dump.

        Args:
            source: language of the subjects, or WIKIDATA; one that `reaches` pages.
            subjects: keys of titles, or numbers of items.
        """
        if source == self._language:
            return subjects
        return (self._items if source == WIKIDATA else self._english).of(subjects)


def _keys(ids: pa.Table) -> Keys:
    keys: Keys = ids.column("key").to_numpy()
    return keys


class _Index:
    """Maps numbers to keys."""

    def __init__(self, numbers: Keys, keys: Keys) -> None:
        order = np.argsort(numbers, kind="stable")
        self._numbers, self._keys = numbers[order], keys[order]

    def __len__(self) -> int:
        return len(self._numbers)

    def of(self, numbers: Keys) -> Keys:
        """The key of each number, 0 for unknown ones."""
        if not len(self._numbers):
            return np.zeros(len(numbers), np.uint64)
        place = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        return np.where(self._numbers[place] == numbers, self._keys[place], np.uint64(0))
