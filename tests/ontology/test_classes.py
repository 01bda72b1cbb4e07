from pathlib import Path

import pytest
from rdflib import OWL, RDF, RDFS, Graph, URIRef

from nerbert.storage.places import Place
from ontology.classes import NAMESPACE, ClassTree

ROOT = Path(__file__).parent.parent.parent
DIAMOND = ClassTree({"A": [], "B": ["A"], "C": ["A"], "D": ["B"], "E": ["C", "D", "owl:Thing"]})


def test_depth_is_the_longest_path():
    assert [DIAMOND.depth(name) for name in "ABCDE"] == [1, 2, 2, 3, 4]
    assert DIAMOND.depth("unknown") == -1


def test_depth_is_measured_below_agent():
    tree = ClassTree.shipped()
    kinds = ("Person", "Organisation", "Place", "Work", "Event", "Species", "Device")
    assert [tree.depth(name) for name in kinds] == [1] * len(kinds)
    assert (tree.depth("Agent"), tree.kind("Agent")) == (0, None)
    assert tree.depth("Country") > tree.depth("Person")
    assert [tree.kind(name) for name in ("SoccerPlayer", "Airport", "Band", "Insect")] == [
        "Person",
        "Place",
        "Organisation",
        "Species",
    ]


def test_ancestors_nearest_first():
    assert DIAMOND.ancestors("E") == ["C", "D", "A", "B"]
    assert DIAMOND.ancestors("A") == []


def test_most_specific_takes_first_name_of_equal_depth():
    assert DIAMOND.most_specific(["A", "C", "B"]) == "B"
    assert DIAMOND.most_specific(["A", "E", "unknown"]) == "E"
    assert DIAMOND.most_specific([]) is None


def test_circle_is_refused():
    with pytest.raises(ValueError, match="its own ancestor"):
        ClassTree({"A": ["B"], "B": ["A"]})


@pytest.mark.parametrize(
    ("name", "known"), [("City", "City"), ("Location", "Place"), ("city", "City"), ("Nope", None)]
)
def test_known_name(name, known):
    assert ClassTree.shipped().known_name(name) == known


@pytest.mark.parametrize("text", ["<rdf", "<a/>", ""])
def test_unreadable_ontology_names_the_file(tmp_path, text):
    path = tmp_path / "bad.owl"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"bad\.owl"):
        ClassTree.from_owl(str(path))


def test_shipped_tree_is_that_of_rdflib(shared):
    path = str(shared / "dbpedia" / "ontology.owl.xz")
    graph = Graph()
    with Place(path).open_decompressed() as file:
        graph.parse(file, format="xml")
    classes = {
        c
        for c in graph.subjects(RDF.type, OWL.Class)
        if isinstance(c, URIRef) and c.startswith(NAMESPACE)
    }
    corrections = (ROOT / "ontology" / "data" / "corrections.tsv").read_text(encoding="utf-8")
    for line in corrections.splitlines()[1:]:
        name, parents, reason = line.split("\t")
        assert reason.endswith(".")
        cls = URIRef(NAMESPACE + name)
        assert cls in classes
        graph.remove((cls, RDFS.subClassOf, None))
        for parent in parents.split():
            assert URIRef(NAMESPACE + parent) in classes
            graph.add((cls, RDFS.subClassOf, URIRef(NAMESPACE + parent)))
    tree = ClassTree.shipped()
    assert tree.names == sorted(c.removeprefix(NAMESPACE) for c in classes)
    for cls in classes:
        above = set(graph.transitive_objects(cls, RDFS.subClassOf)) - {cls}
        expected = {a.removeprefix(NAMESPACE) for a in above if a in classes}
        assert set(tree.ancestors(cls.removeprefix(NAMESPACE))) == expected


def test_corrections_apply_to_other_ontologies_that_have_the_classes():
    tree = ClassTree(
        {"Person": ["Animal"], "Animal": [], "Agent": [], "Hospital": ["Place"], "Place": []}
    )
    assert tree.parents("Person") == ("Agent",)
    assert tree.parents("Hospital") == ("Place",)  # there is no Building
