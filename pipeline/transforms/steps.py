"""What the transforms do with each row, by the functions of the stages of `nerbert corpus`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.metrics.metric import Metrics

from nerbert.errors import TooSlowError, UserError
from nerbert.storage.places import Place
from nerbert.text.corpus import SPLITS
from nerbert.text.tags import LabelSet
from ontology.categories import ENTITY
from pipeline.documents.rows import document, empty_row, kept_as, page_limit, to_batch
from pipeline.dump.pages import Page, failed_page
from pipeline.dump.site import Site
from pipeline.dump.units import Unit, read_unit
from pipeline.examples import balance
from pipeline.examples.borders import Fitted
from pipeline.examples.counts import SelectionReport
from pipeline.examples.filters import CUTS_A_TOKEN
from pipeline.examples.mentions import SOURCES, Ints, sentences_of
from pipeline.examples.rows import digests_of
from pipeline.examples.unlinked import PageWords
from pipeline.inputs import has_lexicon
from pipeline.transforms.rows import (
    Anchor,
    Document,
    Example,
    Inner,
    LinkedDocument,
    Mention,
    WikiPage,
)
from pipeline.transforms.run import Run

NAMESPACE = "nerbert"
"""Namespace of the metrics."""


def _count(counter: str, times: int = 1) -> None:
    Metrics.counter(NAMESPACE, counter).inc(times)


def read_pages(unit: Unit) -> Iterator[WikiPage]:
    """Reads the pages of a part of a dump; counts those that cannot be read."""
    for page in read_unit(unit):
        if isinstance(page, Page):
            yield WikiPage(*(getattr(page, name) for name in WikiPage._fields))
        else:  # a bad page, or bytes that are lost
            _count(f"pages {page.reason}")


class Extract(beam.DoFn):
    """Makes the document of an article."""

    def __init__(self, run: Run, site: Site) -> None:
        self._run, self._site = run, site

    def setup(self) -> None:
        self._model, self._common = self._run.sentence_model(), self._run.common_words()
        self._how: dict[str, Any] = {
            "list_items": self._run.list_items,
            "lexicon": has_lexicon(self._run.language),
            "nouns": self._common.nouns,
        }

    def process(self, element: WikiPage) -> Iterator[Document]:
        page = Page(*element)
        kind = kept_as(page)
        if kind == "article":
            try:
                with page_limit():
                    row = document(page, self._site, self._model, **self._how)
            except TooSlowError:
                kind = "too-slow"
            except Exception as error:  # one page in millions must not end the job; it is counted
                kind = failed_page(error, page.page_id, page.title).reason
        _count(f"pages {kind}")
        if kind == "article":
            row["other_language"] = self._common.is_other_language(row["text"])
            row["anchors"] = [Anchor(*anchor) for anchor in row["anchors"]]
            yield Document(*(row[name] for name in Document._fields))


def _columns(documents: Iterable[Document]) -> tuple[pa.RecordBatch, PageWords]:
    rows = [empty_row(**each._asdict()) for each in documents]
    return to_batch(rows), PageWords([row["text"] for row in rows])


class _Selects(beam.DoFn):
    def __init__(self, run: Run) -> None:
        self._run = run

    def setup(self) -> None:
        self._selector, self._table, self._labelling = self._run.selector()


class Link(_Selects):
    """Finds the mentions of documents."""

    def process(self, documents: list[Document]) -> Iterator[LinkedDocument]:
        fit = self._selector.link(*_columns(documents))
        sentences, names = fit.sentences, self._labelling.names
        places = zip(
            *(sentences.anchor_sentences, sentences.anchor_starts, sentences.anchor_ends),
            *(sentences.targets.to_pylist(), sentences.entities.tolist()),
            [names[label] for label in self._labelling.label(sentences.entities)],
            [SOURCES[source] for source in sentences.sources],
            strict=True,
        )
        cuts = zip(fit.rows, fit.starts, fit.ends, strict=True)
        nothing = ("", -1, "", CUTS_A_TOKEN)
        mentions: list[list[Mention]] = [[] for _ in documents]
        for row, start, end, *facts in chain(places, ((*place, *nothing) for place in cuts)):
            mention = Mention(int(sentences.numbers[row]), int(start), int(end), *facts)
            mentions[sentences.documents[row]].append(mention)
        yield from map(LinkedDocument, documents, mentions)


class Choose(_Selects):
    """Makes the examples of documents with mentions, each with a digest of its tokens."""

    def process(self, linked: list[LinkedDocument]) -> Iterator[tuple[str, Example]]:
        batch, words = _columns([each.document for each in linked])
        selection = SelectionReport()
        fit, labels = self._fitted(batch, linked)
        by_split = self._selector.choose(batch, words, fit, labels, selection)
        for unit in ("sentences", "mentions"):
            for reason, times in vars(selection)[f"dropped_{unit}"].items():
                _count(f"{unit} {reason}", times)
        tags = LabelSet(self._labelling.names).tags
        for split, rows in by_split.items():
            digests = digests_of(rows).column("digest").to_pylist()
            for digest, row in zip(digests, rows.to_pylist(), strict=True):
                row["inner"] = [Inner(**each) for each in row["inner"]]
                row["tags"] = [tags[label] for label in row.pop("ner_tags")]
                yield str(digest), Example(split=split, **row)

    def _fitted(
        self, batch: pa.RecordBatch, linked: Sequence[LinkedDocument]
    ) -> tuple[Fitted, Ints]:
        """The mentions of rows as columns, with their categories."""
        plain = sentences_of(batch, self._table)
        first = np.searchsorted(plain.documents, np.arange(len(linked)))
        rows = sorted(
            (int(first[number]) + mention.sentence, *mention[1:])
            for number, each in enumerate(linked)
            for mention in each.mentions
        )
        cuts = [row for row in rows if row[-1] == CUTS_A_TOKEN]
        rows = [row for row in rows if row[-1] != CUTS_A_TOKEN]
        owners, starts, ends, targets, entities, names, sources = _unzipped(rows)
        category = {name: number for number, name in enumerate(self._labelling.names)}
        if unknown := {*names} - {*category}:
            raise UserError(f"{min(unknown)}: no category of the run {self._run.folder}")
        sentences = replace(
            plain,
            anchor_sentences=np.array(owners, np.int64),
            anchor_starts=np.array(starts, np.int64),
            anchor_ends=np.array(ends, np.int64),
            targets=pa.array(targets, pa.string()),
            entities=np.array(entities, np.int32),
            sources=np.array([SOURCES.index(name) for name in sources], np.uint8),
        )
        left_out = (np.array(column, np.int64) for column in _unzipped(cuts)[:3])
        labels = np.array([category[name] for name in names], np.int64)
        return Fitted(sentences, 0, *left_out), labels


def _unzipped(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True)) if rows else [()] * len(Mention._fields)


def first_page(element: tuple[str, Iterable[Example]]) -> Iterator[Example]:
    """Of equal sentences that of the page with the smallest id; the others are boilerplate."""
    examples = sorted(element[1], key=lambda example: (example.page_id, example.sentence))
    if len(examples) > 1:
        _count("sentences boilerplate", len(examples) - 1)
    yield examples[0]


_Totals = tuple[int, dict[str, tuple[int, int]]]
"""Number of examples; category -> its mentions, and the examples that hold it."""


class CountCategories(beam.CombineFn):
    """Counts examples, and the mentions and examples of each category."""

    def create_accumulator(self) -> _Totals:
        return 0, {}

    def add_input(self, totals: _Totals, example: Example) -> _Totals:
        begins = Counter(tag[2:] for tag in example.tags if tag.startswith("B-"))
        examples_with = {name: (mentions, 1) for name, mentions in begins.items()}
        return self.merge_accumulators([totals, (1, examples_with)])

    def merge_accumulators(self, accumulators: Iterable[_Totals]) -> _Totals:
        examples = 0
        sums: dict[str, tuple[int, int]] = {}
        for number, totals in accumulators:
            examples += number
            for name, (mentions, examples_with) in totals.items():
                before = sums.get(name, (0, 0))
                sums[name] = (before[0] + mentions, before[1] + examples_with)
        return examples, sums

    def extract_output(self, totals: _Totals) -> _Totals:
        return totals


def _labels(totals: _Totals) -> LabelSet:
    return LabelSet((ENTITY, *sorted({*totals[1]} - {ENTITY})))


def category_weights(totals: _Totals, alpha: float) -> dict[str, float]:
    """Category -> the copies that it adds to an example that holds it."""
    examples, sums = totals
    if not sums:
        return {}
    mentions, examples_with = ({name: pair[n] for name, pair in sums.items()} for n in (0, 1))
    names = _labels(totals).categories
    copies = balance.category_first(names, mentions, examples_with, examples, alpha)
    return dict(zip(names, copies.tolist(), strict=True))


def copies_of(
    example: Example, weights: dict[str, float], least: int, seed: int
) -> Iterator[Example]:
    """Repeats a train example, at least `least` times; one of validation stays as it is."""
    if example.split != SPLITS[0]:
        yield example
        return
    categories = {tag[2:] for tag in example.tags if tag.startswith("B-")}
    expected = np.array([max(sum(weights[name] for name in sorted(categories)), least)])
    (copies,) = balance.whole_copies(expected, [example.id], seed).tolist()
    stem = example.id.rpartition(":")[0]
    for number in range(copies):
        yield example._replace(id=f"{stem}:{number}", copy=number)


def label_ids(totals: _Totals) -> dict[str, int]:
    """Tag -> its label id, for the categories of all examples."""
    return {tag: number for number, tag in enumerate(_labels(totals).tags)}


def corpus_row(example: Example, label: dict[str, int]) -> dict[str, Any]:
    """The columns of an example in a corpus."""
    row = example._asdict()
    row["inner"] = [Inner(*each)._asdict() for each in example.inner]
    return {**row, "ner_tags": [label[tag] for tag in row.pop("tags")]}


def write_labels(totals: _Totals, path: Place) -> None:
    """Writes labels.json."""
    path.write_json(_labels(totals).to_json())
