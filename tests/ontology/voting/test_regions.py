import numpy as np
import pyarrow as pa
import pytest

from ontology.classes import ClassTree, rows_of
from ontology.titles import title_keys
from ontology.voting.regions import endings, without_settlements
from ontology.voting.statements import Hierarchy, Statements

TREE = ClassTree(
    {
        "Place": [],
        "PopulatedPlace": ["Place"],
        "Settlement": ["PopulatedPlace"],
        "City": ["Settlement"],
        "AdministrativeRegion": ["PopulatedPlace"],
        "Province": ["AdministrativeRegion"],
        "Municipality": ["AdministrativeRegion"],
        "Country": ["PopulatedPlace"],
        "Island": ["PopulatedPlace"],
        "NaturalPlace": ["Place"],
        "BodyOfWater": ["NaturalPlace"],
        "Lake": ["BodyOfWater"],
        "River": ["BodyOfWater"],
        "Sea": ["BodyOfWater"],
        "Organisation": [],
    }
)
INSIDE = [f"Town {n}, Alberta" for n in range(5)]
RUPERT = [f"Town {n}, Rupert" for n in range(5)]
HIERARCHY = Hierarchy(TREE.names, TREE)


def meant(stated, others=(), hierarchy=HIERARCHY, told=None):
    """The classes of each title, after statements {title: classes}; `others` have none.

    What first sentences say is `told`.
    """
    titles = [*stated, *others]
    keys = np.unique(title_keys(titles))
    entity_of = np.arange(len(keys), dtype=np.int32)
    entities = dict(zip(titles, np.searchsorted(keys, title_keys(titles)).tolist(), strict=True))
    names = sorted(set(endings(pa.array(titles)).to_pylist()))
    of_entity = np.empty(len(keys), np.int32)
    for title, name in zip(titles, endings(pa.array(titles)).to_pylist(), strict=True):
        of_entity[entities[title]] = names.index(name)
    pairs = [(entities[t], hierarchy.index[c]) for t, some in stated.items() for c in some]
    columns = np.array(pairs, np.int64).reshape(-1, 2).T
    statements = Statements(columns[0], columns[1], np.zeros(len(pairs), np.int64))
    if told is not None:
        columns = np.array([(entities[t], hierarchy.index[c]) for t, c in told.items()]).T
        every = ((statements.entities, columns[0]), (statements.classes, columns[1]))
        voters = np.arange(2).repeat([len(pairs), len(told)])
        statements = Statements(*map(np.concatenate, every), voters)
    known = (keys, entity_of, names, of_entity, -1 if told is None else 1)
    found = without_settlements(statements, hierarchy, *known)
    if told is None:
        assert found.entities is statements.entities
        assert found.voters is statements.voters
    by_title = {entity: title for title, entity in entities.items()}
    classes = {title: [] for title in stated}
    for entity, number in zip(found.entities.tolist(), found.classes.tolist(), strict=True):
        classes[by_title[entity]].append(hierarchy.names[number])
    return classes


@pytest.mark.parametrize(("inside", "expected"), [(5, "PopulatedPlace"), (4, "Settlement")])
def test_a_title_behind_the_comma_of_five_others_is_a_region(inside, expected):
    found = meant({"Rupert": ["Settlement"], "Banff": ["Settlement"]}, RUPERT[:inside])
    assert found == {"Rupert": [expected], "Banff": ["Settlement"]}


def test_other_statements_stay():
    found = meant({"Rupert": ["Place", "Settlement", "Organisation"]}, RUPERT)
    assert found == {"Rupert": ["Place", "PopulatedPlace", "Organisation"]}


def test_a_city_stays_a_settlement():
    found = meant({"Rupert": ["Settlement", "City"]}, RUPERT)
    assert found == {"Rupert": ["Settlement", "City"]}


def test_a_source_that_says_city_and_something_else_does_not_say_city():
    found = meant({"Rupert": ["Settlement", "City", "Organisation"]}, RUPERT)
    assert found == {"Rupert": ["PopulatedPlace", "City", "Organisation"]}


