import random

import numpy as np
import pyarrow as pa

from ontology.classes import ClassTree
from ontology.entity_table import (
    FIRST_SENTENCE,
    INFOBOX,
    NO_CLASS,
    PAGE_TYPER,
    SOURCES,
    EntityTable,
)
from ontology.titles import title_keys
from ontology.voting.building import Facts
from ontology.voting.building import build as build_table

TREE = ClassTree({"Place": [], "City": ["Place"], "Agent": [], "Person": ["Agent"]})


def build(pages, redirects, types, boxes=None, rule="deepest"):
    """Table of article titles, redirects {from: to}, DBpedia's (title, class) and {title: class}."""
    boxes = boxes or {}
    titles = [*pages, *redirects]
    names = sorted(set(boxes.values()))
    facts = Facts(
        title_keys(titles),
        names,
        np.array([names.index(boxes[t]) if t in boxes else -1 for t in titles], np.int32),
        targets=np.concatenate([np.zeros(len(pages), np.uint64), title_keys(redirects.values())]),
    )
    classes = sorted({c for _, c in types})
    stated = Facts(
        title_keys(t for t, _ in types),
        classes,
        np.array([classes.index(c) for _, c in types], np.int32),
    )
    return build_table(facts, [stated], TREE, rule).table


def test_dbpedia_first_infobox_fills_gaps():
    table = build(
        ["Rome", "Paris", "Oslo"],
        {},
        [("Rome", "Place"), ("Rome", "City")],
        {"Rome": "Person", "Paris": "City"},
    )
    assert [table.class_of(t) for t in ("Rome", "Paris", "Oslo", "Nowhere")] == [
        "City",
        "City",
        None,
        None,
    ]
    sources = [SOURCES[table.sources[table.lookup([t])[0]]] for t in ("Rome", "Paris", "Oslo")]
    assert sources == ["dbpedia", "infobox", "none"]


def test_the_first_of_the_sources_that_know_an_entity():
    names = [INFOBOX, "types", FIRST_SENTENCE, PAGE_TYPER]
    known = [0b1111, 0b1101, 0b1100, 0b1000, 0b0001, 0b0000]
    numbers = np.arange(len(known))
    classes = np.where(np.array(known) > 0, 0, NO_CLASS).astype(np.int16)
    keys = numbers.astype(np.uint64)
    voters = np.array(known, np.uint32)
    entities = numbers.astype(np.int32)
    table = EntityTable(["City"], ["Place"], names, keys, entities, classes, classes, voters)
    assert [SOURCES[source] for source in table.sources] == [
        "dbpedia",
        "infobox",
        "first-sentence",
        "page-typer",
        "infobox",
        "none",
    ]


def test_chains_circles_and_targets_outside_the_dump():
    redirects = {
        "A": "B",
        "B": "C",
        "C": "Rome",
        "X": "Y",
        "Y": "X",
        "Z": "X",
        "Self": "Self",
        "Out": "Outside",
    }
    table = build(["Rome"], redirects, [("Rome", "City"), ("Outside", "Person"), ("X", "City")])
    assert [table.class_of(t) for t in ("A", "B", "C", "Out")] == ["City"] * 3 + ["Person"]
    assert [table.class_of(t) for t in ("X", "Y", "Z", "Self")] == [None] * 4
    assert len(set(table.lookup(["A", "B", "C", "Rome"]).tolist())) == 1
    assert table.lookup(["Nowhere"])[0] == -1


def test_type_of_a_redirect_counts_when_its_target_has_none():
    table = build(
        ["New", "Typed"],
        {"Old": "New", "Old2": "Typed"},
        [("Old", "City"), ("Old2", "City"), ("Typed", "Person")],
    )
    assert table.class_of("New") == "City"
    assert table.class_of("Typed") == "Person"


def test_unknown_class_is_kept_but_known_ones_win():
    table = build(["A", "B"], {}, [("A", "Strange"), ("B", "Strange"), ("B", "Place")])
    assert (table.class_of("A"), table.class_of("B")) == ("Strange", "Place")


def test_against_brute_force():
    draw = random.Random(7)
    titles = [f"T{i}" for i in range(400)]
    pages = titles[:150]
    redirects = {t: draw.choice(titles + ["Nowhere"]) for t in titles[150:]}
    types = [
        (draw.choice(titles), draw.choice(["Place", "City", "Agent", "Person"])) for _ in range(200)
    ]
    table = build(pages, redirects, types)

    def final(title):
        seen = []
        while title in redirects and title not in seen:
            seen.append(title)
            title = redirects[title]
        return title if title not in redirects else None  # None: it ends in a circle

    for title in titles:
        end = final(title)
        stated = [c for t, c in types if t == end]
        if end is not None and not stated:
            stated = [c for t, c in types if t in redirects and final(t) == end]
        expected = TREE.most_specific(stated) if end is not None else None
        assert table.class_of(title) == expected, title


def test_saved_table_is_mapped_and_equal(tmp_path):
    table = build(["Rome"], {"Roma": "Rome"}, [("Rome", "City")])
    table.save(tmp_path)
    opened = EntityTable.open(tmp_path)
    assert isinstance(opened.keys, np.memmap)
    assert opened.class_of("Roma") == "City"
    column = pa.array(["Roma", "Rome", "x", "Roma"])
    np.testing.assert_array_equal(opened.lookup(column), table.lookup(column))


def test_empty_table():
    table = build([], {}, [])
    assert table.lookup(["x"]).tolist() == [-1]
    assert table.lookup([]).tolist() == []
