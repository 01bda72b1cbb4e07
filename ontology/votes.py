"""The class of each entity by a vote of the sources that know it.

A statement supports its class and all ancestors of the class. The class of an entity is the deepest
one that more than half of the weight of its voters supports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ontology.classes import ClassTree

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NO_CLASS = -1

_CHUNK = 1 << 20
"""Number of entities that are decided together: it bounds the memory."""

_PRIOR_AGREED, _PRIOR_COMPARED = 9.0, 10.0
"""Agreements that a voter starts with, so that a few comparisons decide nothing."""
_PRIOR_CLASS = 10.0
"""Comparisons with the weight of the voter that each of its classes starts with."""


@dataclass(frozen=True)
class Statements:
    """Statements "this entity has this class" of all voters.

    Attributes:
        entities: index of the entity of each statement, shape (statements,).
        classes: index of the class of each statement, shape (statements,).
        voters: index of the voter of each statement, shape (statements,).
    """

    entities: Ints
    classes: Ints
    voters: Ints

    def __len__(self) -> int:
        return len(self.entities)

    def where(self, kept: Bools) -> Statements:
        """Some of the statements."""
        return Statements(self.entities[kept], self.classes[kept], self.voters[kept])


@dataclass(frozen=True)
class Decision:
    """The classes of the entities.

    Attributes:
        classes: index of the class of each entity, NO_CLASS for none, shape (entities,).
        support: share of the voters' weight that supports the class, in per cent; 0 for none.
        voters: bit set of the voters that know the entity, shape (entities,).
    """

    classes: npt.NDArray[np.int16]
    support: npt.NDArray[np.uint8]
    voters: npt.NDArray[np.uint32]


class Hierarchy:
    """Classes as indices, with their ancestors.

    Attributes:
        names: the given classes, and their ancestors, sorted.
    """

    def __init__(self, names: Sequence[str], tree: ClassTree) -> None:
        """Takes the classes that voters state; unknown ones have no ancestors."""
        every = {name for given in names for name in (given, *tree.ancestors(given))}
        self.names = sorted(every)
        self.index = {name: number for number, name in enumerate(self.names)}
        lines = [
            [self.index[name], *map(self.index.__getitem__, tree.ancestors(name))]
            for name in self.names
        ]
        self._sizes = np.array([len(line) for line in lines], np.int64)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._flat = np.array([number for line in lines for number in line], np.int64)
        self.depths = np.array([tree.depth(name) for name in self.names], np.int64)

    def lines(self, classes: Ints) -> tuple[Ints, Ints]:
        """Each class and its ancestors, one after the other, and the row of each in `classes`."""
        sizes = self._sizes[classes]
        rows = np.repeat(np.arange(len(classes)), sizes)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self._flat[self._starts[classes][rows] + within], rows


def _unique(keys: Ints) -> Ints:
    """The distinct keys, sorted. Sorting is much faster here than the hashes of `np.unique`."""
    ordered = np.sort(keys)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _among(values: Ints, known: Ints) -> Bools:
    """Whether each value is one of the sorted keys `known`."""
    if not len(known):
        return np.zeros(len(values), bool)
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: Bools = known[place] == values
    return found


def expanded(statements: Statements, hierarchy: Hierarchy) -> Statements:
    """The statements and those that follow from them, each once, sorted by entity."""
    classes, rows = hierarchy.lines(statements.classes)
    stacked = np.stack([statements.entities[rows], classes, statements.voters[rows]])
    if not stacked.size:
        return Statements(*stacked)
    size, n_voters = len(hierarchy.names), int(stacked[2].max()) + 1
    keys = _unique((stacked[0] * size + stacked[1]) * n_voters + stacked[2])
    return Statements(keys // n_voters // size, keys // n_voters % size, keys % n_voters)


def agreement(statements: Statements, hierarchy: Hierarchy, n_voters: int) -> tuple[Ints, Ints]:
    """How often each voter's statements agree with those of each other voter.

    A statement agrees with a voter that states the same class, an ancestor, or a descendant of it
    for the same entity.

    Returns:
        Numbers of agreeing and of compared statements, shape (voters, voters).
    """
    size = len(hierarchy.names)
    whole = expanded(statements, hierarchy)
    agreed = np.zeros((n_voters, n_voters), np.int64)
    compared = agreed.copy()
    stated = [statements.where(statements.voters == voter) for voter in range(n_voters)]
    implied = [whole.where(whole.voters == voter) for voter in range(n_voters)]
    keys = [_unique(known.entities * size + known.classes) for known in stated]
    lines = [known.entities * size + known.classes for known in implied]  # sorted
    who = [_unique(known.entities) for known in stated]
    for one in range(n_voters):
        own = keys[one]
        below, rows = hierarchy.lines(own % size)
        for other in range(n_voters):
            if one == other:
                continue
            known = _among(own // size, who[other])
            # Either the other one implies our class, or we imply a class that it states.
            agrees = _among(own, lines[other])
            implied_by_us = _among((own // size)[rows] * size + below, keys[other])
            agrees |= np.bincount(rows, implied_by_us, minlength=len(own)).astype(bool)
            compared[one, other] = int(known.sum())
            agreed[one, other] = int((known & agrees).sum())
    return agreed, compared


def weights(agreed: Ints, compared: Ints) -> Floats:
    """Weight of each voter: the share of its statements that agree with other voters."""
    right = agreed.sum(1) + _PRIOR_AGREED
    found: Floats = right / (compared.sum(1) + _PRIOR_COMPARED)
    return found


class Reliability:
    """How often a class is right if a voter states it, or states a class below it.

    For each voter and stated class, the share of its entities for which the other voters agree. A
    voter may be good at cities and bad at songs. Rare classes tend to the weight of the voter.
    """

    def __init__(self, statements: Statements, hierarchy: Hierarchy, weight: Floats) -> None:
        """Counts agreements.

        Args:
            statements: statements of all voters.
            hierarchy: the classes.
            weight: weight of each voter.
        """
        self._size = len(hierarchy.names)
        size, n_voters = self._size, len(weight)
        whole = expanded(statements, hierarchy)
        codes: list[Ints] = []
        right: list[Floats] = []
        for voter in range(n_voters):
            others = whole.where(whole.voters != voter)
            implied = _unique(others.entities * size + others.classes)
            # What others state, without what follows from it.
            stated = statements.where(statements.voters != voter)
            direct = _unique(stated.entities * size + stated.classes)
            own = statements.where(statements.voters == voter)
            own = own.where(_among(own.entities, _unique(stated.entities)))
            classes, rows = hierarchy.lines(own.classes)
            entities = own.entities[rows]
            agrees = _among(entities * size + classes, implied)
            agrees |= _states_above(entities, classes, direct, hierarchy)
            codes.append((voter * size + own.classes[rows]) * size + classes)
            right.append(agrees.astype(float))
        self._codes, places = np.unique(np.concatenate(codes), return_inverse=True)
        counts = np.bincount(places, minlength=len(self._codes))
        sums = np.bincount(places, np.concatenate(right), len(self._codes))
        prior = weight[self._codes // size // size]
        self._rates = (sums + _PRIOR_CLASS * prior) / (counts + _PRIOR_CLASS)
        self._weight = weight

    def __call__(self, voters: Ints, stated: Ints, classes: Ints) -> Floats:
        """Probability that each class is right, by the class that the voter states."""
        wanted = (voters * self._size + stated) * self._size + classes
        place = np.minimum(np.searchsorted(self._codes, wanted), max(len(self._codes) - 1, 0))
        if not len(self._codes):
            return self._weight[voters]
        known = self._codes[place] == wanted
        found: Floats = np.where(known, self._rates[place], self._weight[voters])
        return found


def _states_above(entities: Ints, classes: Ints, direct: Ints, hierarchy: Hierarchy) -> Bools:
    """Whether one of the sorted keys `direct` states the class, or one above it, of each entity."""
    size = len(hierarchy.names)
    keys, places = np.unique(entities * size + classes, return_inverse=True)
    above, rows = hierarchy.lines(keys % size)
    hits = _among((keys // size)[rows] * size + above, direct)
    found: Bools = np.bincount(rows, hits, minlength=len(keys)).astype(bool)[places]
    return found


def decide(
    statements: Statements,
    hierarchy: Hierarchy,
    reliability: Reliability,
    n_entities: int,
    least: float = 0.0,
) -> Decision:
    """Decides the class of each entity.

    A voter supports a class with the probability that the class is right by its statements. A class
    is possible if more than half of the weight of the entity's voters supports it, and it is right
    with at least the probability `least`. Candidates are the possible classes without a possible
    class below them. The candidate with the most support wins, then the more probable one. Equal
    candidates abstain to their deepest common ancestor; without one, the entity has no class.

    Args:
        statements: statements of all voters.
        hierarchy: the classes.
        reliability: probabilities that statements are right.
        n_entities: number of entities.
        least: smallest probability of a class.
    """
    found = Decision(
        np.full(n_entities, NO_CLASS, np.int16),
        np.zeros(n_entities, np.uint8),
        np.zeros(n_entities, np.uint32),
    )
    order = np.argsort(statements.entities, kind="stable")
    ordered = Statements(
        statements.entities[order], statements.classes[order], statements.voters[order]
    )
    bounds = np.searchsorted(ordered.entities, np.arange(0, n_entities + _CHUNK, _CHUNK))
    for first, last in pairwise(bounds.tolist()):
        part = Statements(
            ordered.entities[first:last], ordered.classes[first:last], ordered.voters[first:last]
        )
        if len(part):
            _decide_some(part, hierarchy, reliability, least, found)
    return found


def _decide_some(
    statements: Statements,
    hierarchy: Hierarchy,
    reliability: Reliability,
    least: float,
    found: Decision,
) -> None:
    """Decides the classes of the entities of some statements."""
    size = len(hierarchy.names)
    entities, local = np.unique(statements.entities, return_inverse=True)
    bits = np.zeros(len(entities), np.uint32)
    np.bitwise_or.at(bits, local, np.uint32(1) << statements.voters.astype(np.uint32))
    keys, support, chance = _supported(statements, local, hierarchy, reliability)
    # Half of the weight is no majority; the bounds are for sums of fractions.
    possible = (support > 0.5 + 1e-9) & (chance >= least - 1e-9)
    keys, support, chance = keys[possible], support[possible], chance[possible]
    lines, rows = hierarchy.lines(keys % size)
    parents = (keys // size)[rows] * size + lines
    leaf = ~_among(keys, _unique(parents[parents != keys[rows]]))
    keys, support = keys[leaf], support[leaf]
    # Probabilities that differ by less than a tenth are equal.
    score = np.round(support, 6) * 100 + np.round(chance[leaf], 1)
    place = keys // size
    best = np.zeros(len(entities))
    np.maximum.at(best, place, score)
    top = score >= best[place] - 1e-9
    keys, place, support = keys[top], place[top], support[top]
    single = np.bincount(place, minlength=len(entities))[place] == 1
    chosen = np.full(len(entities), NO_CLASS, np.int64)
    chosen[place[single]] = keys[single] % size
    _abstain(keys[~single], place[~single], hierarchy, chosen)
    share = np.zeros(len(entities))
    share[place] = np.rint(100 * support)
    found.classes[entities] = chosen
    found.support[entities] = np.where(chosen >= 0, share, 0).astype(np.uint8)
    found.voters[entities] = bits


def _supported(
    statements: Statements, local: Ints, hierarchy: Hierarchy, reliability: Reliability
) -> tuple[Ints, Floats, Floats]:
    """The classes that follow from the statements about each entity.

    Args:
        statements: some statements.
        local: number of the entity of each statement, from 0.
        hierarchy: the classes.
        reliability: probabilities that statements are right.

    Returns:
        Keys (entity * classes + class), sorted; share of the voters' weight that supports the
        class; probability that it is right.
    """
    size = len(hierarchy.names)
    n_voters = int(statements.voters.max()) + 1
    classes, rows = hierarchy.lines(statements.classes)
    voters = statements.voters[rows]
    rates = reliability(voters, statements.classes[rows], classes)
    # A voter with several statements supports a class by the best of them.
    votes, places = np.unique(
        (local[rows] * size + classes) * n_voters + voters, return_inverse=True
    )
    rate = np.zeros(len(votes))
    np.maximum.at(rate, places, rates)
    keys, places = np.unique(votes // n_voters, return_inverse=True)
    weight = np.bincount(places, rate, len(keys))
    wrong = np.bincount(places, np.log(np.maximum(1 - rate, 1e-6)), len(keys))
    own = reliability(statements.voters, statements.classes, statements.classes)
    pairs, places = np.unique(local * n_voters + statements.voters, return_inverse=True)
    most = np.zeros(len(pairs))
    np.maximum.at(most, places, own)
    total = np.bincount(pairs // n_voters, most)
    # What follows from a statement may be more probable than the statement itself.
    return keys, np.minimum(weight / total[keys // size], 1.0), 1 - np.exp(wrong)


def _abstain(keys: Ints, place: Ints, hierarchy: Hierarchy, chosen: Ints) -> None:
    """Gives entities with several equal candidates the deepest common ancestor of these."""
    size = len(hierarchy.names)
    lines, rows = hierarchy.lines(keys % size)
    shared, counts = np.unique(place[rows] * size + lines, return_counts=True)
    number = np.bincount(place, minlength=len(chosen))
    common = shared[(counts == number[shared // size]) & (hierarchy.depths[shared % size] > 0)]
    # The deepest one last, so that it is the one that stays; ties by name.
    order = np.lexsort((-(common % size), hierarchy.depths[common % size], common // size))
    chosen[common[order] // size] = common[order] % size


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
    keys = _unique(statements.entities * size + statements.classes)
    entities, classes = keys // size, keys % size
    counts = np.bincount(entities) if len(entities) else np.zeros(0, np.int64)
    several = counts[entities] > 1
    entities, classes = entities[several], classes[several]
    # Each statement beside each later one of the same entity.
    starts = np.searchsorted(entities, entities, "right") - np.arange(len(entities)) - 1
    first = np.repeat(np.arange(len(entities)), starts)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(starts) - starts, starts)
    lines, rows = hierarchy.lines(np.arange(size))
    above = np.zeros((size, size), bool)
    above[rows, lines] = True
    one, other = classes[first], classes[second]
    apart = ~(above[one, other] | above[other, one])
    pairs, counted = np.unique(one[apart] * size + other[apart], return_counts=True)
    found = []
    for number in np.lexsort((pairs, -counted))[:most].tolist():
        pair = int(pairs[number])
        where = entities[first[apart]][one[apart] * size + other[apart] == pair]
        names = (hierarchy.names[pair // size], hierarchy.names[pair % size])
        found.append(Conflict(names, int(counted[number]), tuple(where[:3].tolist())))
    return found
