import pytest

from ontology.categories import ENTITY, SHIPPED, CategorySet
from ontology.classes import ClassTree

TREE = ClassTree.shipped()


@pytest.mark.parametrize(
    ("name", "size"), [("nerbert315", 315), ("nerbert212", 212), ("coarse4", 4)]
)
def test_sizes(name, size):
    assert len(CategorySet.load(name).names(TREE)) == size


def test_315_names_are_the_papers(shared):
    names = (shared.parent / "design" / "nerbert315.txt").read_text().split()
    assert sorted(CategorySet.load("nerbert315").names(TREE)) == sorted(names)


@pytest.mark.parametrize("coarser", ["nerbert212", "coarse4"])
def test_merges_are_functions_of_the_315(coarser):
    fine, coarse = CategorySet.load("nerbert315"), CategorySet.load(coarser)
    merged: dict[str, set[str]] = {}
    for cls in TREE.names:
        merged.setdefault(fine.category(cls, TREE), set()).add(coarse.category(cls, TREE))
    assert all(len(found) == 1 for found in merged.values())


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        ("Book", ("Book", "writtenwork", "writtenwork", ENTITY)),
        ("SoccerPlayer", ("SoccerPlayer", "soccerplayer", "athlete", "person")),
        ("GolfTournament", ("GolfTournament", "golftournament", "sportstournament", ENTITY)),
        ("BodyOfWater", ("BodyOfWater", "bodyofwater", "bodyofwater", "location")),
        ("Award", ("Award", "award", "award", ENTITY)),
        ("DartsPlayer", ("DartsPlayer", "dartplayer", "athlete", "person")),
        (
            "AmericanFootballTeam",
            ("AmericanFootballTeam", "footballteam", "sportsteam", "organization"),
        ),
        ("Stadium", ("Stadium", "stadium", "venue", "location")),
        ("Hospital", ("Hospital", "hospital", "building", "location")),
        ("Architect", ("Architect", "architect", "architect", "person")),
        (None, (ENTITY,) * 4),
    ],
)
def test_category_of_class(cls, expected):
    assert tuple(CategorySet.load(name).category(cls, TREE) for name in SHIPPED) == expected


def test_users_table(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("# mine\nAgent\tWHO\n\nPlace\tWHERE\nCity\tCITY\n")
    mine = CategorySet.load(str(path))
    found = [mine.category(cls, TREE) for cls in ("SoccerClub", "Town", "City", "Disease")]
    assert found == ["WHO", "WHERE", "CITY", ENTITY]


@pytest.mark.parametrize("text", ["Agent WHO\n", "Agent\tWHO KNOWS\n", "", "Agent\t\n"])
def test_bad_table_names_file(tmp_path, text):
    path = tmp_path / "mine.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"mine\.tsv"):
        CategorySet.load(str(path))


def test_unknown_set():
    with pytest.raises(ValueError, match="unknown category set 'nope'"):
        CategorySet.load("nope")
