"""The class of each entity by a vote of the sources that know it.

The class of an entity is the deepest one that more than half of the weight of its voters supports.
Those that state only a class above it do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nerbert.arrays import unique
from ontology.entity_table import NO_CLASS, Int32
from ontology.voting.answers import Answers
from ontology.voting.reliability import UNLIKELY, Reliability
from ontology.voting.statements import Floats, Hierarchy, Ints, among

_CHUNK = 1 << 15
"""Number of entities that are decided together: it bounds the memory."""
_EQUAL = 0.1
"""Logarithms of odds that differ by less are equal."""


@dataclass(frozen=True)
class Decision:
    """The classes of the entities.

    Attributes:
        classes: index of the class of each entity, NO_CLASS for none, shape (entities,).
        support: probability that the class is right, in per cent; 0 for none.
        voters: bit set of the voters that know the entity, shape (entities,).
    """

    classes: npt.NDArray[np.int16]
    support: npt.NDArray[np.uint8]
    voters: npt.NDArray[np.uint32]


def decide(
    answers: Answers,
    hierarchy: Hierarchy,
    reliability: Reliability,
    n_entities: int,
    least: float = 0.0,
) -> Decision:
    """Decides the class of each entity.

    A voter supports the classes that it states, and all above them; a single voter that states
    several most specific classes supports each by its share only. About classes below those it
    states it has no vote: "Person" says nothing against "Writer". But if this voter calls most
    writers writers, its "Person" makes the class less probable. A class is possible if more than
    half of the weight of the voters that speak of it supports it, and it is right with at least the
    probability `least`. Candidates are the possible classes without a possible class below them.
    The candidate with the best odds wins. Equal candidates abstain to their deepest common
    ancestor; without one, the entity has no class.

    Args:
        answers: answers of all voters.
        hierarchy: the classes.
        reliability: probabilities that answers are right.
        n_entities: number of entities.
        least: smallest probability of a class.
    """
    decision = Decision(
        np.full(n_entities, NO_CLASS, np.int16),
        np.zeros(n_entities, np.uint8),
        np.zeros(n_entities, np.uint32),
    )
    bits = np.uint32(1) << answers.voters.astype(np.uint32)
    np.bitwise_or.at(decision.voters, answers.entities, bits)
    starts = np.arange(0, n_entities + _CHUNK, _CHUNK).astype(np.int32)
    bounds = np.searchsorted(answers.entities, starts)
    for first, last in pairwise(bounds.tolist()):
        if first < last:
            entities, kinds = answers.entities[first:last], answers.kinds[first:last]
            _decide_some(entities, kinds, hierarchy, reliability, least, decision)
    return decision


def _decide_some(
    entities: Int32,
    kinds: Int32,
    hierarchy: Hierarchy,
    reliability: Reliability,
    least: float,
    decision: Decision,
) -> None:
    """Decides the classes of the entities of some answers."""
    size = len(hierarchy.names)
    once, local = np.unique(entities.astype(np.int64), return_inverse=True)
    keys, support, chance, score = _supported(local, kinds.astype(np.int64), size, reliability)
    # Half of the weight is no majority; the bounds are for sums of fractions.
    possible = (support > 0.5 + 1e-9) & (chance >= least - 1e-9)
    possible &= hierarchy.is_answer[keys % size]
    keys, chance, score = keys[possible], chance[possible], score[possible]
    lines, rows = hierarchy.lines(keys % size)
    parents = (keys // size)[rows] * size + lines
    leaf = ~among(keys, unique(parents[parents != keys[rows]]))
    keys, chance, score = keys[leaf], chance[leaf], score[leaf]
    place = keys // size
    best = np.full(len(once), -np.inf)
    np.maximum.at(best, place, score)
    top = score >= best[place] - _EQUAL
    keys, place, chance = keys[top], place[top], chance[top]
    single = np.bincount(place, minlength=len(once))[place] == 1
    winners = np.full(len(once), NO_CLASS, np.int64)
    winners[place[single]] = keys[single] % size
    _abstain(keys[~single], place[~single], hierarchy, winners)
    best_chance = np.zeros(len(once))
    np.maximum.at(best_chance, place, chance)
    decision.classes[once] = winners
    # Sums depend on the order of their terms, which differs between processors.
    percent = np.rint(np.round(100 * best_chance, 6))
    decision.support[once] = np.where(winners >= 0, percent, 0).astype(np.uint8)


def _supported(
    local: Ints, kinds: Ints, size: int, reliability: Reliability
) -> tuple[Ints, Floats, Floats, Floats]:
    """The classes that the voters of each entity state.

    Args:
        local: number of the entity of each answer, from 0.
        kinds: kind of each answer.
        size: number of classes.
        reliability: probabilities that answers are right.

    Returns:
        Keys (entity * classes + class), sorted; share that supports the class of the weight of the
        voters that speak of it; probability that it is right; logarithm of the odds of the class,
        with its frequency as the prior and the answers as independent evidence (naive Bayes).
    """
    rows, places = reliability.lines(kinds)
    rates = reliability.rates[rows]
    keys, of_key = np.unique(local[places] * size + reliability.classes[rows], return_inverse=True)
    weights = reliability.weights[kinds]
    is_stated = np.bincount(of_key, reliability.is_own[rows], len(keys)) > 0
    voters = np.bincount(local)
    # With several voters, the others decide which class of an ambiguous answer is meant.
    alone = voters[local[places]] == 1
    part = np.where(alone, reliability.credits[rows], reliability.is_own[rows])
    votes = np.bincount(of_key, part * weights[places], len(keys))
    wrong = np.bincount(of_key, np.log(np.maximum(1 - rates, 1e-6)), len(keys))
    voters = voters[keys // size]
    silent = voters - np.bincount(of_key, minlength=len(keys))
    logs = np.bincount(of_key, np.log(rates), len(keys)) + silent * np.log(UNLIKELY)
    score = logs - (voters - 1) * np.log(reliability.frequencies[keys % size])
    keys, votes = keys[is_stated], votes[is_stated]
    left_open, silence = _left_open(keys, local, kinds, size, reliability)
    share = votes / (np.bincount(local, weights)[keys // size] - left_open)
    odds = np.expm1(-wrong[is_stated]) * np.exp(silence)
    return keys, share, odds / (1 + odds), score[is_stated]


def _left_open(
    keys: Ints, local: Ints, kinds: Ints, size: int, reliability: Reliability
) -> tuple[Floats, Floats]:
    """The voters that state only a class above that of each key; see `_supported`.

    Returns:
        The sum of their weights; the logarithm of how often they do so for such an entity.
    """
    first = np.searchsorted(local, keys // size)
    counts = np.searchsorted(local, keys // size, "right") - first
    of_key = np.repeat(np.arange(len(keys)), counts)
    answers = np.arange(len(of_key)) + np.repeat(first - np.cumsum(counts) + counts, counts)
    classes, of_answer = (keys % size)[of_key], kinds[answers]
    is_open = reliability.open[of_answer, classes]
    of_key, of_answer, classes = of_key[is_open], of_answer[is_open], classes[is_open]
    rates = reliability.silence[reliability.voters[of_answer], classes]
    weights = np.bincount(of_key, reliability.weights[of_answer], len(keys))
    silence = np.bincount(of_key, np.log(rates), len(keys))
    return weights.astype(np.float64), silence.astype(np.float64)


def _abstain(keys: Ints, place: Ints, hierarchy: Hierarchy, winners: Ints) -> None:
    """Gives entities with several equal candidates the deepest common ancestor of these."""
    size = len(hierarchy.names)
    lines, rows = hierarchy.lines(keys % size)
    shared, counts = np.unique(place[rows] * size + lines, return_counts=True)
    number = np.bincount(place, minlength=len(winners))
    common = shared[(counts == number[shared // size]) & (hierarchy.depths[shared % size] > 0)]
    # The deepest one last, so that it is the one that stays; ties by name.
    order = np.lexsort((-(common % size), hierarchy.depths[common % size], common // size))
    winners[common[order] // size] = common[order] % size
