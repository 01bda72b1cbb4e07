"""Examples: tagged sentences as rows of Arrow columns, made from documents."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.digests import digest64, uniform
from nerbert.text.corpus import SPLITS
from nerbert.text.overlap import SentenceIndex
from nerbert.text.tags import LabelSet
from nerbert.text.tokens import Tokens
from ontology.entity_table import EntityTable
from pipeline.examples.borders import Fitted, fitted
from pipeline.examples.counts import SelectionReport
from pipeline.examples.filters import FILTERS, Batch
from pipeline.examples.mentions import COLUMNS as SENTENCE_COLUMNS
from pipeline.examples.mentions import (
    LINK,
    SOURCES,
    Bools,
    Ints,
    Labelling,
    Sentences,
    doubtful_anchors,
    sentences_of,
)
from pipeline.examples.propagation import Propagation
from pipeline.examples.unlinked import Names, PageWords, Unlinked
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
    "names",
    "text",
    *SENTENCE_COLUMNS,
)
"""Columns of a document that examples are made from."""

_AFTER = np.iinfo(np.int64).max
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


@dataclass(frozen=True)
class _Tokenised:
    """The sentences of a batch that are tokenised, and the anchors in them.

    Attributes:
        rows: their numbers among all sentences of the batch, shape (chosen,).
        texts: their texts.
        tokens: their tokens.
        words: the tokens themselves.
        anchors: numbers of their anchors among all anchors of the batch, shape (anchors,).
        first: first token of each of these anchors, shape (anchors,).
        after: one after its last token, shape (anchors,).
    """

    rows: Ints
    texts: list[str]
    tokens: Tokens
    words: list[str]
    anchors: Ints
    first: Ints
    after: Ints

    @classmethod
    def of(cls, sentences: Sentences, rows: Ints, texts: list[str], language: str) -> _Tokenised:
        """Finds the tokens; the anchors begin and end with one, see `pipeline.examples.borders`."""
        place = np.full(len(sentences), -1)
        place[rows] = np.arange(len(rows))
        owners = place[sentences.anchor_sentences]
        anchors = np.flatnonzero(owners >= 0)
        owners = owners[anchors]
        offsets = sentences.starts[rows[owners]]
        starts = sentences.anchor_starts[anchors] - offsets
        ends = sentences.anchor_ends[anchors] - offsets
        tokens = Tokens.of(texts, language)
        first, after = (
            np.searchsorted(tokens.starts, tokens.bases[owners] + edges) for edges in (starts, ends)
        )
        return cls(rows, texts, tokens, tokens.words(), anchors, first, after)

    def tags(self, begins: Ints) -> Ints:
        """Label ids of the tokens, by the label id that begins a mention of each anchor."""
        tags = np.zeros(len(self.words), np.int64)
        sizes = self.after - self.first
        inside = np.repeat(self.first - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        tags[inside] = np.repeat(begins + 1, sizes)
        tags[self.first[sizes > 0]] = begins[sizes > 0]
        return tags


class Selector:
    """Labels anchors, drops sentences, draws validation, tokenises and tags."""

    def __init__(
        self,
        entities: EntityTable,
        labelling: Labelling,
        frequent: Sequence[str],
        settings: CorpusSettings,
        excluded: SentenceIndex,
        propagation: Propagation | None = None,
        language: str = "",
        common: Collection[str] = (),
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
            common: the most frequent words of the language, in lower case.
        """
        self._entities = entities
        self._labelling = labelling
        self._frequent = np.isin(np.array(labelling.names), np.array(list(frequent), dtype=object))
        self._settings = settings
        self._excluded = excluded
        self._capitals = language not in NOUNS_IN_UPPER_CASE
        self._language, self._common = language, common
        self._calendar = CALENDAR.get(language, frozenset())
        self._propagation = propagation
        self._labels = LabelSet(labelling.names)
        self._begins = np.array([self._labels.begin(n) for n in range(len(labelling.names))])

    def select(
        self, batch: pa.RecordBatch, selection: SelectionReport
    ) -> dict[str, pa.RecordBatch]:
        """Makes the examples of a batch of documents, by split; adds counts to `selection`."""
        sentences = sentences_of(batch, self._entities, self._settings.names_only)
        labels = self._labelling.label(sentences.entities)
        words = PageWords(batch.column("text").to_pylist())
        if self._propagation is not None:
            sentences = self._propagation.extended(batch, words, sentences, labels)
        fit = fitted(sentences, words.texts, self._language)
        selection.leave_out_mentions(fit)
        sentences = fit.sentences
        labels = self._labelling.label(sentences.entities)
        is_kept = self.keep(batch, sentences, labels, selection)
        tokenised = self._tokenised(words.texts, sentences, np.flatnonzero(is_kept), selection)
        tags = tokenised.tags(self._begins[labels[tokenised.anchors]])
        unlinked = self._unlinked(batch, words, fit, tokenised, tags)
        examples = self._examples(batch, sentences, tokenised, tags, unlinked)
        is_kept = self._keep_tokenised(sentences, tokenised, examples.column("id"), selection)
        by = "page_id" if self._settings.split == "pages" else "id"
        keys = examples.column(by).to_pylist()
        split_by_key = {key: self.split_of(key) for key in dict.fromkeys(keys)}
        splits = np.array([split_by_key[key] for key in keys], dtype=object)
        by_split = {
            split: examples.filter(pa.array(is_kept & (splits == split), pa.bool_()))
            for split in SPLITS
        }
        for split, rows in by_split.items():
            selection.count(split, rows, self._labelling.names)
        return by_split

    def split_of(self, key: int | str) -> str:
        """The split of a page's examples, by its id; or of an example, by that of the example."""
        share = self._settings.validation_share
        is_validation = uniform(self._settings.seed, "validation", key) < share
        return "validation" if is_validation else "train"

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

    def _tokenised(
        self, texts: Sequence[str], sentences: Sentences, rows: Ints, selection: SelectionReport
    ) -> _Tokenised:
        """Tokenises sentences, but none twice that a page repeats, and none that is too long."""
        counts = sentences.count(np.ones(len(sentences.anchor_sentences), bool))
        longest = LONGEST_WORD * self._settings.max_tokens
        earlier_texts: set[tuple[int, str]] = set()
        selected_rows, selected_texts = [], []
        columns = rows, sentences.documents[rows], sentences.starts[rows], sentences.ends[rows]
        for row, document, start, end in zip(*(column.tolist() for column in columns), strict=True):
            text = texts[document][start:end]
            reason = "repeated" if (document, text) in earlier_texts else ""
            earlier_texts.add((document, text))
            if reason or len(text) > longest:
                selection.drop_one(reason or "too-long", int(counts[row]))
            else:
                selected_rows.append(row)
                selected_texts.append(text)
        return _Tokenised.of(
            sentences, np.array(selected_rows, np.int64), selected_texts, self._language
        )

    def _keep_tokenised(
        self, sentences: Sentences, tokenised: _Tokenised, ids: pa.Array, selection: SelectionReport
    ) -> Bools:
        """Whether each tokenised sentence passes the filters that need tokens."""
        mentions = sentences.count(np.ones(len(sentences.anchor_sentences), bool))[tokenised.rows]
        sizes = np.diff(tokenised.tokens.bounds)
        too_short, too_long = sizes < self._settings.min_tokens, sizes > self._settings.max_tokens
        contaminated = np.zeros(len(sizes), bool)
        for number in np.flatnonzero(~too_short & ~too_long).tolist():
            hit = next(self._excluded.hits(tokenised.texts[number]), None)
            if hit is not None:
                contaminated[number] = True
                selection.contamination.append((ids[number].as_py(), *hit))
        selection.drop("too-short", too_short, mentions)
        selection.drop("too-long", too_long, mentions)
        selection.drop("contaminated", contaminated, mentions)
        is_kept: Bools = ~(too_short | too_long | contaminated)
        return is_kept

    def _unlinked(
        self,
        batch: pa.RecordBatch,
        words: PageWords,
        fit: Fitted,
        tokenised: _Tokenised,
        tags: Ints,
    ) -> Bools:
        """Whether each token may belong to a name without link."""
        sentences = fit.sentences
        unlinked = Unlinked(tokenised.tokens, tokenised.words, tags)
        documents = sentences.documents[tokenised.rows]
        surfaces = _surfaces(batch, words.texts, sentences)
        titles = batch.column("title")
        if self._capitals:
            unlinked.mark_capitals()
        numbers, first = np.unique(documents, return_index=True)
        bounds = pairwise([*first.tolist(), len(documents)])
        for document, (start, end) in zip(numbers.tolist(), bounds, strict=True):
            if self._capitals:
                unlinked.unmark_first(range(start, end), words, document, self._common)
            title = titles[document].as_py()
            unlinked.mark_names(range(start, end), Names(title, surfaces[document]))
        persons = self._entities.of_kind(sentences.entities[tokenised.anchors], "Person")
        persons &= (sentences.sources[tokenised.anchors] == LINK) & (
            tokenised.first < tokenised.after
        )
        unlinked.unmark_before(tokenised.first[persons].tolist())
        unlinked.unmark_dates(self._calendar)
        unlinked.unmark_adjectives(self._language, self._common)
        place = np.full(len(sentences), -1)
        place[tokenised.rows] = np.arange(len(tokenised.rows))
        offsets = sentences.starts[fit.rows]
        spans = place[fit.rows], fit.starts - offsets, fit.ends - offsets
        unlinked.mark_spans(zip(*(column.tolist() for column in spans), strict=True))
        return np.array(unlinked.marked, bool)

    def _examples(
        self,
        batch: pa.RecordBatch,
        sentences: Sentences,
        tokenised: _Tokenised,
        tags: Ints,
        unlinked: Bools,
    ) -> pa.RecordBatch:
        """The rows of all tokenised sentences."""
        rows, tokens, anchors = tokenised.rows, tokenised.tokens, tokenised.anchors
        documents, numbers = pa.array(sentences.documents[rows]), sentences.numbers[rows]
        title, page_id, revision_id = (
            batch.column(name).take(documents) for name in ("title", "page_id", "revision_id")
        )
        ids = zip(page_id.to_pylist(), numbers.tolist(), strict=True)
        of_tokens = tokens.bounds
        of_anchors = np.searchsorted(sentences.anchor_sentences[anchors], np.append(rows, _AFTER))
        token_starts = tokens.starts - np.repeat(tokens.bases, np.diff(of_tokens))
        columns = [
            pa.array([f"{page}:{number}:0" for page, number in ids], pa.string()),
            _lists("tokens", of_tokens, tokenised.words),
            _lists("ner_tags", of_tokens, tags),
            _lists("targets", of_anchors, sentences.targets.take(pa.array(anchors))),
            _lists("qids", of_anchors, self._entities.items_of(sentences.entities[anchors])),
            _lists("sources", of_anchors, np.array(SOURCES)[sentences.sources[anchors]]),
            _lists("token_starts", of_tokens, token_starts),
            _lists("unlinked", of_tokens, unlinked),
            page_id,
            title,
            revision_id,
            *(
                pa.array(column, pa.int32())
                for column in (
                    numbers,
                    sentences.starts[rows],
                    sentences.ends[rows],
                    np.zeros(len(rows)),
                )
            ),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema(self._labels))


def _lists(name: str, bounds: Ints, values: Any) -> pa.ListArray:
    """A column of lists; `bounds` are the first value of each, and the number of values."""
    kind = COLUMNS.field(name).type.value_type
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), pa.array(values, kind))


def _surfaces(batch: pa.RecordBatch, texts: Sequence[str], sentences: Sentences) -> list[set[str]]:
    """The texts of the anchors of each document, and of those that are no mentions."""
    documents = sentences.documents[sentences.anchor_sentences]
    anchors = documents, sentences.anchor_starts, sentences.anchor_ends
    surfaces: list[set[str]] = [set() for _ in texts]
    for columns in (anchors, doubtful_anchors(batch)):
        for document, start, end in zip(*(column.tolist() for column in columns), strict=True):
            surfaces[document].add(texts[document][start:end])
    return surfaces


def digests_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """DIGESTS of some examples. Sentences with the same tokens have the same digest."""
    texts = pc.binary_join(batch.column("tokens"), "\x1f").to_pylist()
    digests = pa.array([digest64(0, "sentence", text) for text in texts], pa.uint64())
    columns = [digests, batch.column("page_id"), batch.column("sentence")]
    return pa.RecordBatch.from_arrays(columns, schema=DIGESTS)
