import random

import numpy as np
import pytest

from ontology.classes import ClassTree
from ontology.votes import Hierarchy, Statements, agreement, decide, expanded, weights

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


def by_hand(rows, weight, entity):
    """Class and support of an entity, by the words of the docstrings."""
    voters = {v for e, _, v in rows if e == entity}
    total = sum(weight[v] for v in voters)
    implied = {
        v: set().union(*(line(c) for e, c, w in rows if (e, w) == (entity, v))) for v in voters
    }
    support = {
        name: sum(weight[v] for v in voters if name in implied[v]) / total
        for name in NAMES
        if voters
    }
    majority = {name for name, share in support.items() if share > 0.5 + 1e-9}
    leaves = {n for n in majority if not any(n != m and n in line(m) for m in majority)}
    if not leaves:
        return None, 0
    most = max(support[name] for name in leaves)
    top = {name for name in leaves if support[name] >= most - 1e-9}
    if len(top) > 1:
        shared = set.intersection(*(line(name) for name in top))
        shared = {name for name in shared if TREE.depth(name) > 0}
        if not shared:
            return None, 0
        return min(shared, key=lambda name: (-TREE.depth(name), name)), round(100 * most)
    return top.pop(), round(100 * most)


def decided(rows, weight, n_entities):
    found = decide(statements(rows), HIERARCHY, np.array(weight), n_entities)
    names = [HIERARCHY.names[c] if c >= 0 else None for c in found.classes.tolist()]
    return names, found


@pytest.mark.parametrize("seed", range(30))
def test_against_brute_force(seed):
    draw = random.Random(seed)
    weight = [draw.choice([0.5, 0.9, 0.9, 1.0]) for _ in range(4)]
    rows = [
        (draw.randrange(40), draw.choice(NAMES), draw.randrange(4))
        for _ in range(draw.randrange(200))
    ]
    names, found = decided(rows, weight, 45)
    for entity in range(45):
        name, support = by_hand(rows, weight, entity)
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
    names, _ = decided([(0, name, voter) for name, voter in rows], [1.0, 1.0, 1.0], 1)
    assert names == [expected]


def test_a_reliable_voter_wins_against_one_that_is_not():
    names, _ = decided([(0, "Song", 0), (0, "City", 1)], [0.9, 0.6], 1)
    assert names == ["Song"]


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
    names, found = decided([], [], 3)
    assert names == [None] * 3
    assert found.voters.tolist() == [0, 0, 0]
    assert len(expanded(statements([]), HIERARCHY)) == 0
