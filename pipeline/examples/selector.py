"""Selection: the sentences of documents that become examples, their labels and what is unlinked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from nerbert.digests import uniform
from nerbert.text.corpus import SPLITS
from nerbert.text.overlap import SentenceIndex
from nerbert.text.tags import LabelSet
from ontology.entity_table import EntityTable
from pipeline.examples.borders import Fitted, fitted
from pipeline.examples.counts import SelectionReport
from pipeline.examples.filters import FILTERS, Batch
from pipeline.examples.inner import InnerMentions
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
from pipeline.examples.propagation import Propagation, names_aside
from pipeline.examples.rows import Tokenised, example_rows
from pipeline.examples.unlinked import Names, PageWords, Unlinked
from pipeline.language import NO_WORDS, CommonWords
from pipeline.settings import CorpusSettings
from pipeline.wikitext.lexicon import proper_nouns
from pipeline.wikitext.names import CALENDAR, NOUNS_IN_UPPER_CASE

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

LONGEST_WORD = 100
"""Characters. Sentences longer than `max_tokens` such words are dropped before tokenisation."""


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
        common: CommonWords = NO_WORDS,
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
            common: the most frequent words of the language, in lower case, and its common nouns.
        """
        self._entities = entities
        self._labelling = labelling
        self._frequent = np.isin(np.array(labelling.names), np.array(list(frequent), dtype=object))
        self._settings = settings
        self._excluded = excluded
        self._nouns = names_aside(common.nouns, entities)
        self._capitals = bool(self._nouns) or language not in NOUNS_IN_UPPER_CASE
        self._language, self._common = language, common.words
        self._calendar, self._has_lexicon = CALENDAR.get(language, frozenset()), common.has_lexicon
        self._propagation = propagation
        dictionary = propagation.dictionary if propagation else None
        self._inner = InnerMentions(dictionary, labelling)
        self._labels = LabelSet(labelling.names)
        self._begins = np.array([self._labels.begin(n) for n in range(len(labelling.names))])

    def select(
        self, batch: pa.RecordBatch, selection: SelectionReport
    ) -> dict[str, pa.RecordBatch]:
        """Makes the examples of a batch of documents, by split; adds counts to `selection`."""
        words = PageWords(batch.column("text").to_pylist())
        fit = self.link(batch, words)
        labels = self._labelling.label(fit.sentences.entities)
        return self.choose(batch, words, fit, labels, selection)

    def link(self, batch: pa.RecordBatch, words: PageWords) -> Fitted:
        """Finds the mentions of a batch of documents: links, and names without a link."""
        sentences = sentences_of(batch, self._entities, self._settings.names_only)
        if self._propagation is not None:
            labels = self._labelling.label(sentences.entities)
            sentences = self._propagation.extended(batch, words, sentences, labels)
        return fitted(sentences, words.texts, self._language)

    def choose(
        self,
        batch: pa.RecordBatch,
        words: PageWords,
        fit: Fitted,
        labels: Ints,
        selection: SelectionReport,
    ) -> dict[str, pa.RecordBatch]:
        """Makes the examples of documents with mentions, by split; adds counts to `selection`.

        Args:
            batch: documents.
            words: their texts, and the words of these.
            fit: their sentences and mentions.
            labels: category index of each mention, shape (anchors,).
            selection: the counts.
        """
        selection.leave_out_mentions(fit)
        sentences = fit.sentences
        is_kept = self.keep(batch, sentences, labels, selection)
        tokenised = self._tokenised(words.texts, sentences, np.flatnonzero(is_kept), selection)
        tags = tokenised.tags(self._begins[labels[tokenised.anchors]])
        unlinked = self._unlinked(batch, words, fit, tokenised, tags)
        examples = example_rows(
            batch,
            sentences,
            tokenised,
            tags,
            unlinked,
            self._entities,
            self._labels,
            self._inner.read(sentences, tokenised),
        )
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
        described = self._entities.has_phrases(sentences.entities)
        facts = Batch(batch, sentences, labels, described, self._frequent, self._settings)
        is_kept = np.ones(len(sentences), bool)
        for reason, drops in FILTERS.items():
            dropped = drops(facts, is_kept) & is_kept
            selection.drop(reason, dropped, mentions)
            is_kept &= ~dropped
        return is_kept

    def _tokenised(
        self, texts: Sequence[str], sentences: Sentences, rows: Ints, selection: SelectionReport
    ) -> Tokenised:
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
        return Tokenised.of(
            sentences, np.array(selected_rows, np.int64), selected_texts, self._language
        )

    def _keep_tokenised(
        self, sentences: Sentences, tokenised: Tokenised, ids: pa.Array, selection: SelectionReport
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
        self, batch: pa.RecordBatch, words: PageWords, fit: Fitted, tokenised: Tokenised, tags: Ints
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
            unlinked.unmark_nouns(range(start, end), self._nouns)
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
        unlinked.mark_in_marks(tokenised.texts)
        if self._has_lexicon:
            unlinked.mark_spans(
                (number, *span)
                for number, text in enumerate(tokenised.texts)
                for span in proper_nouns(text)
            )
        return np.array(unlinked.marked, bool)


def _surfaces(batch: pa.RecordBatch, texts: Sequence[str], sentences: Sentences) -> list[set[str]]:
    """The texts of the anchors of each document, and of those that are no mentions."""
    documents = sentences.documents[sentences.anchor_sentences]
    anchors = documents, sentences.anchor_starts, sentences.anchor_ends
    surfaces: list[set[str]] = [set() for _ in texts]
    for columns in (anchors, doubtful_anchors(batch)):
        for document, start, end in zip(*(column.tolist() for column in columns), strict=True):
            surfaces[document].add(texts[document][start:end])
    return surfaces
