"""Anchors -> categories, by column: no Python object per sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ontology.categories import ENTITY, CategorySet
from ontology.classes import ClassTree
from ontology.entities import NO_CLASS, EntityTable

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

COLUMNS = ("sentence_starts", "sentence_ends", "sentence_holes", "anchors")
"""Columns of a document that `sentences_of` reads."""

ENTITY_INDEX = 0
"""Category index of ENTITY in every list of categories."""


@dataclass(frozen=True)
class Sentences:
    """The sentences of a batch of documents and the anchors in them.

    Attributes:
        documents: row of the batch each sentence belongs to, shape (sentences,).
        numbers: number of the sentence in its page, shape (sentences,).
        starts: first character in the document's text, shape (sentences,); `ends` likewise.
        holes: text is missing in the sentence, shape (sentences,).
        anchor_sentences: sentence each anchor lies in, shape (anchors,), ascending.
        anchor_starts: first character in the document's text, shape (anchors,); `anchor_ends`
            likewise.
        targets: titles the anchors lead to.
        entities: entity index of each anchor, -1 for none, shape (anchors,).
        outside: anchors that lie in no sentence.
    """

    documents: Ints
    numbers: Ints
    starts: Ints
    ends: Ints
    holes: Bools
    anchor_sentences: Ints
    anchor_starts: Ints
    anchor_ends: Ints
    targets: pa.StringArray
    entities: npt.NDArray[np.int32]
    outside: int

    def __len__(self) -> int:
        return len(self.starts)

    def count(self, anchors: Bools) -> Ints:
        """How many of the anchors marked true each sentence holds, shape (sentences,)."""
        return np.bincount(self.anchor_sentences[anchors], minlength=len(self))


def _numpy(column: pa.Array) -> Ints:
    return column.to_numpy(zero_copy_only=False).astype(np.int64)


def sentences_of(batch: pa.RecordBatch, entities: EntityTable) -> Sentences:
    """The sentences and anchors of a batch of documents."""
    starts_column = batch.column("sentence_starts")
    per_document = _numpy(pc.list_value_length(starts_column).fill_null(0))
    documents = np.repeat(np.arange(len(batch)), per_document)
    first = np.cumsum(per_document) - per_document
    starts, ends = _numpy(starts_column.flatten()), _numpy(batch.column("sentence_ends").flatten())

    anchors = batch.column("anchors")
    per_document = _numpy(pc.list_value_length(anchors).fill_null(0))
    anchor_documents = np.repeat(np.arange(len(batch)), per_document)
    flat = anchors.flatten()
    anchor_starts, anchor_ends = _numpy(flat.field("start")), _numpy(flat.field("end"))
    # One coordinate for the whole batch: each document begins where no other reaches.
    reach = max(ends.max(initial=0), anchor_ends.max(initial=0)) + 1
    base = np.arange(len(batch)) * reach
    place = (
        np.searchsorted(base[documents] + starts, base[anchor_documents] + anchor_starts, "right")
        - 1
    )
    inside = place >= 0
    inside[inside] = (documents[place] == anchor_documents)[inside] & (ends[place] >= anchor_ends)[
        inside
    ]
    targets = flat.field("target").filter(pa.array(inside))
    return Sentences(
        documents=documents, numbers=np.arange(len(starts)) - first[documents],
        starts=starts, ends=ends,
        holes=batch.column("sentence_holes").flatten().to_numpy(zero_copy_only=False).astype(bool),
        anchor_sentences=place[inside], anchor_starts=anchor_starts[inside],
        anchor_ends=anchor_ends[inside], targets=targets, entities=entities.lookup(targets),
        outside=int((~inside).sum()),
    )  # fmt: skip


@dataclass(frozen=True)
class Labelling:
    """Which category each entity has.

    Attributes:
        names: the categories, ENTITY first, the others sorted.
        by_entity: category index of each entity, shape (entities + 1,); the last entry is that of
            entity -1, an anchor that leads to no known entity.
    """

    names: tuple[str, ...]
    by_entity: npt.NDArray[np.int16]

    @classmethod
    def of(cls, entities: EntityTable, categories: CategorySet, tree: ClassTree) -> Labelling:
        """Before any category is given up."""
        labels = [categories.category(name, tree) for name in entities.class_names]
        names = (ENTITY, *sorted(set(labels) - {ENTITY}))
        position = {name: index for index, name in enumerate(names)}
        by_class = np.array([position[label] for label in labels] + [ENTITY_INDEX], np.int16)
        assert NO_CLASS == -1  # the last row of `by_class`
        by_entity = by_class[np.append(entities.classes, NO_CLASS)]
        return cls(names, by_entity)

    def keep(self, kept: Sequence[str]) -> Labelling:
        """The same with only some categories kept; the others become ENTITY."""
        names = (ENTITY, *sorted(set(kept) - {ENTITY}))
        position = {name: index for index, name in enumerate(names)}
        translation = np.array([position.get(name, ENTITY_INDEX) for name in self.names], np.int16)
        return Labelling(names, translation[self.by_entity])

    def label(self, entities: npt.NDArray[np.int32]) -> Ints:
        """Category index of each anchor by its entity, shape (anchors,)."""
        return self.by_entity[entities].astype(np.int64)


def distinct_entities(
    linked: npt.NDArray[np.int64], labelling: Labelling
) -> tuple[dict[str, int], dict[str, int]]:
    """Distinct linked entities, and mentions, of each category.

    Args:
        linked: mentions of each entity, shape (entities,).
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
    """Categories with at least `min_entities` distinct linked entities (and at least one); ENTITY.

    Source: Liu et al. 2021, section 2 (categories with fewer than ten entities are discarded).
    """
    least = max(1, min_entities)
    return [name for name, count in distinct.items() if name == ENTITY or count >= least]


def frequent_categories(mentions: dict[str, int], size: int) -> list[str]:
    """The `size` categories with the most mentions, ENTITY among them; ties by name.

    Source: Liu et al. 2021, section 2.
    """
    present = [name for name, count in mentions.items() if count]
    return sorted(present, key=lambda name: (-mentions[name], name))[:size]
