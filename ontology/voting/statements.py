"""What sources state about entities: "this entity has this class", and how far they agree.

A statement supports its class and all ancestors of the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from nerbert.arrays import unique
from ontology.classes import ClassTree

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MOST_VOTERS = 32
"""Voters are bits of a number."""

K = TypeVar("K", np.int64, np.uint64)


@dataclass(frozen=True)
class Statements:
    """Statements "this entity has this class" of all voters.

    Attributes:
        entities: index of the entity of each statement, shape (statements,).
        classes: index of the class of each statement, shape (statements,).
        voters: index of the voter of each statement, shape (statements,).
    """

    entities: Ints
    classes: npt.NDArray[np.int16]
    voters: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.entities)

    def where(self, rows: Bools | Ints) -> Statements:
        """Some of the statements, or all of them in another order."""
        return Statements(self.entities[rows], self.classes[rows], self.voters[rows])


class Hierarchy:
    """Classes as indices, with their ancestors.

    Attributes:
        names: the given classes, and their ancestors, sorted.
        index: number of each class.
        above: whether the second class is the first one or above it, shape (classes, classes).
        depths: depth of each class below its kind, shape (classes,).
        kinds: number of the kind of each class, such as Person or Place, shape (classes,).
        is_answer: whether a class says what an entity is; Agent, above several kinds, does not,
            shape (classes,).
    """

    def __init__(self, names: Sequence[str], tree: ClassTree) -> None:
        """Takes the classes that voters state; unknown ones have no ancestors."""
        all_names = {
            name for stated_name in names for name in (stated_name, *tree.ancestors(stated_name))
        }
        self.names = sorted(all_names)
        self.index = {name: number for number, name in enumerate(self.names)}
        lines = [
            [self.index[name], *map(self.index.__getitem__, tree.ancestors(name))]
            for name in self.names
        ]
        self._sizes = np.array([len(line) for line in lines], np.int64)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._flat = np.array([number for line in lines for number in line], np.int64)
        self.above = np.zeros((len(lines), len(lines)), bool)
        self.above[np.arange(len(lines)).repeat(self._sizes), self._flat] = True
        self.depths = np.array([tree.depth(name) for name in self.names], np.int64)
        kinds = [tree.kind(name) or name for name in self.names]
        self.kinds = np.unique(kinds, return_inverse=True)[1]
        self.is_answer = (self.depths > 0) | (self.above.sum(0) == 1)

    def lines(self, classes: Ints) -> tuple[Ints, Ints]:
        """Each class and its ancestors, one after the other, and the row of each in `classes`."""
        sizes = self._sizes[classes]
        rows = np.repeat(np.arange(len(classes)), sizes)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self._flat[self._starts[classes][rows] + within], rows


_TWINS = (
    ("OfficeHolder", "Politician"),
    ("Royalty", "Monarch"),
    ("Single", "Song"),
    ("SoccerManager", "SoccerPlayer"),
    ("SportsTeam", "SoccerClub"),
    ("Municipality", "City"),
    ("Municipality", "Town"),
    ("Municipality", "Village"),
    ("Town", "City"),
)
"""A class, and one beside it in the ontology that means the same of most entities that have both.

A municipality is a rank, which cities, towns and villages have; cities are towns in some files.
"""


def without_twins(statements: Statements, hierarchy: Hierarchy) -> Statements:
    """The statements; of twins, such as OfficeHolder and Politician, an entity has the second."""
    classes = statements.classes.copy()
    for name, twin in _TWINS:
        if {name, twin} <= hierarchy.index.keys():
            number = hierarchy.index[twin]
            called = unique(statements.entities[hierarchy.above[statements.classes, number]])
            is_both = among(statements.entities, called)
            classes[is_both & (classes == hierarchy.index[name])] = number
    return Statements(statements.entities, classes, statements.voters)


def places(sorted_keys: npt.NDArray[K], values: npt.NDArray[K]) -> Ints:
    """Where each value is, or would be, among the sorted keys `sorted_keys`.

    The values are looked up in order: a search in millions of keys mostly waits for memory.
    """
    order = np.argsort(values)
    insertion = np.empty(len(values), np.int64)
    insertion[order] = np.searchsorted(sorted_keys, values[order])
    return insertion


def among(values: npt.NDArray[K], sorted_keys: npt.NDArray[K]) -> Bools:
    """Whether each value is one of the sorted keys `sorted_keys`."""
    if not len(sorted_keys):
        return np.zeros(len(values), bool)
    place = np.minimum(np.searchsorted(sorted_keys, values), len(sorted_keys) - 1)
    is_member: Bools = sorted_keys[place] == values
    return is_member


@dataclass(frozen=True)
class Conflict:
    """Two classes that are stated for the same entities, and neither is above the other.

    Attributes:
        classes: the two classes, sorted.
        entities: number of entities.
        examples: indices of some of these entities.
    """

    classes: tuple[str, str]
    entities: int
    examples: tuple[int, ...]


def conflicts(statements: Statements, hierarchy: Hierarchy, most: int = 50) -> list[Conflict]:
    """The most frequent conflicts between statements, the most frequent first."""
    size = len(hierarchy.names)
    keys = unique(statements.entities * size + statements.classes)
    entities, classes = keys // size, keys % size
    counts = np.bincount(entities) if len(entities) else np.zeros(0, np.int64)
    in_conflict = counts[entities] > 1
    entities, classes = entities[in_conflict], classes[in_conflict]
    # Each statement beside each later one of the same entity.
    starts = np.searchsorted(entities, entities, "right") - np.arange(len(entities)) - 1
    first = np.repeat(np.arange(len(entities)), starts)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(starts) - starts, starts)
    classes_a, classes_b = classes[first], classes[second]
    apart = ~(hierarchy.above[classes_a, classes_b] | hierarchy.above[classes_b, classes_a])
    pairs, counted = np.unique(classes_a[apart] * size + classes_b[apart], return_counts=True)
    most_frequent = []
    for number in np.lexsort((pairs, -counted))[:most].tolist():
        pair = int(pairs[number])
        where = entities[first[apart]][classes_a[apart] * size + classes_b[apart] == pair]
        names = (hierarchy.names[pair // size], hierarchy.names[pair % size])
        most_frequent.append(Conflict(names, int(counted[number]), tuple(where[:3].tolist())))
    return most_frequent
