"""`EntityTable`: page title -> (redirects followed) -> entity -> class, in memory-mapped arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ontology.titles import Keys, title_keys

Int32 = npt.NDArray[np.int32]
Int16 = npt.NDArray[np.int16]
Int8 = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int64]
Percent = npt.NDArray[np.uint8]
Bits = npt.NDArray[np.uint32]

NO_CLASS = -1
SOURCES = ("none", "dbpedia", "infobox", "first-sentence", "page-typer")
"""Sources of the class of an entity: none; a file of instance types; without one, the infobox;
without that, the noun of the first sentence; without that, the page typer."""

INFOBOX = "infobox"
"""Name of the first voter; then come files of instance types, and the voters below."""
FIRST_SENTENCE = "first sentence"
PAGE_TYPER = "page typer"

ARRAYS = (
    *("keys", "entities", "classes", "support", "voters", "qids"),
    *("phrase_bounds", "phrase_ids"),
)
"""Arrays of a saved table, each in a .npy file."""


class EntityTable:
    """Maps titles to entities, and entities to classes.

    An entity is a page that is not a redirect. Titles that only DBpedia knows are entities, too.

    Attributes:
        class_names: names of the classes, by class index.
        class_kinds: kind of each class, such as Person or Place; "" for none.
        keys: sorted title keys, shape (titles,).
        entities: entity index of each key, shape (titles,).
        classes: class index of each entity, or NO_CLASS, shape (entities,).
        support: probability that the class is right, in per cent, shape (entities,); see
            `ontology.voting.support`.
        voters: bit set of the voters that know the entity, shape (entities,).
        voter_names: names of the voters, by bit.
        qids: number of the Wikidata item of each entity, 0 for none, shape (entities,).
        phrase_names: phrases that say what entities are, such as "studio album".
        phrase_bounds: where the phrases of each entity begin in `phrase_ids`, and where those of
            the last one end, shape (entities + 1,).
        phrase_ids: indices of the phrases, one entity after the other.
    """

    def __init__(
        self,
        class_names: Sequence[str],
        class_kinds: Sequence[str],
        voter_names: Sequence[str],
        keys: Keys,
        entities: Int32,
        classes: Int16,
        support: Percent,
        voters: Bits,
        qids: Bits | None = None,
    ) -> None:
        self.class_names = list(class_names)
        self.class_kinds = list(class_kinds)
        self.voter_names = list(voter_names)
        self.keys = keys
        self.entities = entities
        self.classes = classes
        self.support = support
        self.voters = voters
        self.qids = np.zeros(len(classes), np.uint32) if qids is None else qids
        self.phrase_names: list[str] = []
        self.phrase_bounds: Int32 = np.broadcast_to(np.int32(0), len(classes) + 1)
        self.phrase_ids: Int32 = np.zeros(0, np.int32)

    @cached_property
    def sources(self) -> Int8:
        """Index into SOURCES of each entity, shape (entities,)."""
        voters = np.asarray(self.voters)
        order = {INFOBOX: 2, FIRST_SENTENCE: 3, PAGE_TYPER: 4}
        sources = [order.get(name, 1) for name in self.voter_names]
        best = np.full(len(voters), len(SOURCES) - 1)
        for bit in sorted(range(len(sources)), key=sources.__getitem__, reverse=True):
            best[(voters >> np.uint32(bit) & np.uint32(1)) != 0] = sources[bit]
        best[np.asarray(self.classes) == NO_CLASS] = 0
        return best.astype(np.int8)

    def of_kind(self, entities: Int32, kind: str) -> npt.NDArray[np.bool_]:
        """Whether each entity is of a kind, shape (entities,); index -1 is of none."""
        is_kind = np.array([name == kind for name in self.class_kinds] + [False])
        # The last row is that of index -1 and of NO_CLASS.
        classes = np.full(len(entities), NO_CLASS)
        has_entity = entities >= 0
        classes[has_entity] = self.classes[entities[has_entity]]
        is_of_kind: npt.NDArray[np.bool_] = is_kind[classes]
        return is_of_kind

    def has_phrases(self, entities: Int32) -> npt.NDArray[np.bool_]:
        """Whether each entity has a phrase, shape (entities,); index -1 has none."""
        is_described = entities >= 0
        rows = entities[is_described]
        is_described[is_described] = self.phrase_bounds[rows] < self.phrase_bounds[rows + 1]
        return is_described

    def __len__(self) -> int:
        return len(self.keys)

    def lookup(self, titles: pa.Array | Sequence[str]) -> Int32:
        """Entity index of each normal title, -1 for unknown ones, shape (titles,)."""
        return self.lookup_keys(title_keys(titles))

    def lookup_keys(self, keys: Keys) -> Int32:
        """Entity index of each title key, -1 for unknown ones, shape (keys,)."""
        order = np.argsort(keys)  # sorted keys read the memory-mapped table from front to back
        ordered = keys[order]
        place = np.minimum(np.searchsorted(self.keys, ordered), max(len(self.keys) - 1, 0))
        result = np.full(len(keys), -1, np.int32)
        if len(self.keys):
            hit = self.keys[place] == ordered
            result[order] = np.where(hit, self.entities[place], -1)
        return result

    def class_of(self, title: str) -> str | None:
        """Class of the page that a normal title leads to; None if it has none."""
        entity = int(self.lookup([title])[0])
        index = NO_CLASS if entity < 0 else int(self.classes[entity])
        return None if index == NO_CLASS else self.class_names[index]

    def qid_of(self, title: str) -> str | None:
        """Wikidata item, such as "Q60", of the page of a normal title; None if unknown."""
        entity = int(self.lookup([title])[0])
        return self.items_of(np.array([entity], np.int32))[0]

    def items_of(self, entities: Int32) -> list[str | None]:
        """Wikidata items, such as "Q60", of entities; None for index -1 and those without one."""
        qids = np.zeros(len(entities), np.uint32)
        has_entity = entities >= 0
        qids[has_entity] = self.qids[entities[has_entity]]
        return [f"Q{number}" if number else None for number in qids.tolist()]

    def set_qids(self, keys: Keys, qids: Bits) -> None:
        """Sets the Wikidata items of the entities with these title keys."""
        self.qids = np.zeros(len(self.classes), np.uint32)
        entities = self.lookup_keys(keys)
        self.qids[entities[entities >= 0]] = qids[entities >= 0]

    def set_phrases(self, names: Sequence[str], owners: Ints, ids: Ints) -> None:
        """Sets the phrases of entities.

        Args:
            names: the phrases.
            owners: entities that have one, ascending, shape (pairs,).
            ids: index of the phrase of each, shape (pairs,).
        """
        self.phrase_names = list(names)
        self.phrase_bounds = np.searchsorted(owners, np.arange(len(self.classes) + 1)).astype(
            np.int32
        )
        self.phrase_ids = ids.astype(np.int32)

    def phrases_of(self, entities: Int32) -> list[list[str]]:
        """Phrases of entities, the longest first; none for index -1."""
        phrases: list[list[str]] = [[] for _ in entities]
        rows = np.flatnonzero(self.has_phrases(entities))
        described = entities[rows]
        bounds = self.phrase_bounds[described].tolist(), self.phrase_bounds[described + 1].tolist()
        for row, start, end in zip(rows.tolist(), *bounds, strict=True):
            names = [self.phrase_names[number] for number in self.phrase_ids[start:end].tolist()]
            phrases[row] = sorted(names, key=lambda name: (-len(name), name))
        return phrases

    def check(self) -> None:
        """Checks that a table which was opened is whole.

        Raises:
            ValueError: its arrays have other types or lengths, its keys are out of order, or it
                names entities or classes that it does not have.
        """
        of_titles, of_entities = (
            (self.keys, self.entities),
            (self.classes, self.support, self.voters, self.qids, self.phrase_bounds[1:]),
        )
        all_arrays = (*of_titles, *of_entities, self.phrase_ids)
        numbers = all(np.issubdtype(array.dtype, np.integer) for array in all_arrays)
        lengths = [{array.shape for array in group} for group in (of_titles, of_entities)]
        if not numbers or any(len(shapes) > 1 or len(min(shapes)) != 1 for shapes in lengths):
            raise ValueError("arrays of other types or lengths")
        if (self.keys[1:] <= self.keys[:-1]).any():
            raise ValueError("its keys are out of order")
        limits: tuple[tuple[npt.NDArray[Any], int], ...] = (
            (self.entities, len(self.classes)),
            (self.classes, len(self.class_names)),
            (self.phrase_ids, len(self.phrase_names)),
            (self.phrase_bounds, len(self.phrase_ids) + 1),
        )
        if any(np.max(array, initial=-1) >= limit for array, limit in limits):
            raise ValueError("entities, classes or phrases that it does not have")
        if len(self.class_kinds) != len(self.class_names):
            raise ValueError("classes without a kind")

    def save(self, folder: str | Path) -> None:
        """Writes the table: .npy files, and a JSON file with the names of the classes."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        for name in ARRAYS:
            np.save(path / f"{name}.npy", getattr(self, name))
        names = {
            "classes": self.class_names,
            "kinds": self.class_kinds,
            "voters": self.voter_names,
            "phrases": self.phrase_names,
        }
        text = json.dumps(names, ensure_ascii=False, indent=1)
        (path / "classes.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    def open(cls, folder: str | Path) -> EntityTable:
        """Opens a saved table, memory-mapped."""
        path = Path(folder)
        names = json.loads((path / "classes.json").read_text(encoding="utf-8"))
        arrays = [np.load(path / f"{name}.npy", mmap_mode="r") for name in ARRAYS]
        *of_classes, bounds, ids = arrays
        lists = (names[name] for name in ("classes", "kinds", "voters"))
        table = cls(*lists, *of_classes)
        table.phrase_names, table.phrase_bounds, table.phrase_ids = names["phrases"], bounds, ids
        return table
