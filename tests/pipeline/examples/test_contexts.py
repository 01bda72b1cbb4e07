"""Names that are titles of other pages: what is learnt from links, and how names are judged."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from nerbert.storage.places import Place
from ontology.classes import ClassTree
from ontology.titles import title_keys
from ontology.voting.building import Facts, build
from pipeline.examples.contexts import (
    CONTEXTS,
    Contexts,
    contexts,
    features_of,
    sample_bound,
    train_contexts,
)

TREE = ClassTree.shipped()
TOWNS = [f"Town{number}" for number in range(40)]
PEOPLE = [f"Ann{number}" for number in range(40)]
EVERY = np.uint64(2**64 - 1)


def table():
    classes = {**dict.fromkeys(TOWNS, "City"), **dict.fromkeys(PEOPLE, "Scientist")}
    keys = title_keys(classes)
    names = ["City", "Scientist"]
    indices = np.array([names.index(cls) for cls in classes.values()], np.int32)
    nothing = Facts(keys, [], np.full(len(keys), -1, np.int32))
    return build(nothing, [Facts(keys, names, indices)], TREE).table


def some_pages():
    """Texts with links: (text, spans)."""
    pages = []
    for town, person in zip(TOWNS, PEOPLE, strict=True):
        text = f"He went to {town} soon. It was written by {person} alone. See {town} and Nothing."
        spans = [(text.index(name), text.index(name) + len(name)) for name in (town, person)]
        again, last = text.rindex(town), text.index("Nothing")
        pages.append((text, [*spans, (again, again + len(town)), (last, last + 7)]))
    return pages


def rows_of(pages, entities, bound=EVERY):
    texts = [text for text, _ in pages]
    links = [(row, *span) for row, (_, spans) in enumerate(pages) for span in spans]
    spans = tuple(np.array(column, np.int64) for column in zip(*links, strict=True))
    surfaces = [texts[row][start:end] for row, start, end in links]
    titles = pa.array([f"Page {row}" for row in range(len(pages))])
    return contexts(texts, titles, spans, surfaces, entities.lookup(surfaces), entities, bound)


def test_links_one_by_one():
    """By hand: the first link of each text on a page, if it leads to a page with a class."""
    entities = table()
    pages = some_pages()
    expected = []
    for row, (text, spans) in enumerate(pages):
        for start, end in spans[:2]:
            entity = int(entities.lookup([text[start:end]])[0])
            expected.append((f"Page {row}", entity, len(features_of(text, start, end))))
    batch = rows_of(pages, entities)
    assert batch.schema == CONTEXTS
    assert batch.column("page").to_pylist() == title_keys([page for page, *_ in expected]).tolist()
    assert batch.column("entity").to_pylist() == [entity for _, entity, _ in expected]
    assert batch.column("titled").to_pylist() == [entity for _, entity, _ in expected]
    assert [len(row) for row in batch.column("features")] == [size for *_, size in expected]


def test_a_sample_is_a_part_of_the_whole():
    entities = table()
    whole = rows_of(some_pages(), entities).to_pylist()
    few = rows_of(some_pages(), entities, np.uint64(2**62)).to_pylist()
    assert 5 < len(few) < len(whole) / 2
    assert [row for row in whole if row in few] == few


@pytest.mark.parametrize(("typed", "share"), [(0, 1.0), (9_999, 1.0), (40_000, 0.25)])
def test_the_size_of_the_sample(typed, share):
    known = SimpleNamespace(mentions={"City": typed, "ENTITY": 10**6})
    assert int(sample_bound(known)) / 2**64 == pytest.approx(share)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = Place(tmp_path_factory.mktemp("examples"))
    plan = SimpleNamespace(tree=TREE, examples=SimpleNamespace(path=folder))
    entities = table()
    sample = pa.Table.from_batches([rows_of(some_pages(), entities)])
    return folder, train_contexts(plan, sample, entities)


def test_names_are_judged_by_the_words_around_them(trained):
    folder, counts = trained
    assert counts == {"links": 80, "kept": 80, "right": 80}
    model = Contexts.open(folder)
    texts = ["He went to Paris soon.", "It was written by Paris alone."]
    features = [features_of(text, *_span(text, "Paris")) for text in texts]
    for kind, expected in (("Place", [True, False]), ("Person", [False, True])):
        borne_out = model.bear_out([kind] * 2, features, ["Page 1", "Elsewhere"])
        assert borne_out.tolist() == expected
    assert model.bear_out(["Language"] * 2, features, ["X", "Y"]).tolist() == [False, False]
    assert model.bear_out([], [], []).tolist() == []


def _span(text, name):
    return text.index(name), text.index(name) + len(name)


def test_too_few_links_bear_nothing_out(tmp_path):
    plan = SimpleNamespace(tree=TREE, examples=SimpleNamespace(path=Place(tmp_path)))
    entities = table()
    sample = pa.Table.from_batches([rows_of(some_pages()[:4], entities)])
    assert train_contexts(plan, sample, entities) == {"links": 8, "kept": 0, "right": 0}
    assert Place(tmp_path / "contexts.npz").read_bytes() == b""
    features = features_of("in Ulm", 3, 6)
    for model in (Contexts.open(Place(tmp_path)), Contexts.open(Place(tmp_path / "none"))):
        assert model.bear_out(["Place"], [features], ["X"]).tolist() == [False]
