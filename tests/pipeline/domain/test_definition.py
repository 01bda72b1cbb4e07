import fnmatch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerbert.errors import UserError
from ontology.classes import ClassTree
from pipeline.domain import definition as domains
from pipeline.domain.category_graph import EDGES, Graph
from pipeline.domain.report import LevelSize, level_sizes

NAMES = "abcdefgh"


def graph(rows):
    return Graph(
        pa.Table.from_pylist(
            [dict(zip(EDGES.names, row, strict=True)) for row in rows], schema=EDGES
        )
    )


def reached(table):
    return {row["name"]: row["depth"] for row in table.to_pylist()}


def step_by_step(edges, roots, depth, skip):
    """The same walk, one category after the other."""
    found = dict.fromkeys(roots, 0)
    for step in range(1, depth + 1):
        for child, parent in edges:
            entered = not any(fnmatch.fnmatchcase(child, pattern) for pattern in skip)
            if found.get(parent) == step - 1 and child not in found and entered:
                found[child] = step
    return found


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), min_size=1, max_size=25),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True),
    st.integers(0, 4),
    st.lists(st.sampled_from(["c", "[ab]", "g*"]), max_size=2),
)
def test_walk_is_breadth_first(edges, roots, depth, skip):
    every = [(name, None, "used") for name in NAMES]
    walked = graph([*every, *((a, b, "page") for a, b in edges)]).walk(roots, depth, skip)
    assert reached(walked) == step_by_step(edges, roots, depth, skip)
    rows = walked.to_pylist()
    assert [row["depth"] for row in rows] == sorted(row["depth"] for row in rows)
    depths = reached(walked)
    for row in rows:
        assert (row["parent"] is None) == (row["depth"] == 0)
        if row["parent"] is not None:
            assert (row["name"], row["parent"]) in edges
            assert depths[row["parent"]] == row["depth"] - 1


def test_redirects_count_as_what_they_lead_to():
    walked = graph(
        [
            ("Songs", "Music", "page"),
            ("Old songs", "Songs", "redirect"),
            ("Ballads", "Old songs", "page"),
            ("Tunes", "Old songs", "redirect"),
            ("X", "Y", "redirect"),
            ("Y", "X", "redirect"),
            ("Z", None, "page"),
        ]
    ).walk(["Music"], 2, ())
    assert reached(walked) == {"Music": 0, "Songs": 1, "Old songs": 1, "Tunes": 1, "Ballads": 2}
    alias = graph([("A", "B", "redirect"), ("C", "B", "page")]).walk(["A", "B", "C"], 1, ())
    assert {row["name"]: row["root"] for row in alias.to_pylist()} == {"A": "A", "B": "A", "C": "C"}


def test_unknown_roots_and_no_category_pages():
    used = [("Musicians", None, "used"), ("Music", None, "used")]
    with pytest.raises(UserError, match=r"no wiki category 'Musics'.*did you mean 'Music'"):
        graph(used).walk(["Musics"], 0, ())
    with pytest.raises(UserError, match="hold no category pages"):
        graph(used).walk(["Music"], 1, ())
    assert reached(graph(used).walk(["Music"], 0, ())) == {"Music": 0}


@pytest.mark.parametrize("name", domains.names())
def test_shipped_domains_fit_the_ontology(name):
    domain = domains.load(name)
    domain.check(ClassTree.shipped())
    assert domain.roots
    assert domain.special
    assert domain.depth == 4


def test_most_specific_type_wins():
    politics, tree = domains.load("politics").categories, ClassTree.shipped()
    found = [politics.category(name, tree) for name in ("Senator", "Person", "Country", "Town")]
    assert found == ["politician", "person", "country", "location"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("roots = 3", "roots = 3: give a list"),
        ("roots = ['A']\nfoo = 1", "own.toml: unknown option 'foo'"),
        ("roots = ['A']\ndepth = '4'", "depth = '4': give a whole number"),
        ("roots = ['A']\ntypes = 3", r"types: write type = \[.Class., ...\]"),
        ("special = ['x']", "own.toml: roots is missing"),
        ("roots = [", "not valid TOML"),
        ("roots = ['A']\nspecial = ['x']", "special type 'x' has no classes"),
    ],
)
def test_bad_domain_files(tmp_path, text, message):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        domains.load(str(path)).check(ClassTree.shipped())


def test_unknown_domains_and_classes():
    with pytest.raises(UserError, match="did you mean music"):
        domains.load("musik")
    domain = domains.Domain("x", "X", ("A",)).changed((), None, (), ["Bannd"])
    with pytest.raises(UserError, match="no class Bannd; did you mean Band"):
        domain.check(ClassTree.shipped())


def test_integrated_is_entity_and_task_twice():
    counts = {
        "domain tokens": 100,
        "domain sentences": 10,
        "entity tokens": 40,
        "entity sentences": 3,
        "task tokens": 5,
        "task sentences": 1,
    }
    sizes = level_sizes(counts)
    assert sizes["integrated"] == LevelSize(sentences=5, tokens=50, share=0.5)
    assert sizes["task"].share == 0.05
    assert level_sizes({})["domain"] == LevelSize(sentences=0, tokens=0, share=0.0)
