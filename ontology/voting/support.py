"""The probability that a class is right, calibrated by voters that are left out.

The votes give a probability that takes voters as independent, which they are not: most files of
types come from the same infoboxes. So a voter is left out, the others decide, and what it says is
compared with that. It is wrong itself at times: more classes are right than it agrees with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ontology.entity_table import NO_CLASS
from ontology.voting.answers import Answers
from ontology.voting.reliability import Comparisons
from ontology.voting.statements import Bools, Floats, Ints
from ontology.voting.votes import Decision

_BINS = (0, 50, 80, 85, 90, 93, 96, 98, 99, 100, 101)
"""Bounds of the probabilities of the votes, in per cent, that are calibrated together."""
_SAMPLE = 20_000
"""Entities for which a voter is left out. Keys of titles are digests: the first ones are random."""
_SUREST = 0.99
"""The largest probability that takes a left-out voter to be wrong."""
_PRIOR = 10.0
"""Statements with the probability of the votes that each bin starts with."""


@dataclass(frozen=True)
class SupportBin:
    """Classes to which the votes give similar probabilities.

    Attributes:
        votes: least and largest probability of the votes, in per cent.
        statements: statements of left-out voters about them.
        agreed: share of these that agree.
        support: probability that these classes are right, in per cent.
    """

    votes: tuple[int, int]
    statements: int
    agreed: float | None
    support: int


def left_out(
    comparisons: Comparisons, precisions: Floats, decide: Callable[[Answers], Decision]
) -> list[SupportBin]:
    """Compares what the voters decide with what each says that is left out.

    Args:
        comparisons: answers of all voters, and what they mean.
        precisions: share of each voter's statements that are right.
        decide: decides the classes of entities by some answers.

    Returns:
        The bins, ascending; support never falls. No bin if no two voters know the same entity.
    """
    answers, meanings = comparisons.answers, comparisons.meanings
    n_bins = len(_BINS) - 1
    statements, agreed, trusted, votes = (np.zeros(n_bins) for _ in range(4))
    for voter in range(len(precisions)):
        by_voter = answers.voters == voter
        n_entities = int(answers.entities.max(initial=-1)) + 1
        by_both = np.zeros(n_entities, bool)
        by_both[answers.entities[~by_voter]] = True
        sample = np.flatnonzero(by_both & _among(answers.entities[by_voter], n_entities))[:_SAMPLE]
        in_sample = _among(sample, n_entities)[answers.entities]
        decision = decide(answers.where(in_sample & ~by_voter))
        rows = np.flatnonzero(in_sample & by_voter)
        entities, kinds = answers.entities[rows], answers.kinds[rows]
        classes = decision.classes[entities]
        speaks = (classes != NO_CLASS) & ~meanings.open[kinds, classes]
        entities, kinds, classes = entities[speaks], kinds[speaks], classes[speaks]
        chances = decision.support[entities]
        of_bin = np.searchsorted(_BINS, chances, "right") - 1
        statements += np.bincount(of_bin, minlength=n_bins)
        agreed += np.bincount(of_bin, meanings.own[kinds, classes], n_bins)
        trusted += np.bincount(of_bin, np.full(len(of_bin), precisions[voter]), n_bins)
        votes += np.bincount(of_bin, chances, n_bins)
    if not statements.any():
        return []
    middle = np.array([(low + high - 1) / 200 for low, high in pairwise(_BINS)])
    mean = (votes / 100 + _PRIOR * middle) / (statements + _PRIOR)
    # A voter errs less where the others are sure, so its precision would make too much of it.
    right = np.minimum((agreed + _PRIOR * mean) / (trusted + _PRIOR), _SUREST)
    right = np.maximum(right, (agreed + _PRIOR * mean) / (statements + _PRIOR))
    support = _rising(right, statements + _PRIOR)
    return [
        SupportBin(
            (_BINS[number], _BINS[number + 1] - 1),
            int(statements[number]),
            round(float(agreed[number] / statements[number]), 4) if statements[number] else None,
            int(np.rint(100 * support[number])),
        )
        for number in range(n_bins)
    ]


def calibrate(decision: Decision, bins: list[SupportBin]) -> None:
    """Replaces the probabilities of the votes by those of the bins."""
    if bins:
        of_votes = np.zeros(101, np.uint8)
        for each in bins:
            of_votes[each.votes[0] : each.votes[1] + 1] = each.support
        typed = decision.classes != NO_CLASS
        decision.support[typed] = of_votes[decision.support[typed]]


def _among(entities: Ints, size: int) -> Bools:
    is_one = np.zeros(size, bool)
    is_one[entities] = True
    return is_one


def _rising(values: Floats, weights: Floats) -> Floats:
    """The rising sequence that is nearest to some values (pool adjacent violators)."""
    pools: list[list[float]] = []  # mean, weight, length
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append([value, weight, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, weight, length = pools.pop()
            total = pools[-1][1] + weight
            pools[-1][0] = (pools[-1][0] * pools[-1][1] + mean * weight) / total
            pools[-1][1], pools[-1][2] = total, pools[-1][2] + length
    return np.repeat([mean for mean, _, _ in pools], [int(length) for _, _, length in pools])