@pytest.mark.parametrize(
    ("region", "expected"),
    [("Province", "Province"), ("AdministrativeRegion",) * 2, ("Country", "PopulatedPlace")],
)
def test_what_a_source_calls_settlement_and_region_is_a_region(region, expected):
    assert meant({"Banff": ["Settlement", region]}) == {"Banff": ["PopulatedPlace", expected]}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Kerala", ["AdministrativeRegion"] * 3 + ["Province", "Place"]),
        ("Eastern Europe", ["PopulatedPlace"] * 4 + ["Place"]),
        ("United Nations", ["Organisation"] * 4 + ["Place"]),
    ],
)
def test_regions_of_the_table(title, expected):
    stated = ["Settlement", "City", "Country", "Province", "Place"]
    assert meant({title: stated, "Kochi": ["City"]}) == {title: expected, "Kochi": ["City"]}


def test_seas_that_infoboxes_call_lakes():
    stated = ["Lake", "River", "Sea", "Place", "Country", "Organisation"]
    expected = [*["Sea"] * 5, "Organisation"]
    assert meant({"Red Sea": stated, "Kochi": ["City"]}) == {"Red Sea": expected, "Kochi": ["City"]}
    assert meant({"Pacific Ocean": ["River", "Sea"]}) == {"Pacific Ocean": ["BodyOfWater"] * 2}
    assert meant({"Iberian Peninsula": ["Island"]}) == {"Iberian Peninsula": ["PopulatedPlace"]}


def test_the_table_has_each_title_once_with_a_class_of_the_ontology():
    rows = rows_of("regions.tsv")
    titles = [title for *_, some in rows for title in some.split("; ")]
    assert len(set(titles)) == len(titles) > 400
    assert {name for name, *_ in rows} <= set(ClassTree.shipped().names)


def test_a_title_behind_commas_need_not_be_an_entity():
    assert meant({"Banff": ["Settlement"]}, INSIDE) == {"Banff": ["Settlement"]}


@pytest.mark.parametrize(
    ("regions", "settlements", "expected"),
    [(11, 9, "PopulatedPlace"), (10, 10, "Settlement"), (11, 8, "Settlement")],
)
def test_titles_that_end_as_those_of_most_regions(regions, settlements, expected):
    stated = {f"{n} County": ["Province", "Settlement"] for n in range(regions)}
    stated |= {f"Old {n} County": ["Settlement"] for n in range(settlements)}
    found = meant(stated)
    assert found["Old 0 County"] == [expected]
    assert found["0 County"] == ["Province", "PopulatedPlace"]  # one source says both


def test_what_follows_a_comma_does_not_say_what_a_place_is():
    stated = {f"Town {n}, Alberta": ["Province", "Settlement"] for n in range(30)}
    stated["Banff, Alberta"] = ["Settlement"]
    assert meant(stated)["Banff, Alberta"] == ["Settlement"]


@pytest.mark.parametrize(
    ("told", "stated", "left"),
    [
        ("City", ["AdministrativeRegion", "Organisation"], ["Organisation"]),
        ("Settlement", ["Province"], []),
        ("Province", ["City", "Settlement"], []),
        ("AdministrativeRegion", ["Settlement", "Country"], ["Country"]),
        ("Municipality", ["City"], ["City"]),  # a town by its rank
        ("City", ["Settlement"], ["Settlement"]),
        ("Organisation", ["Country", "City"], ["City"]),
        ("Country", ["Organisation"], ["Organisation"]),
    ],
)
def test_first_sentences_tell_cities_from_regions(told, stated, left):
    found = meant({"Banff": stated, "Ulm": stated}, told={"Banff": told})
    assert found == {"Banff": [*left, told], "Ulm": meant({"Ulm": stated})["Ulm"]}


def test_classes_without_regions():
    tree = ClassTree({"Place": [], "Settlement": ["Place"]})
    found = meant({"Alberta": ["Settlement"]}, INSIDE, Hierarchy(tree.names, tree))
    assert found == {"Alberta": ["Settlement"]}


def test_endings():
    titles = ["Blur (English band)", "Ulm, Montana", "Pacific Ocean", "Rome", "東京", "A (b) c"]
    assert endings(pa.array(titles)).to_pylist() == [
        "(band",
        ", Montana",
        "ocean",
        "rome",
        "東京",
        "c",
    ]
    assert endings(pa.array([], pa.string())).to_pylist() == []
