"""Selects the sentences of a domain from documents, with their levels and annotation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.text.overlap import SentenceIndex
from nerbert.text.tags import spans_to_tags
from nerbert.text.tokens import tokenize
from ontology.categories import ENTITY
from ontology.classes import ClassTree
from ontology.entity_table import NO_CLASS, EntityTable
from pipeline.domain.definition import MISC, Domain, DomainSettings
from pipeline.domain.report import DomainReport
from pipeline.dump.site import ARTICLE
from pipeline.examples.borders import fitted
from pipeline.examples.mentions import ENTITY_INDEX, LINK, Ints, Labelling, Sentences, sentences_of
from pipeline.examples.propagation import Propagation
from pipeline.examples.selector import DOCUMENT_COLUMNS
from pipeline.examples.unlinked import PageWords

COLUMNS = pa.schema(
    [
        ("text", pa.string()),  # the sentence
        ("tokens", pa.int32()),  # number of tokens
        ("entities", pa.int32()),  # number of distinct named entities with a class
        ("entity", pa.bool_()),  # whether the sentence is of the entity level
        ("task", pa.bool_()),  # whether the sentence is of the task level
        ("page_id", pa.int64()),
        ("title", pa.string()),
        ("revision_id", pa.int64()),
        ("sentence", pa.int32()),  # number of the sentence in its page
        ("start", pa.int32()),  # characters of the document's text
        ("end", pa.int32()),
        ("category", pa.string()),  # wiki category of the page that is nearest to a root
        ("root", pa.string()),  # root above this category
        ("depth", pa.int32()),  # steps from the root to the category
    ]
)
"""Columns of `sentences/part-*.parquet`."""

READ = ("namespace", "redirect", "categories", *DOCUMENT_COLUMNS)
"""Columns of a document that are read."""


@dataclass(frozen=True)
class _Known:
    """Facts about each entity; the last entry is for unknown ones.

    Attributes:
        typed: whether the entity has a class, shape (entities + 1,).
        kinds: type of the entity, shape (entities + 1,).
        special: whether this type is special, shape (entities + 1,).
    """

    typed: npt.NDArray[np.bool_]
    kinds: npt.NDArray[np.object_]
    special: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, table: EntityTable, domain: Domain, tree: ClassTree) -> _Known:
        labelling = Labelling.of(table, domain.categories, tree)
        typed = np.append(table.classes, NO_CLASS) != NO_CLASS
        names = np.array(labelling.names, object)
        names[names == ENTITY] = MISC
        special = np.isin(names.astype(str), list(domain.special))
        return cls(typed, names[labelling.by_entity], special[labelling.by_entity])


class DomainSelector:
    """Selects the sentences of a domain's pages."""

    def __init__(
        self,
        table: EntityTable,
        walked: pa.Table,
        settings: DomainSettings,
        domain: Domain,
        tree: ClassTree,
        excluded: SentenceIndex,
        language: str,
        names: Propagation | None = None,
    ) -> None:
        """Prepares the look-ups.

        Args:
            table: the entity table.
            walked: wiki categories of the domain, nearest to the roots first.
            settings: options of the corpus.
            domain: definition of the domain.
            tree: classes of the ontology.
            excluded: sentences of evaluation sets.
            language: code of the wiki's language.
            names: finds the names of entities without a link; None to count links only.
        """
        self._table, self._settings, self._finder = table, settings, names
        self._known = _Known.of(table, domain, tree)
        self._names = walked.column("name").combine_chunks()
        self._walked = walked.to_pylist()
        self._excluded, self._language = excluded, language

    def select(self, batch: pa.RecordBatch, counts: DomainReport) -> tuple[pa.RecordBatch, str]:
        """Selects rows from a batch of documents; also returns their mentions as CoNLL columns."""
        batch, places = self._pages(batch, counts)
        sentences = sentences_of(batch, self._table)
        if self._finder is not None:
            typed = self._known.typed[sentences.entities]
            labels = np.where(typed, ENTITY_INDEX + 1, ENTITY_INDEX)
            words = PageWords(batch.column("text").to_pylist())
            sentences = self._finder.extended(batch, words, sentences, labels)
        fit = fitted(sentences, batch.column("text").to_pylist(), self._language)
        if len(fit.rows):
            counts.coverage["cut a token"] += len(fit.rows)
        sentences = fit.sentences
        entities = self._distinct(sentences)
        special = sentences.count(self._known.special[sentences.entities])
        levels = {
            "entity": entities >= self._settings.entity_mentions,
            "task": special >= self._settings.task_mentions,
        }
        rows, blocks = [], []
        for row, block in self._rows(batch, sentences, counts):
            index, document = row.pop("index"), row.pop("document")
            category = self._walked[places[document]]
            row |= {
                "entities": int(entities[index]),
                "category": category["name"],
                "root": category["root"],
                "depth": category["depth"],
                **{level: bool(flags[index]) for level, flags in levels.items()},
            }
            for level in ("domain", *(level for level in levels if row[level])):
                counts.levels[f"{level} sentences"] += 1
                counts.levels[f"{level} tokens"] += row["tokens"]
            rows.append(row)
            blocks.append(block)
        return pa.RecordBatch.from_pylist(rows, schema=COLUMNS), "".join(blocks)

    def _pages(self, batch: pa.RecordBatch, counts: DomainReport) -> tuple[pa.RecordBatch, Ints]:
        """The articles of the domain, and the place of each article's nearest category."""
        article = pc.and_(
            pc.equal(batch.column("namespace"), ARTICLE), pc.is_null(batch.column("redirect"))
        )
        batch = batch.filter(article)
        column = batch.column("categories")
        lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        places = pc.index_in(column.flatten(), value_set=self._names).fill_null(len(self._names))
        nearest = np.full(len(batch), len(self._names), np.int64)
        np.minimum.at(
            nearest,
            np.repeat(np.arange(len(batch)), lengths),
            places.to_numpy(zero_copy_only=False),
        )
        inside = nearest < len(self._names)
        listing = batch.column("is_disambiguation").to_numpy(zero_copy_only=False).astype(bool)
        selected = inside & ~listing
        for name, pages in (
            ("outside", ~inside),
            ("disambiguation", inside & listing),
            ("taken", selected),
        ):
            counts.pages[name] += int(pages.sum())
        for place in nearest[selected].tolist():
            category = self._walked[place]
            counts.by_depth[f"{category['root']}: {category['depth']}"] += 1
        return batch.filter(pa.array(selected)), nearest[selected]

    def _distinct(self, sentences: Sentences) -> Ints:
        """Number of distinct entities with a class in each sentence, shape (sentences,)."""
        typed = self._known.typed[sentences.entities]
        size = len(self._known.typed)
        pairs = sentences.anchor_sentences[typed] * size + sentences.entities[typed]
        return np.bincount(np.unique(pairs) // size, minlength=len(sentences))

    def _rows(
        self, batch: pa.RecordBatch, sentences: Sentences, counts: DomainReport
    ) -> Iterator[tuple[dict[str, Any], str]]:
        """The selected sentences with their CoNLL columns, empty if no mention has a class."""
        texts, titles, pages, revisions = (
            batch.column(name).to_pylist() for name in ("text", "title", "page_id", "revision_id")
        )
        bounds = np.searchsorted(sentences.anchor_sentences, np.arange(len(sentences) + 1))
        current, earlier_texts, paragraph = -1, set[str](), -1
        for index in range(len(sentences)):
            document = int(sentences.documents[index])
            if document != current:
                current, earlier_texts, paragraph = document, set(), -1
            start, end = int(sentences.starts[index]), int(sentences.ends[index])
            text = texts[document][start:end]
            number = int(sentences.numbers[index])
            reason = self._dropped(
                text, sentences.markup[index], sentences.holes[index], earlier_texts
            )
            if reason is None and (hit := next(self._excluded.hits(text), None)) is not None:
                reason = "contaminated"
                counts.contamination.append((f"{pages[document]}:{number}", *hit))
            counts.sentences[reason or "taken"] += 1
            if reason is not None:
                continue
            earlier_texts.add(text)
            place = texts[document].count("\n", 0, start)
            counts.levels["domain paragraphs"] += place != paragraph
            paragraph = place
            anchors = slice(int(bounds[index]), int(bounds[index + 1]))
            tokens, block = self._annotated(text, start, sentences, anchors, counts)
            yield (
                {
                    "text": text,
                    "tokens": tokens,
                    "index": index,
                    "document": document,
                    "page_id": pages[document],
                    "title": titles[document],
                    "revision_id": revisions[document],
                    "sentence": number,
                    "start": start,
                    "end": end,
                },
                block,
            )

    @staticmethod
    def _dropped(
        text: str, markup: np.bool_, hole: np.bool_, earlier_texts: set[str]
    ) -> str | None:
        """Why a sentence is dropped; None if it is kept."""
        if markup:
            return "markup"
        if hole:
            return "hole"
        return "repeated" if text in earlier_texts else None

    def _annotated(
        self, text: str, start: int, sentences: Sentences, anchors: slice, counts: DomainReport
    ) -> tuple[int, str]:
        """Number of tokens, and lines `token TAB tag` if there is a link or a named entity.

        A link to a page without class is ENTITY.
        """
        classes, entities = self._known, sentences.entities[anchors]
        starts = sentences.anchor_starts[anchors] - start
        ends = sentences.anchor_ends[anchors] - start
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        tokens = tokenize(text, self._language)
        if not spans:
            return len(tokens), ""
        mentions = []
        links = sentences.sources[anchors] == LINK
        counts.coverage["hyperlinks"] += int(links.sum())
        counts.coverage["with a class"] += int(classes.typed[entities][links].sum())
        counts.coverage["names without link"] += int((~links).sum())
        for (first, last), entity in zip(spans, entities.tolist(), strict=True):
            kind = str(classes.kinds[entity]) if classes.typed[entity] else ENTITY
            counts.types[kind] += 1
            inside = [i for i, (a, b) in enumerate(tokens) if first <= a and b <= last]
            mentions += [(inside[0], inside[-1] + 1, kind)] if inside else []
        tags = spans_to_tags(mentions, len(tokens))
        lines = (f"{text[a:b]}\t{tag}\n" for (a, b), tag in zip(tokens, tags, strict=True))
        return len(tokens), "".join(lines) + "\n"
