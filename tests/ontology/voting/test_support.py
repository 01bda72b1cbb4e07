"""The probability that a class is right, against brute force and against what is true."""

import random

import numpy as np
import pytest

from ontology.classes import ClassTree
from ontology.titles import title_keys
from ontology.voting.building import Facts, build
from ontology.voting.support import SupportBin, _rising, calibrate
from ontology.voting.votes import Decision

TREE = ClassTree.shipped()
CLASSES = ["City", "Band", "Writer", "Species", "Film", "Company"]


def brute_force(values, weights):
    """The least squares fit among all rising sequences that are constant between cuts."""
    best, fit = np.inf, None
    for cuts in range(1 << (len(values) - 1)):
        blocks = np.cumsum([0, *((cuts >> n) & 1 for n in range(len(values) - 1))])
        means = [np.average(values[blocks == b], weights=weights[blocks == b]) for b in set(blocks)]
        if np.all(np.diff(means) >= 0):
            error = (weights * (values - np.array(means)[blocks]) ** 2).sum()
            if error < best:
                best, fit = error, np.array(means)[blocks]
    return fit


@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_rising_sequence(seed):
    draw = np.random.default_rng(seed)
    values, weights = draw.random(7), draw.random(7) + 0.1
    assert np.allclose(_rising(values, weights), brute_force(values, weights))


def test_bins_replace_the_probabilities():
    classes = np.array([0, -1, 3, 1], np.int16)
    decision = Decision(classes, np.array([82, 0, 100, 99], np.uint8), np.zeros(4, np.uint32))
    calibrate(decision, [SupportBin((0, 99), 5, 0.8, 81), SupportBin((100, 100), 5, 1.0, 98)])
    assert decision.support.tolist() == [81, 0, 98, 81]


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_share_that_is_right(seed):
    """Five voters with known errors: in each range of support so many classes are right."""
    draw = random.Random(seed)
    titles = [f"page {n}" for n in range(4000)]
    truth = [draw.choice(CLASSES) for _ in titles]

    def voter(precision, share):
        rows = [n for n in range(len(titles)) if draw.random() < share]
        stated = [truth[n] if draw.random() < precision else draw.choice(CLASSES) for n in rows]
        indices = np.array([CLASSES.index(name) for name in stated], np.int32)
        return Facts(title_keys([titles[n] for n in rows]), CLASSES, indices)

    nothing = Facts(title_keys(titles), [], np.full(len(titles), -1, np.int32))
    voters = [voter(p, s) for p, s in [(0.95, 0.5), (0.9, 0.5), (0.85, 0.6), (0.97, 0.3)]]
    built = build(nothing, voters, TREE, least=0.0)
    table = built.table
    entities = table.lookup(titles)
    support = table.support[entities] / 100
    has_class = table.classes[entities] >= 0
    names = np.array([*table.class_names, ""])[table.classes[entities]]
    right = np.array(
        [name in [true, *TREE.ancestors(true)] for name, true in zip(names, truth, strict=True)]
    )
    assert sum(each.statements for each in built.support) > 2000
    for low, high in [(0.5, 0.9), (0.9, 0.97), (0.97, 1.01)]:
        rows = has_class & (support >= low) & (support < high)
        if rows.sum() > 100:
            assert abs(support[rows].mean() - right[rows].mean()) < 0.04, (low, rows.sum())
