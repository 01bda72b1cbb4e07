import itertools
import math
import random
from functools import cache

import numpy as np
import pytest

from ontology.classes import ClassTree
from ontology.voting.answers import Answers
from ontology.voting.reliability import UNLIKELY, Comparisons, Reliability, agreement, weights
from ontology.voting.statements import Hierarchy, Statements, conflicts
from ontology.voting.votes import decide

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


@cache
def line(name):
    return {name, *TREE.ancestors(name)}


def leaves(names):
    """The most specific of some classes."""
    return {n for n in names if not any(n != m and n in line(m) for m in names)}


def all_answers(rows):
    """(entity, voter) -> the classes that the voter states."""
    found = {}
    for entity, name, voter in rows:
        found.setdefault((entity, voter), set()).add(name)
    return found


def share(names, name):
    """Share of the most specific of some classes that are a class or below it."""
    most = leaves(names)
    return sum(name in line(leaf) for leaf in most) / len(most)


def measured(rows, weight):
    """Rate of each class by each (voter, answer), by the words of the docstrings."""
    answers = all_answers(rows)
    kinds = {(voter, frozenset(names)) for (_, voter), names in answers.items()}
    right = dict.fromkeys(itertools.product(kinds, NAMES), 0.0)
    agreed, compared, count = dict(right), dict(right), dict.fromkeys(kinds, 0)
    for (entity, voter), names in answers.items():
        kind = (voter, frozenset(names))
        for (other_entity, other), theirs in answers.items():
            if other_entity != entity or other == voter:
                continue
            count[kind] += 1
            fitting = {
                t
                for t in leaves(theirs)
                if any(t in line(n) or n in line(t) for n in leaves(names))
            }
            for name in NAMES:
                supported = any(name in line(t) for t in theirs)
                is_open = not supported and any(t in line(name) for t in theirs)
                own = any(name in line(n) for n in names)
                right[kind, name] += share(fitting or theirs, name)
                agreed[kind, name] += 1.0 if is_open else share(theirs, name)
                compared[kind, name] += 0 if is_open and own else 1

    def single(voter, stated, name):
        of = [kind for kind in kinds if kind[0] == voter and stated in kind[1]]
        found = sum(agreed[kind, name] for kind in of) + 10 * weight[voter]
        return found / (sum(count[kind] for kind in of) + 10)

    rates = {}
    for kind, name in itertools.product(kinds, NAMES):
        voter, names = kind
        prior = max((single(voter, n, name) for n in names if name in line(n)), default=0)
        rate = (right[kind, name] + 10 * prior) / (compared[kind, name] + 10)
        rates[kind, name] = min(max(rate, 0), 1)
    return rates


def is_open(names, name):
    """Whether some classes are above a class, and none is this class or below it."""
    return any(n in line(name) for n in names) and not any(name in line(n) for n in names)


def silences(rows, voters):
    """How often each voter states only what is above a class that another voter states."""
    answers = all_answers(rows)
    left_open, stated = {}, {}
    for (entity, voter), names in answers.items():
        for (other_entity, other), theirs in answers.items():
            if other_entity != entity or other == voter:
                continue
            for name in NAMES:
                if any(name in line(t) for t in theirs):
                    place = voter, name
                    left_open[place] = left_open.get(place, 0) + is_open(names, name)
                    stated[place] = stated.get(place, 0) + any(name in line(n) for n in names)
    places = itertools.product(range(voters), NAMES)
    return {
        place: (left_open.get(place, 0) + 5) / (left_open.get(place, 0) + stated.get(place, 0) + 10)
        for place in places
    }


