"""Classes of entities from all facts together."""

import numpy as np
import pytest

from ontology.classes import ClassTree
from ontology.entity_table import PAGE_TYPER
from ontology.voting.building import Facts, build
from ontology.voting.statements import Hierarchy, Statements, without_twins

TREE = ClassTree(
    {
        "Agent": [],
        "Person": ["Agent"],
        "Politician": ["Person"],
        "OfficeHolder": ["Person"],
        "Organisation": ["Agent"],
        "Place": [],
        "PopulatedPlace": ["Place"],
        "Settlement": ["PopulatedPlace"],
        "City": ["Settlement"],
        "Region": ["PopulatedPlace"],
        "AdministrativeRegion": ["Region"],
    }
)
NAMES = sorted(TREE.names)


def facts(random, pages, share, name):
    """Statements of a voter about a share of the pages; most are right."""
    keys = np.flatnonzero(random.random(pages) < share).astype(np.uint64) + np.uint64(1)
    right = np.array([NAMES.index("City" if key % 3 else "OfficeHolder") for key in keys], np.int32)
    wrong = random.integers(0, len(NAMES), len(keys)).astype(np.int32)
    return Facts(keys, NAMES, np.where(random.random(len(keys)) < 0.7, right, wrong), name)


@pytest.mark.parametrize("seed", range(20))
def test_the_page_typer_changes_no_page_that_three_others_know(seed):
    random = np.random.default_rng(seed)
    pages = 120
    boxes = facts(random, pages, 0.8, "infobox")
    keys = np.arange(1, pages + 1, dtype=np.uint64)
    indices = np.full(pages, -1, np.int32)
    indices[boxes.keys.astype(int) - 1] = boxes.class_indices
    dump = Facts(keys, NAMES, indices)
    files = [facts(random, pages, 0.7, f"file{number}") for number in range(3)]
    typer = facts(random, pages, 1.0, PAGE_TYPER)
    # As learnt from the infobox: it repeats what that says.
    typer.class_indices[boxes.keys.astype(int) - 1] = boxes.class_indices
    with_typer = build(dump, [*files, typer], TREE).table
    without = build(dump, files, TREE).table
    voters = np.array([bin(bits).count("1") for bits in without.voters.tolist()])
    known = voters >= 3
    assert known.sum() > 40
    names = [
        [table.class_names[number] if number >= 0 else None for number in table.classes.tolist()]
        for table in (with_typer, without)
    ]
    same = np.array([a == b for a, b in zip(*names, strict=True)])
    assert same[known].all()
    assert not same.all()  # of other pages it does
    assert (with_typer.support[known] == without.support[known]).all()


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (["OfficeHolder", "Politician"], ["Politician", "Politician"]),
        (["OfficeHolder", "OfficeHolder"], ["OfficeHolder", "OfficeHolder"]),
        (["OfficeHolder", "Person"], ["OfficeHolder", "Person"]),
        (["OfficeHolder", "Senator"], ["Politician", "Senator"]),
        (["Governor", "Politician"], ["Governor", "Politician"]),
        (["Town", "City"], ["City", "City"]),
        (["Municipality", "Village"], ["Village", "Village"]),
        (["Town", "Village"], ["Town", "Village"]),
    ],
)
def test_twins_are_one_class_where_both_are_stated(stated, expected):
    tree = ClassTree(
        {
            "Person": [],
            "Politician": ["Person"],
            "Senator": ["Politician", "Person"],
            "OfficeHolder": ["Person"],
            "Governor": ["OfficeHolder", "Person"],
            **{name: [] for name in ("City", "Town", "Village", "Municipality")},
        }
    )
    hierarchy = Hierarchy(tree.names, tree)
    classes = np.array([hierarchy.index[name] for name in [*stated, "OfficeHolder"]])
    statements = Statements(np.array([4, 4, 7]), classes, np.array([0, 1, 0]))
    found = [hierarchy.names[number] for number in without_twins(statements, hierarchy).classes]
    assert found == [*expected, "OfficeHolder"]
