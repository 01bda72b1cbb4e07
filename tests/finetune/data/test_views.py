import pytest

from finetune.data.views import LabelMap, View, map_to_target_types, nearest, renamed, same_name
from nerbert.errors import UserError
from nerbert.text.columns import Sentence

ROW = Sentence(["Ada", "in", "ROM"], ["B-PER", "O", "B-Location"])


def test_unified_names_of_many_spellings():
    names = LabelMap.load("unified")
    for old, new in {
        "LOC": "location",
        "Location": "location",
        "location": "location",
        "PSN": "person",
        "ORG": "organization",
        "organisation": "organization",
        "MISC": "other",
        "Work_of-art": "work",
        "GPE": "geopolitical",
        "geo-loc": "geopolitical",
        "politician": "politician",
    }.items():
        assert names.type(old) == new


def test_views():
    assert View().of([ROW]) == [ROW]
    assert View("unified", True).of([ROW]) == [
        Sentence(["ada", "in", "rom"], ["B-person", "O", "B-location"])
    ]


def test_maps_of_users(tmp_path):
    (tmp_path / "map.toml").write_text('name = ["per", "Person"]\nO = ["location"]\n')
    assert View(str(tmp_path / "map.toml")).of([ROW])[0].tags == ["B-name", "O", "O"]
    for text, message in (
        ('a = ["x"]\nb = ["X"]', "x is both a and b"),
        ('a = "x"', r'a: write a = \["old", \.\.\.\]'),
        ("a = [", "use none, unified, or a TOML file"),
    ):
        (tmp_path / "bad.toml").write_text(text)
        with pytest.raises(UserError, match=message):
            LabelMap.load(str(tmp_path / "bad.toml"))
    with pytest.raises(UserError, match=r"none\.toml"):
        LabelMap.load("none.toml")


def test_types_of_the_ontology_go_to_their_nearest_ancestor():
    names = LabelMap.load("unified")
    find = map_to_target_types(["person", "politician", "LOC", "misc"], names)
    assert find("Politician") == "politician"
    assert find("Senator") == "politician"
    assert find("SoccerPlayer") == "person"
    assert find("City") == "O"  # LOC is not the target's name: types come under their new names
    find = map_to_target_types(["person", "location"], names)
    assert [find(name) for name in ("City", "PER", "Place", "Band", "ENTITY")] == [
        "location",
        "person",
        "location",
        "O",
        "O",
    ]
    assert renamed(["B-City", "I-City", "B-Band"], find) == ["B-location", "I-location", "O"]


def test_which_rows_of_a_pretrained_head_a_type_starts_from():
    types = ["Person", "PoliticalParty", "City", "Mountain", "ENTITY"]
    assert nearest("politicalparty", types) == ["PoliticalParty"]
    assert nearest("PER", types) == nearest("politician", types) == ["Person"]
    assert nearest("LOC", types) == ["City", "Mountain"]
    assert nearest("algorithm", types) == ["ENTITY"]
    assert nearest("algorithm", types[:-1]) == []
    assert same_name("City", types) == ["City"]
    assert same_name("city", types) == []
