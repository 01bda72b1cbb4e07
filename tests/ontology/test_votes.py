import math
import random

import numpy as np
import pytest

from ontology.classes import ClassTree
from ontology.votes import Hierarchy, Reliability, Statements, agreement, decide, expanded, weights

TREE = ClassTree(
    {
        "Agent": [],
        "Person": ["Agent"],
        "Artist": ["Person"],
        "Singer": ["Artist"],
        "Painter": ["Artist"],
        "Organisation": ["Agent"],
        "Band": ["Organisation"],
        "Work": [],
        "Song": ["Work"],
        "Album": ["Work"],
        "Place": [],
        "City": ["Place"],
        "Capital": ["City"],
    }
)
NAMES = [*TREE.names, "Strange"]
HIERARCHY = Hierarchy(NAMES, TREE)


def statements(rows):
    """Statements of rows (entity, class, voter)."""
    columns = [
        [e for e, _, _ in rows],
        [HIERARCHY.index[c] for _, c, _ in rows],
        [v for _, _, v in rows],
    ]
    return Statements(*(np.array(column, np.int64) for column in columns))


def line(name):
    return {name, *TREE.ancestors(name)}


class Rates:
    """Probabilities by hand: of a class, if a voter states a class."""

    def __init__(self, rates, default=1.0):
        self.rates, self.default = rates, default

    def of(self, voter, stated, name):
        return self.rates.get((voter, stated, name), self.rates.get(voter, self.default))

    def __call__(self, voters, stated, classes):
        names = HIERARCHY.names
        triples = zip(voters.tolist(), stated.tolist(), classes.tolist(), strict=True)
        return np.array([self.of(v, names[s], names[c]) for v, s, c in triples])


def by_hand(rows, rates, entity, least):
    """Class and support of an entity, by the words of the docstrings."""
    stated = {}
    for e, name, voter in rows:
        if e == entity:
            stated.setdefault(voter, set()).add(name)

    def rate(voter, name):
        return max(
            (rates.of(voter, own, name) for own in stated[voter] if name in line(own)), default=0
        )

    total = sum(
        max(rates.of(voter, name, name) for name in names) for voter, names in stated.items()
    )
    possible, chance = {}, {}
    for name in NAMES if stated else ():
        found = [rate(voter, name) for voter in stated]
        share = min(sum(found) / total, 1)
        chance[name] = 1 - math.prod(max(1 - one, 1e-6) for one in found if one)
        if share > 0.5 + 1e-9 and any(found) and chance[name] >= least - 1e-9:
            possible[name] = share
    leaves = {n for n in possible if not any(n != m and n in line(m) for m in possible)}
    if not leaves:
        return None, 0
    score = {name: round(possible[name], 6) * 100 + round(chance[name], 1) for name in leaves}
    top = {name for name in leaves if score[name] >= max(score.values()) - 1e-9}
    support = round(100 * possible[min(top)])
    if len(top) > 1:
        shared = set.intersection(*(line(name) for name in top))
        shared = {name for name in shared if TREE.depth(name) > 0}
        if not shared:
            return None, 0
        return min(shared, key=lambda name: (-TREE.depth(name), name)), support
    return top.pop(), support


def decided(rows, rates, n_entities, least=0.0):
    found = decide(statements(rows), HIERARCHY, rates, n_entities, least)
    names = [HIERARCHY.names[c] if c >= 0 else None for c in found.classes.tolist()]
    return names, found


