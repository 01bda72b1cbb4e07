import random

from nerbert.storage.places import Place
from ontology.classes import ROOT, ClassTree
from ontology.sources.make_tables import equivalents
from ontology.sources.types import WikidataClasses, shipped

TREE = ClassTree.shipped()


def test_the_tables_fit_the_ontology():
    assert len(shipped()) > 450
    for qid, name in shipped().items():
        assert qid[0] == "Q"
        assert qid[1:].isdigit()
        assert name == ROOT or name in TREE


def test_the_shipped_table_is_what_the_ontology_says(shared):
    found = dict(equivalents(Place(shared / "dbpedia" / "ontology.owl.xz"), TREE))
    assert found.items() <= shipped().items()
    assert len(found) == 333


def test_nearest_superclass():
    above = {
        "Q1000000001": ["Q1000000002"],  # a kind of city, by two steps
        "Q1000000002": ["Q515", "Q1000000003"],
        "Q1000000003": ["Q5"],
        "Q1000000004": ["Q1000000005"],  # a circle
        "Q1000000005": ["Q1000000004"],
        "Q1000000006": ["Q486972", "Q515"],  # a settlement and a city: the most specific
        "Q1000000007": ["Q35120"],  # an entity, which says nothing
    }
    classes = WikidataClasses(TREE, above)
    assert classes.class_of("Q515") == "City"
    assert classes.class_of("Q5") == "Person"
    assert classes.class_of("Q1000000001") == "City"
    assert classes.class_of("Q1000000004") is None
    assert classes.class_of("Q1000000006") == "City"
    assert classes.class_of("Q1000000007") is None
    assert classes.class_of("Q4167410") is None  # disambiguation page
    assert classes.class_of("Q999999999") is None


def test_nearest_superclass_by_brute_force():
    """All paths upwards, by length, on random graphs."""
    draw = random.Random(0)
    items = [f"Q{1_000_000_000 + n}" for n in range(30)]
    mapped = ["Q515", "Q5", "Q11424", "Q35120", "Q486972"]
    for _ in range(30):
        above = {q: draw.sample(items + mapped, draw.randrange(3)) for q in items}
        classes = WikidataClasses(TREE, above)
        for start in items:
            best, reached = None, {start: 0}
            for _ in range(len(items)):  # Bellman and Ford
                for below, ups in above.items():
                    for up in ups if below in reached else ():
                        reached[up] = min(reached.get(up, 99), reached[below] + 1)
            ends = {q: n for q, n in reached.items() if q in shipped()}
            # A path ends at the first class of the table, so only those at the least distance count.
            if ends:
                least = min(ends.values())
                names = {shipped()[q] for q, n in ends.items() if n == least} - {ROOT}
                best = TREE.most_specific(names)
            assert classes.class_of(start) == best