def by_hand(rows, rates, silence, weight, frequency, entity, least):
    """Class of an entity, and its probability."""
    stated = {v: names for (e, v), names in all_answers(rows).items() if e == entity}
    if not stated:
        return None, 0
    possible, score = {}, {}
    for name in set(NAMES) - {"Agent"}:
        owners = [v for v, names in stated.items() if any(name in line(n) for n in names)]
        votes = sum(weight[v] * (share(stated[v], name) if len(stated) == 1 else 1) for v in owners)
        found = []
        for voter, names in stated.items():
            rate = rates[(voter, frozenset(names)), name]
            if voter in owners or rate >= UNLIKELY:
                found.append(max(rate, UNLIKELY))
        chance = 1 - math.prod(max(1 - rate, 1e-6) for rate in found)
        silent = [v for v in stated if is_open(stated[v], name)]
        total = sum(weight[voter] for voter in stated.keys() - {*silent})
        odds = chance / max(1 - chance, 1e-12) * math.prod(silence[v, name] for v in silent)
        chance = odds / (1 + odds)
        if owners and votes / total > 0.5 + 1e-9 and chance >= least - 1e-9:
            possible[name] = chance
            score[name] = (
                sum(map(math.log, found))
                + (len(stated) - len(found)) * math.log(UNLIKELY)
                - (len(stated) - 1) * math.log(frequency[name])
            )
    candidates = leaves(possible)
    if not candidates:
        return None, 0
    best = max(score[name] for name in candidates)
    top = {name for name in candidates if score[name] >= best - 0.1}
    support = round(100 * max(possible[name] for name in top))
    if len(top) > 1:
        shared = set.intersection(*(line(name) for name in top))
        shared = {name for name in shared if TREE.depth(name) > 0}
        if not shared:
            return None, 0
        return min(shared, key=lambda name: (-TREE.depth(name), name)), support
    return top.pop(), support


def some_rows(seed, entities=40, most=200, voters=4):
    draw = random.Random(seed)
    return [
        (draw.randrange(entities), draw.choice(NAMES), draw.randrange(voters))
        for _ in range(draw.randrange(most))
    ]


def answers_of(rows):
    return Answers.of(statements(rows), len(HIERARCHY.names))


def decided(rows, weight, n_entities, least=0.0):
    answers = answers_of(rows)
    comparisons = Comparisons(answers, HIERARCHY, len(weight))
    reliability = Reliability.of(comparisons, HIERARCHY, np.array(weight))
    found = decide(answers, HIERARCHY, reliability, n_entities, least)
    names = [HIERARCHY.names[c] if c >= 0 else None for c in found.classes.tolist()]
    return names, found, reliability


WEIGHT = [0.9, 0.8, 0.7, 0.95]


@pytest.mark.parametrize("seed", range(30))
def test_against_brute_force(seed):
    rows = some_rows(seed)
    least = [0.0, 0.6, 0.8][seed % 3]
    names, found, reliability = decided(rows, WEIGHT, 45, least)
    rates, silence = measured(rows, WEIGHT), silences(rows, len(WEIGHT))
    frequency = dict(zip(HIERARCHY.names, reliability.frequencies.tolist(), strict=True))
    for entity in range(45):
        name, support = by_hand(rows, rates, silence, WEIGHT, frequency, entity, least)
        assert names[entity] == name, (entity, [row for row in rows if row[0] == entity])
        assert abs(int(found.support[entity]) - support) <= 1
        voters = {v for e, _, v in rows if e == entity}
        assert int(found.voters[entity]) == sum(1 << v for v in voters)