@pytest.mark.parametrize("seed", range(30))
def test_against_brute_force(seed):
    draw = random.Random(seed)
    chances = [0.31, 0.52, 0.73, 0.94, 1.0]
    rates = Rates(
        {(v, c, a): draw.choice(chances) for v in range(4) for c in NAMES for a in line(c)}
    )
    least = draw.choice([0.0, 0.6, 0.8])
    rows = [
        (draw.randrange(40), draw.choice(NAMES), draw.randrange(4))
        for _ in range(draw.randrange(200))
    ]
    names, found = decided(rows, rates, 45, least)
    for entity in range(45):
        name, support = by_hand(rows, rates, entity, least)
        assert names[entity] == name, (entity, [row for row in rows if row[0] == entity])
        assert abs(int(found.support[entity]) - support) <= 1
        voters = {v for e, _, v in rows if e == entity}
        assert int(found.voters[entity]) == sum(1 << v for v in voters)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("Singer", 0), ("Artist", 1), ("Person", 2)], "Artist"),  # two of three say so
        ([("Singer", 0), ("Song", 1), ("Singer", 2)], "Singer"),
        ([("Song", 0), ("Album", 1)], "Work"),  # the deepest that both support
        ([("Song", 0), ("City", 1)], None),
        ([("Song", 0), ("Album", 0)], "Work"),  # one voter that states both
        ([("Band", 0), ("Singer", 0)], None),  # Agent says too little
        ([("Band", 0), ("Singer", 0), ("Band", 1)], "Band"),
        ([("Capital", 0)], "Capital"),
        ([("Strange", 0)], "Strange"),
        ([("Strange", 0), ("City", 0)], None),
    ],
)
def test_votes(rows, expected):
    names, _ = decided([(0, name, voter) for name, voter in rows], Rates({}), 1)
    assert names == [expected]


def test_a_reliable_voter_wins_against_one_that_is_not():
    names, _ = decided([(0, "Song", 0), (0, "City", 1)], Rates({0: 0.9, 1: 0.6}), 1)
    assert names == ["Song"]


def test_what_is_too_improbable_gives_way_to_what_is_above_it():
    rates = Rates(
        {(0, "Song", "Song"): 0.1, (0, "Song", "Work"): 0.9, (0, "City", "City"): 0.2}, 0.2
    )
    assert decided([(0, "Song", 0)], rates, 1, 0.8)[0] == ["Work"]
    assert decided([(0, "City", 0)], rates, 1, 0.8)[0] == [None]
    assert decided([(0, "City", 0)], rates, 1)[0] == ["City"]


def test_the_more_probable_of_two_classes_of_one_voter():
    rates = Rates({(0, "Song", "Song"): 0.1, (0, "Album", "Album"): 0.9})
    assert decided([(0, "Song", 0), (0, "Album", 0)], rates, 1, 0.8)[0] == ["Album"]


def test_reliability_against_brute_force():
    draw = random.Random(5)
    rows = [(draw.randrange(60), draw.choice(NAMES), draw.randrange(3)) for _ in range(300)]
    weight = [0.9, 0.8, 0.7]
    found = Reliability(statements(rows), HIERARCHY, np.array(weight))
    for voter in range(3):
        for stated in NAMES:
            for name in line(stated):
                right = compared = 0
                for entity, own, v in rows:
                    theirs = [c for e, c, w in rows if e == entity and w != voter]
                    if (own, v) == (stated, voter) and theirs:
                        compared += 1
                        right += any(name in line(c) or c in line(name) for c in theirs)
                expected = (right + 10 * weight[voter]) / (compared + 10)
                one = [
                    np.array([x]) for x in (voter, HIERARCHY.index[stated], HIERARCHY.index[name])
                ]
                assert found(*one)[0] == pytest.approx(expected), (voter, stated, name)


def test_agreement_against_brute_force():
    draw = random.Random(3)
    rows = [(draw.randrange(30), draw.choice(NAMES), draw.randrange(3)) for _ in range(150)]
    agreed, compared = agreement(statements(rows), HIERARCHY, 3)
    for one in range(3):
        for other in range(3):
            own = {(e, c) for e, c, v in rows if v == one}
            theirs = {(e, c) for e, c, v in rows if v == other}
            both = [(e, c) for e, c in own if one != other and any(e == f for f, _ in theirs)]
            right = [
                (e, c)
                for e, c in both
                if any(e == f and (c in line(d) or d in line(c)) for f, d in theirs)
            ]
            assert (agreed[one, other], compared[one, other]) == (len(right), len(both))
    found = weights(agreed, compared)
    assert found.shape == (3,)
    assert ((found > 0) & (found <= 1)).all()


def test_a_voter_alone_has_the_weight_of_its_prior():
    agreed, compared = agreement(statements([(0, "City", 0)]), HIERARCHY, 1)
    assert weights(agreed, compared).tolist() == [0.9]


def test_no_statements():
    names, found = decided([], Rates({}), 3)
    assert names == [None] * 3
    assert found.voters.tolist() == [0, 0, 0]
    assert len(expanded(statements([]), HIERARCHY)) == 0
