"""How often each answer of a voter is right.

What the others answer about the same entities tells what it means: a voter that states "Settlement"
for towns and for the states of a federation is right about towns, and says little about states.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse import csr_matrix

from ontology.entity_table import Int32
from ontology.voting.answers import Answers, Meanings
from ontology.voting.statements import Bools, Floats, Hierarchy, Ints

_PRIOR, _PRIOR_AGREED = 10.0, 9.0
"""Comparisons with the prior that each probability starts with, so that a few decide nothing."""
_ROUNDS = 100
"""Steps to a fixed point: half of them change the sixth digit no more."""
_PAIRS = 4096
"""Pairs of answers that are looked at together: it bounds the memory."""
UNLIKELY = 0.02
"""Probability of classes that an answer says nothing about, and the least of those it states."""


class Comparisons:
    """How often each two kinds of answers of two voters are about the same entity.

    Attributes:
        answers: the answers.
        n_voters: number of voters.
        meanings: what the kinds of answers say.
    """

    def __init__(self, answers: Answers, hierarchy: Hierarchy, n_voters: int) -> None:
        """Counts the pairs."""
        self.answers, self.n_voters = answers, n_voters
        self.meanings = Meanings(answers, hierarchy)
        n_kinds = len(answers.kind_voters)
        of_voter = [_of_voter(answers, voter) for voter in range(n_voters)]
        table = csr_matrix((n_kinds, n_kinds))
        for (entities, kinds), (first_entities, first_kinds) in combinations(of_voter, 2):
            place = np.minimum(
                np.searchsorted(first_entities, entities), max(len(first_entities) - 1, 0)
            )
            is_shared = (
                first_entities[place] == entities
                if len(first_entities)
                else np.zeros(len(entities), bool)
            )
            pairs = kinds[is_shared], first_kinds[place[is_shared]]
            table += csr_matrix((np.ones(len(pairs[0])), pairs), table.shape)
        self._table = (table + table.T).tocsr()

    def sums(self, values: Floats) -> Floats:
        """For each kind, the sum of the values of the answers that it is compared with."""
        totals: Floats = self._table @ values
        return totals

    def credits(self) -> Floats:
        """For each kind, the sum of the credits of the answers that it is compared with."""
        meanings = self.meanings
        shares = self.sums(meanings.credit)
        pairs = self._table.tocoo()
        ambiguous = np.flatnonzero(meanings.leaves.sum(1)[pairs.col] > 1)
        for first in range(0, len(ambiguous), _PAIRS):
            block = ambiguous[first : first + _PAIRS]
            kinds, other_kinds, counts = pairs.row[block], pairs.col[block], pairs.data[block, None]
            change = meanings.credit_beside(other_kinds, kinds) - meanings.credit[other_kinds]
            np.add.at(shares, kinds, counts * change)
        return shares


def _of_voter(answers: Answers, voter: int) -> tuple[Int32, Int32]:
    """Entities and kinds of the answers of a voter."""
    of_voter = answers.voters == voter
    return answers.entities[of_voter], answers.kinds[of_voter]


def agreement(comparisons: Comparisons) -> tuple[Ints, Ints]:
    """How often each voter's statements agree with those of each other voter.

    A statement agrees with a voter that states the same class, an ancestor, or a descendant of it
    for the same entity.

    Returns:
        Numbers of agreeing and of compared statements, shape (voters, voters).
    """
    meanings, n_voters = comparisons.meanings, comparisons.n_voters
    kind_voters = comparisons.answers.kind_voters
    agrees = (meanings.agrees > 0).astype(np.float64)
    agreed = np.zeros((n_voters, n_voters))
    compared = agreed.copy()
    for second in range(n_voters):
        by_second = (kind_voters == second).astype(np.float64)[:, None]
        right = (comparisons.sums(agrees * by_second) * meanings.stated).sum(1)
        n_pairs = comparisons.sums(by_second)[:, 0] * meanings.stated.sum(1)
        agreed[:, second] = np.bincount(kind_voters, right, n_voters)
        compared[:, second] = np.bincount(kind_voters, n_pairs, n_voters)
    return np.rint(agreed).astype(np.int64), np.rint(compared).astype(np.int64)


def weights(agreed: Ints, compared: Ints) -> Floats:
    """Weight of each voter: the share of its statements that agree with other voters."""
    shares: Floats = (agreed.sum(1) + _PRIOR_AGREED) / (compared.sum(1) + _PRIOR)
    return shares


def precisions(agreed: Ints, compared: Ints) -> Floats:
    """Share of each voter's statements that are right, if voters err by themselves.

    Two voters agree where both are right, so their shares are factors of the share that agrees.
    """
    shares = np.full(len(agreed), _PRIOR_AGREED / _PRIOR)
    right = agreed.sum(1) + _PRIOR_AGREED * shares
    for _ in range(_ROUNDS):
        # Without the root a scale of all shares would turn to its inverse, and back.
        fitting = right / (compared @ shares + _PRIOR_AGREED)
        shares = np.minimum(np.sqrt(shares * fitting), 1)
    # Sums depend on the order of their terms, which differs between processors.
    rounded: Floats = shares.round(6)
    return rounded


@dataclass(frozen=True)
class Reliability:
    """Probabilities that classes are right, by the kind of an answer.

    Attributes:
        starts: first row of each kind, and the number of rows, shape (kinds + 1,).
        classes: class of each row, shape (rows,).
        rates: probability that it is right, shape (rows,).
        is_own: whether the answer states the class, or one below it, shape (rows,).
        credits: share of its most specific classes that are the class or below it, shape (rows,).
        frequencies: share of the answers that are of each class, shape (classes,).
        weights: weight of the voter of each kind, shape (kinds,).
        open: whether an answer says nothing about a class below those it states, shape (kinds,
            classes).
        silence: how often such an answer is given for an entity of the class, by the voter of each
            kind, shape (voters, classes).
        voters: voter of each kind, shape (kinds,).
    """

    starts: Ints
    classes: Ints
    rates: Floats
    is_own: Bools
    credits: Floats
    frequencies: Floats
    weights: Floats
    open: Bools
    silence: Floats
    voters: Ints

    @classmethod
    def of(cls, comparisons: Comparisons, hierarchy: Hierarchy, weight: Floats) -> Reliability:
        """Measures how often the answers of the other voters agree.

        The probability of a class is the mean credit that they give it. Rare answers tend to the
        rates of their single statements, and these to the weight of the voter. Answers that leave
        the class open do not count.

        Args:
            comparisons: comparisons of the answers of all voters.
            hierarchy: the classes.
            weight: weight of each voter.
        """
        answers, meanings = comparisons.answers, comparisons.meanings
        counts = comparisons.sums(np.ones((len(answers.kind_voters), 1)))
        # The largest arrays of a run: no more of them at a time than are needed.
        rates = comparisons.credits() + _PRIOR * _prior(comparisons, hierarchy, weight, counts)
        rates /= counts - comparisons.sums(meanings.open.astype(np.float64)) * meanings.own + _PRIOR
        # Sums depend on the order of their terms, which differs between processors.
        rates = np.clip(rates, 0, 1, out=rates).round(9)
        kinds, classes = np.nonzero(meanings.own | (rates >= UNLIKELY))
        numbers = np.bincount(answers.kinds, minlength=len(meanings.own))
        frequencies = (numbers @ meanings.credit + 1) / (numbers.sum() + 1)
        return cls(
            starts=np.searchsorted(kinds, np.arange(len(meanings.own) + 1)),
            classes=classes,
            rates=np.maximum(rates[kinds, classes], UNLIKELY),
            is_own=meanings.own[kinds, classes],
            credits=meanings.credit[kinds, classes],
            frequencies=frequencies,
            weights=weight[answers.kind_voters],
            open=meanings.open,
            silence=_silence(comparisons),
            voters=answers.kind_voters.astype(np.int64),
        )

    def lines(self, kinds: Ints) -> tuple[Ints, Ints]:
        """Rows of each kind, one kind after the other, and the place of each in `kinds`."""
        sizes = np.diff(self.starts)[kinds]
        places = np.repeat(np.arange(len(kinds)), sizes)
        within = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.starts[kinds][places] + within, places


def _prior(
    comparisons: Comparisons, hierarchy: Hierarchy, weight: Floats, counts: Floats
) -> Floats:
    """Rates of the classes of all answers, by their single statements; see `_by_statement`."""
    kind_voters, meanings = comparisons.answers.kind_voters, comparisons.meanings
    agreed = comparisons.sums(meanings.agrees)
    prior = np.zeros_like(agreed)
    for voter, value in enumerate(weight.tolist()):
        of_voter = kind_voters == voter
        prior[of_voter] = _by_statement(
            meanings.stated[of_voter], agreed[of_voter], counts[of_voter], value, hierarchy.above
        )
    return prior


def _silence(comparisons: Comparisons) -> Floats:
    """How often each voter states only a class above one that another voter states.

    A voter that calls nearly all rivers rivers says much when it calls one a body of water; a voter
    that calls all towns settlements says nothing.
    """
    meanings = comparisons.meanings
    shared = comparisons.sums(meanings.own.astype(np.float64))
    kind_voters = comparisons.answers.kind_voters
    rates = np.empty((comparisons.n_voters, shared.shape[1]))
    for voter in range(comparisons.n_voters):
        of_voter = kind_voters == voter
        left_open = (shared[of_voter] * meanings.open[of_voter]).sum(0)
        n_stated = (shared[of_voter] * meanings.own[of_voter]).sum(0)
        rates[voter] = (left_open + _PRIOR / 2) / (left_open + n_stated + _PRIOR)
    # Sums depend on the order of their terms, which differs between processors.
    return rates.round(9)


def _by_statement(
    is_stated: Bools, agreed: Floats, counts: Floats, weight: float, above: Bools
) -> Floats:
    """Rates of the classes of some answers of one voter, by their single statements.

    Args:
        is_stated: classes that the answers state, shape (kinds, classes).
        agreed: how often other answers agree with each class, shape (kinds, classes).
        counts: numbers of comparisons, shape (kinds, 1).
        weight: weight of the voter.
        above: whether a class is, or is above, each class, shape (classes, classes).

    Returns:
        The best rate of each class by a statement of it, or of a class below it; 0 for classes that
        the answer does not state, shape (kinds, classes).
    """
    used = np.flatnonzero(is_stated.any(0))
    right = is_stated[:, used].T.astype(np.float64) @ agreed
    n_compared = is_stated[:, used].T.astype(np.float64) @ counts
    rates = (right + _PRIOR * weight) / (n_compared + _PRIOR) * above[used]
    matrix = np.zeros(agreed.shape)
    for number, statement in enumerate(used.tolist()):
        rows = is_stated[:, statement]
        matrix[rows] = np.maximum(matrix[rows], rates[number])
    return matrix
