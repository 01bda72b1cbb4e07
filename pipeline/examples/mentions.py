"""The anchors of documents in their sentences, and their categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ontology.categories import ENTITY, CategorySet
from ontology.classes import ClassTree
from ontology.entity_table import NO_CLASS, EntityTable
from pipeline.wikitext.names import NO_ENTITY, NO_PLACE

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

COLUMNS = ("sentence_starts", "sentence_ends", "sentence_holes", "sentence_markup", "anchors")
"""Columns of a document that `sentences_of` reads."""

SOURCES = ("link", "title", "repeat", "surname", "dictionary", "other-title", "own-name")
"""How a mention is found: as a link, the title of its page, a text or surname that the page links,
a text that the whole dump links, the title of another page, or a name that its page has in bold."""

LINK = SOURCES.index("link")

ENTITY_INDEX = 0
"""Index of ENTITY in every list of categories."""


@dataclass(frozen=True)
class Sentences:
    """The sentences of a batch of documents, and the anchors in them.

    Offsets count characters of the document's text.

    Attributes:
        documents: row of each sentence's document in the batch, shape (sentences,).
        numbers: number of each sentence in its page, shape (sentences,).
        starts: start of each sentence, shape (sentences,).
        ends: end of each sentence, shape (sentences,).
        holes: whether text is missing in each sentence, shape (sentences,).
        markup: whether the paragraph of each sentence has left-over markup, shape (sentences,).
        anchor_sentences: index of each anchor's sentence, ascending, shape (anchors,).
        anchor_starts: start of each anchor, shape (anchors,).
        anchor_ends: end of each anchor, shape (anchors,).
        targets: title that each anchor leads to, shape (anchors,).
        entities: entity index of each anchor, -1 for none, shape (anchors,).
        sources: index into SOURCES of each anchor, shape (anchors,).
        outside: number of anchors outside of sentences.
        common: number of anchors in sentences that are no names.
    """

    documents: Ints
    numbers: Ints
    starts: Ints
    ends: Ints
    holes: Bools
    markup: Bools
    anchor_sentences: Ints
    anchor_starts: Ints
    anchor_ends: Ints
    targets: pa.StringArray
    entities: npt.NDArray[np.int32]
    sources: npt.NDArray[np.uint8]
    outside: int
    common: int

    def __len__(self) -> int:
        return len(self.starts)

    def count(self, anchors: Bools) -> Ints:
        """Number of selected anchors in each sentence, shape (sentences,)."""
        return np.bincount(self.anchor_sentences[anchors], minlength=len(self))

    def where(self, anchors: Bools) -> Sentences:
        """The sentences with some of the anchors."""
        return replace(
            self,
            anchor_sentences=self.anchor_sentences[anchors],
            anchor_starts=self.anchor_starts[anchors],
            anchor_ends=self.anchor_ends[anchors],
            targets=self.targets.filter(pa.array(anchors)),
            entities=self.entities[anchors],
            sources=self.sources[anchors],
        )


def _numpy(column: pa.Array) -> Ints:
    return column.to_numpy(zero_copy_only=False).astype(np.int64)


def _bools(column: pa.Array) -> Bools:
    values: Bools = column.to_numpy(zero_copy_only=False).astype(bool)
    return values


def sentences_of(
    batch: pa.RecordBatch, entities: EntityTable, names_only: bool = True
) -> Sentences:
    """The sentences and anchors of a batch of documents.

    Args:
        batch: documents, with the columns COLUMNS.
        entities: the entity table.
        names_only: whether anchors that are no names are left out, and those such as "French" that
            lead to a place, "GDP" that lead to a page without class and, if there is a column
            "text", "France" that lead to a team.
    """
    starts_column = batch.column("sentence_starts")
    per_document = _numpy(pc.list_value_length(starts_column).fill_null(0))
    documents = np.repeat(np.arange(len(batch)), per_document)
    first = np.cumsum(per_document) - per_document
    starts, ends = _numpy(starts_column.flatten()), _numpy(batch.column("sentence_ends").flatten())

    flat = batch.column("anchors").flatten()
    anchor_starts, anchor_ends = _numpy(flat.field("start")), _numpy(flat.field("end"))
    per_document = _numpy(pc.list_value_length(batch.column("anchors")).fill_null(0))
    anchor_documents = np.repeat(np.arange(len(batch)), per_document)
    # One coordinate for the whole batch: documents are placed one after the other.
    reach = max(ends.max(initial=0), anchor_ends.max(initial=0)) + 1
    base = np.arange(len(batch)) * reach
    begins = base[anchor_documents] + anchor_starts
    place = np.searchsorted(base[documents] + starts, begins, "right") - 1
    inside = place >= 0
    sentence_of = place[inside]
    inside[inside] = (documents[sentence_of] == anchor_documents[inside]) & (
        ends[sentence_of] >= anchor_ends[inside]
    )
    outside = int((~inside).sum())
    of_anchors = entities.lookup(flat.field("target"))
    if names_only:
        inside &= _bools(flat.field("name")) & ~_no_names(flat, of_anchors, entities)
        if "text" in batch.schema.names:
            of_another_kind = _places_for_others(
                batch, flat, anchor_documents, of_anchors, inside, entities
            )
            inside &= ~of_another_kind
    targets = flat.field("target").filter(pa.array(inside))
    return Sentences(
        documents=documents,
        numbers=np.arange(len(starts)) - first[documents],
        starts=starts,
        ends=ends,
        holes=_bools(batch.column("sentence_holes").flatten()),
        markup=_bools(batch.column("sentence_markup").flatten()),
        anchor_sentences=place[inside],
        anchor_starts=anchor_starts[inside],
        anchor_ends=anchor_ends[inside],
        targets=targets,
        entities=of_anchors[inside],
        sources=np.zeros(len(targets), np.uint8),
        outside=outside,
        common=int((~inside).sum()) - outside,
    )


def doubtful_anchors(batch: pa.RecordBatch) -> tuple[Ints, Ints, Ints]:
    """Document, start and end of the anchors that are no names if their page has no class."""
    flat = batch.column("anchors").flatten()
    per_document = _numpy(pc.list_value_length(batch.column("anchors")).fill_null(0))
    rows = np.flatnonzero(_numpy(flat.field("doubt")) == NO_ENTITY)
    documents = np.repeat(np.arange(len(batch)), per_document)[rows]
    return documents, _numpy(flat.field("start"))[rows], _numpy(flat.field("end"))[rows]


def _no_names(
    anchors: pa.StructArray, targets: npt.NDArray[np.int32], entities: EntityTable
) -> Bools:
    """The anchors that are no names because of what they lead to: demonyms, and descriptions."""
    doubts = _numpy(anchors.field("doubt"))
    is_no_name = (doubts == NO_PLACE) & entities.of_kind(targets, "Place")
    rows = np.flatnonzero(doubts == NO_ENTITY)
    has_entity = targets[rows] >= 0
    is_no_name[rows] = True
    is_no_name[rows[has_entity]] = entities.classes[targets[rows[has_entity]]] == NO_CLASS
    return is_no_name


def _places_for_others(
    batch: pa.RecordBatch,
    anchors: pa.StructArray,
    documents: Ints,
    targets: npt.NDArray[np.int32],
    inside: Bools,
    entities: EntityTable,
) -> Bools:
    """Whether the text of an anchor is a place, and its target a war or a team named after it.

    In "the retreat from [Trenton]" and "a goal for [England]" the text is the name of the place.
    """
    is_other = entities.of_kind(targets, "Event") | entities.of_kind(targets, "Organisation")
    rows = np.flatnonzero(is_other & inside)
    texts = batch.column("text").to_pylist()
    columns = documents, *(_numpy(anchors.field(name)) for name in ("start", "end"))
    places = zip(*(column[rows].tolist() for column in columns), strict=True)
    names = [texts[document][start:end] for document, start, end in places]
    is_place = np.zeros(len(targets), bool)
    titled = entities.lookup(pa.array(names, pa.string()))
    is_place[rows] = entities.of_kind(titled, "Place") & (titled != targets[rows])
    return is_place


@dataclass(frozen=True)
class Labelling:
    """The category of each entity.

    Attributes:
        names: the categories: ENTITY, then the others, sorted.
        by_entity: category index of each entity, shape (entities + 1,). The last entry is for
            index -1, which means an unknown entity.
    """

    names: tuple[str, ...]
    by_entity: npt.NDArray[np.int16]

    @classmethod
    def of(cls, entities: EntityTable, categories: CategorySet, tree: ClassTree) -> Labelling:
        """The labelling with all categories."""
        labels = [categories.category(name, tree) for name in entities.class_names]
        names = (ENTITY, *sorted(set(labels) - {ENTITY}))
        position = {name: index for index, name in enumerate(names)}
        by_class = np.array([position[label] for label in labels] + [ENTITY_INDEX], np.int16)
        assert NO_CLASS == -1  # the last row of `by_class`
        by_entity = by_class[np.append(entities.classes, NO_CLASS)]
        return cls(names, by_entity)

    def keep(self, categories: Sequence[str]) -> Labelling:
        """The labelling with some categories only; entities of the others become ENTITY."""
        names = (ENTITY, *sorted(set(categories) - {ENTITY}))
        position = {name: index for index, name in enumerate(names)}
        translation = np.array([position.get(name, ENTITY_INDEX) for name in self.names], np.int16)
        return Labelling(names, translation[self.by_entity])

    def label(self, entities: npt.NDArray[np.int32]) -> Ints:
        """Category index of each anchor, by its entity index, shape (anchors,)."""
        return self.by_entity[entities].astype(np.int64)


def distinct_entities(
    linked: npt.NDArray[np.int64], labelling: Labelling
) -> tuple[dict[str, int], dict[str, int]]:
    """Number of distinct linked entities, and number of mentions, of each category.

    Args:
        linked: number of mentions of each entity, shape (entities,).
        labelling: categories of the entities.
    """
    by_entity = labelling.by_entity[: len(linked)]
    size = len(labelling.names)
    distinct = np.bincount(by_entity[linked > 0], minlength=size)
    mentions = np.bincount(by_entity, weights=linked, minlength=size).astype(int)
    return (
        dict(zip(labelling.names, distinct.tolist(), strict=True)),
        dict(zip(labelling.names, mentions.tolist(), strict=True)),
    )


def kept_categories(distinct: dict[str, int], min_entities: int) -> list[str]:
    """ENTITY, and the categories with at least `min_entities` distinct linked entities (or one).

    Source: Liu et al. 2021, section 2 (categories with fewer than ten entities are discarded).
    """
    least = max(1, min_entities)
    return [name for name, count in distinct.items() if name == ENTITY or count >= least]


def frequent_categories(mentions: dict[str, int], size: int) -> list[str]:
    """The `size` categories with the most mentions, ties by name; ENTITY may be one of them.

    Source: Liu et al. 2021, section 2.
    """
    present = [name for name, count in mentions.items() if count]
    return sorted(present, key=lambda name: (-mentions[name], name))[:size]
