"""Examples: tagged sentences as rows of Arrow columns, made from documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.digests import digest64, uniform
from nerbert.text.corpus import SPLITS
from nerbert.text.overlap import SentenceIndex
from nerbert.text.tags import LabelSet
from nerbert.text.tokens import tokenize
from ontology.entity_table import EntityTable
from pipeline.examples.counts import SelectionReport
from pipeline.examples.filters import FILTERS, Batch
from pipeline.examples.mentions import COLUMNS as SENTENCE_COLUMNS
from pipeline.examples.mentions import (
    LINK,
    SOURCES,
    Bools,
    Ints,
    Labelling,
    Names,
    Sentences,
    doubtful_anchors,
    sentences_of,
    unmark_outside,
)
from pipeline.examples.propagation import Propagation
from pipeline.settings import CorpusSettings
from pipeline.wikitext.names import CALENDAR, NOUNS_IN_UPPER_CASE

COLUMNS = pa.schema(
    [
        ("id", pa.string()),  # page_id:sentence:copy
        ("tokens", pa.list_(pa.string())),
        ("ner_tags", pa.list_(pa.int32())),  # label ids of labels.json
        ("targets", pa.list_(pa.string())),  # title that each mention leads to
        ("qids", pa.list_(pa.string())),  # its Wikidata item, such as Q60; null for none
        ("sources", pa.list_(pa.string())),  # how each mention was found
        ("token_starts", pa.list_(pa.int32())),  # first character of a token, from `start` on
        ("unlinked", pa.list_(pa.bool_())),  # tokens that may belong to names that are not marked
        ("page_id", pa.int64()),
        ("title", pa.string()),
        ("revision_id", pa.int64()),
        ("sentence", pa.int32()),  # number of the sentence in its page
        ("start", pa.int32()),  # characters of the document's text
        ("end", pa.int32()),
        ("copy", pa.int32()),  # number of the copy, from 0
    ]
)
"""Columns of an example."""

DIGESTS = pa.schema([("digest", pa.uint64()), ("page_id", pa.int64()), ("sentence", pa.int32())])
"""Columns of `examples/digests/part-*.parquet`: a digest of the tokens of each example."""

DOCUMENT_COLUMNS = (
    "page_id",
    "title",
    "revision_id",
    "is_disambiguation",
    "other_language",
    "text",
    *SENTENCE_COLUMNS,
)
"""Columns of a document that examples are made from."""

LONGEST_WORD = 100
"""Characters. Sentences longer than `max_tokens` such words are dropped before tokenisation."""


def schema(labels: LabelSet) -> pa.Schema:
    """The columns, with metadata that tells Hugging Face `datasets` the names of the labels."""
    features: dict[str, Any] = {}
    for column in COLUMNS:
        is_list = pa.types.is_list(column.type)
        inner = column.type.value_type if is_list else column.type
        value: dict[str, Any] = {"dtype": str(inner), "_type": "Value"}
        if column.name == "ner_tags":
            value = {"names": labels.tags, "_type": "ClassLabel"}
        features[column.name] = {"feature": value, "_type": "Sequence"} if is_list else value
    metadata = {"huggingface": json.dumps({"info": {"features": features}}, ensure_ascii=False)}
    return COLUMNS.with_metadata(metadata)


@dataclass
class _Page:
    """Facts that the sentences of a page share."""

    text: str
    names: Names
    seen: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Lists:
    """What `Sentences` holds, as lists: a slice of a small array costs more than its numbers."""

    starts: list[int]
    ends: list[int]
    numbers: list[int]
    anchors: list[tuple[int, int]]
    labels: list[int]
    persons: list[bool]
    targets: list[str]
    qids: list[str | None]
    sources: list[str]

    @classmethod
    def of(cls, sentences: Sentences, labels: Ints, entities: EntityTable) -> _Lists:
        """The lists; `persons` says which anchors are links to persons."""
        spans = sentences.anchor_starts.tolist(), sentences.anchor_ends.tolist()
        persons = entities.of_kind(sentences.entities, "Person") & (sentences.sources == LINK)
        return cls(
            sentences.starts.tolist(),
            sentences.ends.tolist(),
            sentences.numbers.tolist(),
            list(zip(*spans, strict=True)),
            labels.tolist(),
            persons.tolist(),
            sentences.targets.to_pylist(),
            entities.items_of(sentences.entities),
            [SOURCES[source] for source in sentences.sources.tolist()],
        )


class Selector:
    """Labels anchors, drops sentences, splits by page, tokenises and tags."""

    def __init__(
        self,
        entities: EntityTable,
        labelling: Labelling,
        frequent: Sequence[str],
        settings: CorpusSettings,
        excluded: SentenceIndex,
        propagation: Propagation | None = None,
        language: str = "",
    ) -> None:
        """Prepares the look-ups.

        Args:
            entities: the entity table.
            labelling: categories of the entities.
            frequent: the most frequent categories.
            settings: settings of the corpus.
            excluded: sentences of evaluation sets.
            propagation: finds mentions without a link; None for links only.
            language: code of the language; it says whether a capital inside a sentence is the sign
                of a name.
        """
        self._entities = entities
        self._labelling = labelling
        self._frequent = np.isin(np.array(labelling.names), np.array(list(frequent), dtype=object))
        self._settings = settings
        self._excluded = excluded
        self._capitals = language not in NOUNS_IN_UPPER_CASE
        self._calendar = CALENDAR.get(language, frozenset())
        self._propagation = propagation
        self._labels = LabelSet(labelling.names)

    def select(
        self, batch: pa.RecordBatch, selection: SelectionReport
    ) -> dict[str, pa.RecordBatch]:
        """Makes the examples of a batch of documents, by split; adds counts to `selection`."""
        sentences = sentences_of(batch, self._entities, self._settings.names_only)
        labels = self._labelling.label(sentences.entities)
        if self._propagation is not None:
            sentences = self._propagation.extended(batch, sentences, labels)
            labels = self._labelling.label(sentences.entities)
        is_kept = self.keep(batch, sentences, labels, selection)
        rows: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
        texts = batch.column("text").to_pylist()
        titles = batch.column("title").to_pylist()
        revisions = batch.column("revision_id").to_pylist()
        page_ids = batch.column("page_id").to_pylist()
        bounds = np.searchsorted(sentences.anchor_sentences, np.arange(len(sentences) + 1))
        chosen = np.flatnonzero(is_kept)
        lists = _Lists.of(sentences, labels, self._entities)
        page, split = _Page("", Names("", (), "")), rows["train"]
        current = -1
        doubtful = doubtful_anchors(batch)
        for index, document, first, last in zip(
            chosen.tolist(),
            sentences.documents[chosen].tolist(),
            bounds[chosen].tolist(),
            bounds[chosen + 1].tolist(),
            strict=True,
        ):
            if document != current:
                text = texts[document]
                names = _names(titles[document], text, document, sentences, doubtful)
                page, current = _Page(text, names), document
                split = rows[self.split_of(page_ids[document])]
            anchors = slice(first, last)
            row = self._example(page_ids[document], page, lists, index, anchors, selection)
            if row is not None:
                row["title"], row["revision_id"] = titles[document], revisions[document]
                split.append(row)
        return {split: self._batch(rows[split], split, selection) for split in SPLITS}

    def split_of(self, page_id: int) -> str:
        """The split of a page's sentences."""
        share = self._settings.validation_share
        drawn = uniform(self._settings.seed, "validation", page_id) < share
        return "validation" if drawn else "train"

    def keep(
        self, batch: pa.RecordBatch, sentences: Sentences, labels: Ints, selection: SelectionReport
    ) -> Bools:
        """Whether each sentence passes the filters that need no tokens, shape (sentences,)."""
        mentions = sentences.count(np.ones(len(labels), bool))
        selection.sentences_in += len(sentences)
        selection.mentions_in += len(labels)
        by_source = np.bincount(sentences.sources, minlength=len(SOURCES)).tolist()
        selection.mention_sources.update(dict(zip(SOURCES, by_source, strict=True)))
        selection.anchors_outside += sentences.outside
        facts = Batch(batch, sentences, labels, self._frequent, self._settings)
        is_kept = np.ones(len(sentences), bool)
        for reason, drops in FILTERS.items():
            dropped = drops(facts, is_kept) & is_kept
            selection.drop(reason, dropped, mentions)
            is_kept &= ~dropped
        return is_kept

    def _example(
        self,
        page_id: int,
        page: _Page,
        lists: _Lists,
        index: int,
        anchors: slice,
        selection: SelectionReport,
    ) -> dict[str, Any] | None:
        """Makes the row of a sentence; None if it is dropped, for a reason that is counted."""
        start, end = lists.starts[index], lists.ends[index]
        sentence = page.text[start:end]
        number = lists.numbers[index]
        example_id = f"{page_id}:{number}:0"
        anchor_spans = [(a - start, b - start) for a, b in lists.anchors[anchors]]
        reason, spans = self._tokenize(sentence, anchor_spans, page.seen)
        if not reason and (hit := next(self._excluded.hits(sentence), None)) is not None:
            reason = "contaminated"
            selection.contamination.append((example_id, *hit))
        if reason:
            selection.drop_one(reason, len(anchor_spans))
            return None
        tags = self._tags(spans, anchor_spans, lists.labels[anchors])
        words = [sentence[a:b] for a, b in spans]
        unlinked = page.names.mark(sentence, spans, words, tags, self._capitals)
        are_persons = zip(anchor_spans, lists.persons[anchors], strict=True)
        persons = {begin for (begin, _), is_person in are_persons if is_person}
        begins = [token for token, (a, _) in enumerate(spans) if a in persons] if persons else []
        unmark_outside(unlinked, words, begins, self._calendar)
        return {
            "id": example_id,
            "tokens": words,
            "ner_tags": tags,
            "targets": lists.targets[anchors],
            "qids": lists.qids[anchors],
            "sources": lists.sources[anchors],
            "token_starts": [a for a, _ in spans],
            "unlinked": unlinked,
            "page_id": page_id,
            "sentence": number,
            "start": start,
            "end": end,
            "copy": 0,
        }

    def _tokenize(
        self, sentence: str, anchors: Sequence[tuple[int, int]], seen: set[str]
    ) -> tuple[str, Sequence[tuple[int, int]]]:
        """The reason why a sentence is dropped, "" if it is kept, and the spans of its tokens.

        Args:
            sentence: the sentence.
            anchors: spans of its anchors, at whose edges tokens begin and end.
            seen: earlier sentences of the page; this one is added.
        """
        if sentence in seen:
            return "repeated", ()
        seen.add(sentence)
        if len(sentence) > LONGEST_WORD * self._settings.max_tokens:
            return "too-long", ()
        spans = tokenize(sentence, [edge for span in anchors for edge in span])
        if len(spans) < self._settings.min_tokens:
            return "too-short", spans
        return "too-long" if len(spans) > self._settings.max_tokens else "", spans

    def _tags(
        self,
        spans: Sequence[tuple[int, int]],
        anchors: Sequence[tuple[int, int]],
        labels: Sequence[int],
    ) -> list[int]:
        """Label ids of the tokens. Every anchor begins and ends at the boundary of a token."""
        tags = [0] * len(spans)
        token = 0
        for (start, end), label in zip(anchors, labels, strict=True):
            while spans[token][0] < start:
                token += 1
            tag = self._labels.begin(label)
            while token < len(spans) and spans[token][0] < end:
                tags[token] = tag
                tag = self._labels.begin(label) + 1
                token += 1
        return tags

    def _batch(
        self, rows: list[dict[str, Any]], split: str, selection: SelectionReport
    ) -> pa.RecordBatch:
        batch = pa.RecordBatch.from_pylist(rows, schema=schema(self._labels))
        selection.count(split, batch, self._labelling.names)
        return batch


def _names(
    title: str, text: str, document: int, sentences: Sentences, doubtful: tuple[Ints, Ints, Ints]
) -> Names:
    """The names of a page, which may occur without a link."""
    first, last = np.searchsorted(sentences.documents, (document, document + 1))
    anchors = slice(*np.searchsorted(sentences.anchor_sentences, (first, last)))
    starts, ends = sentences.anchor_starts[anchors], sentences.anchor_ends[anchors]
    documents, *others = doubtful
    more = slice(*np.searchsorted(documents, (document, document + 1)))
    starts, ends = np.append(starts, others[0][more]), np.append(ends, others[1][more])
    return Names(title, map(text.__getitem__, map(slice, starts.tolist(), ends.tolist())), text)


def digests_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """DIGESTS of some examples. Sentences with the same tokens have the same digest."""
    texts = pc.binary_join(batch.column("tokens"), "\x1f").to_pylist()
    digests = pa.array([digest64(0, "sentence", text) for text in texts], pa.uint64())
    columns = [digests, batch.column("page_id"), batch.column("sentence")]
    return pa.RecordBatch.from_arrays(columns, schema=DIGESTS)