@pytest.mark.parametrize("seed", range(10))
def test_reliability_against_brute_force(seed):
    rows = some_rows(seed, entities=25)
    answers = answers_of(rows)
    comparisons = Comparisons(answers, HIERARCHY, len(WEIGHT))
    found = Reliability.of(comparisons, HIERARCHY, np.array(WEIGHT))
    rates = measured(rows, WEIGHT)
    for kind, voter in enumerate(answers.kind_voters.tolist()):
        codes = answers.statement_keys[answers.statement_keys // len(HIERARCHY.names) == kind]
        names = frozenset(HIERARCHY.names[code % len(HIERARCHY.names)] for code in codes)
        own_rows = range(found.starts[kind], found.starts[kind + 1])
        ours = {HIERARCHY.names[found.classes[row]]: found.rates[row] for row in own_rows}
        for name in NAMES:
            expected = rates[(voter, names), name]
            is_own = any(name in line(n) for n in names)
            if is_own or expected >= UNLIKELY:
                assert ours[name] == pytest.approx(max(expected, UNLIKELY)), (voter, names, name)
            else:
                assert name not in ours


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("Singer", 0), ("Artist", 1), ("Person", 2)], "Singer"),  # the others say nothing else
        ([("Singer", 0), ("Song", 1), ("Singer", 2)], "Singer"),
        ([("Song", 0), ("Album", 1)], "Work"),  # the deepest that both support
        ([("Song", 0), ("City", 1)], None),
        ([("Song", 0), ("Album", 0)], "Work"),  # one voter that states both
        ([("Band", 0), ("Singer", 0)], None),  # Agent says too little
        ([("Band", 0), ("Singer", 0), ("Band", 1)], "Band"),  # another voter decides
        ([("Capital", 0)], "Capital"),
        ([("Strange", 0)], "Strange"),
        ([("Strange", 0), ("City", 0)], None),
    ],
)
def test_votes(rows, expected):
    names, _, _ = decided([(0, name, voter) for name, voter in rows], [0.9] * 4, 1)
    assert names == [expected]


def test_a_voter_with_more_weight_wins():
    names, _, _ = decided([(0, "Song", 0), (0, "City", 1)], [0.9, 0.6], 1)
    assert names == ["Song"]


def test_the_meaning_of_an_answer_is_learned_from_the_others():
    """Voter 1 states City for capitals, too, voter 2 both; voter 0 knows the difference."""
    rows = []
    for entity in range(60):
        rows += [(entity, "Singer", 0), (entity, "Singer", 1), (entity, "Singer", 2)]
    for entity in range(60, 100):
        rows += [(entity, "Painter", 0), (entity, "Singer", 2), (entity, "Painter", 2)]
    rows += [(100, "Painter", 0), (100, "Singer", 1), (100, "Singer", 2), (100, "Painter", 2)]
    names, _, _ = decided(rows, [0.95, 0.95, 0.9], 101)
    assert names[100] == "Painter"


def test_what_is_too_improbable_gives_way_to_what_is_above_it():
    rows = [(e, "Song", 0) for e in range(60)] + [(e, "Album", 1) for e in range(50)]
    names, _, _ = decided(rows, [0.9, 0.9], 60, 0.8)
    assert names[55] == "Work"


@pytest.mark.parametrize("seed", range(5))
def test_agreement_against_brute_force(seed):
    rows = some_rows(seed, entities=30, most=150, voters=3)
    agreed, compared = agreement(Comparisons(answers_of(rows), HIERARCHY, 3))
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
    agreed, compared = agreement(Comparisons(answers_of([(0, "City", 0)]), HIERARCHY, 1))
    assert weights(agreed, compared).tolist() == [0.9]


@pytest.mark.parametrize("seed", range(5))
def test_conflicts_against_brute_force(seed):
    """Pairs of classes of an entity of which neither lies above the other."""
    rows = some_rows(seed)
    pairs = {}
    for entity in sorted({row[0] for row in rows}):
        names = sorted({name for e, name, _ in rows if e == entity}, key=HIERARCHY.names.index)
        for one, other in itertools.combinations(names, 2):
            if one not in line(other) and other not in line(one):
                pairs.setdefault((one, other), []).append(entity)
    found = conflicts(statements(rows), HIERARCHY)
    assert {one.classes: one.entities for one in found} == {p: len(e) for p, e in pairs.items()}
    assert all(list(one.examples) == pairs[one.classes][:3] for one in found)
    assert [one.entities for one in found] == sorted(map(len, pairs.values()), reverse=True)
    assert conflicts(statements(rows), HIERARCHY, most=2) == found[:2]


def test_no_statements():
    names, found, _ = decided([], [0.9], 3)
    assert names == [None] * 3
    assert found.voters.tolist() == [0, 0, 0]
