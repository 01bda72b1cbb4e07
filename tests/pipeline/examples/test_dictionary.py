"""The dictionary of a dump, against counts in plain Python."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from nerbert.storage.places import Place
from ontology.dictionary import Dictionary
from ontology.titles import title_keys
from pipeline.examples.dictionary import SURFACES, agreed, counted, dictionary_writer, merged


def some_links(seed, count=3000):
    """Links (text, entity) of a few texts, most of which lead to one entity."""
    draw = random.Random(seed)
    links = []
    for _ in range(count):
        text = draw.randrange(120)
        entity = text % 37 if draw.random() < 0.5 + 0.5 * (text % 2) else draw.randrange(-1, 40)
        links.append((f"Name {text}", entity))
    return links


def table_of(links):
    texts = [text for text, _ in links]
    entities = np.array([entity for _, entity in links], np.int32)
    return counted(texts, entities, pa.array([f"Page {entity}" for _, entity in links]))


def doubtful_by_hand(links, typed, title_of):
    """Titles of pages with a class, of whose links half, or several and a fifth, lead elsewhere."""
    doubtful = set()
    for text in {text for text, _ in links}:
        counts = Counter(entity for other, entity in links if other == text)
        own = title_of.get(text, -1)
        total = sum(counts.values())
        others = total - counts[own]
        if own >= 0 and typed[own] and (others >= total / 2 or others > max(1, total / 5)):
            doubtful.add(text)
    return doubtful


def by_hand(links, least, typed):
    """Text -> entity, for the texts that are in the dictionary."""
    found = {}
    for text in {text for text, _ in links}:
        counts = Counter(entity for other, entity in links if other == text)
        entity, times = counts.most_common(1)[0]
        total = sum(counts.values())
        if total >= least and times >= 0.8 * total and entity >= 0 and typed[entity]:
            found[text] = entity
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("pieces", [1, 4])
def test_against_counts_by_hand(tmp_path, seed, pieces):
    links = some_links(seed)
    typed = np.array([entity % 5 > 0 for entity in range(40)] + [False])
    tables = [table_of(links[start::pieces]) for start in range(pieces)]
    title_of = {f"Name {number}": number % 40 for number in range(0, 130, 2)}
    keys = dict(zip(title_keys(list(title_of)).tolist(), title_of.values(), strict=True))
    every = merged(tables)
    titled = np.array([keys.get(key, -1) for key in every.column("key").to_pylist()], np.int32)
    table = agreed(every, 20, typed, titled)
    assert table.column("key").to_pylist() == sorted(table.column("key").to_pylist())
    path = Place(tmp_path / "dictionary.arrow")
    with dictionary_writer(path, 25) as writer:
        writer.write_table(table)
    dictionary = Dictionary.open(path)
    texts = [f"Name {number}" for number in range(130)]
    rows = list(dictionary.lookup(texts))
    doubtful = {texts[row] for row, entity, *_ in rows if entity < 0}
    rows = [row for row in rows if row[1] >= 0]
    found = {texts[row]: (entity, title) for row, entity, title, _ in rows}
    counts = Counter(links)
    for row, entity, _, is_known in rows:
        assert is_known == (counts[texts[row], entity] >= 25)
    expected = by_hand(links, 20, typed)
    assert 5 < len(expected) < 100
    assert found == {text: (entity, f"Page {entity}") for text, entity in expected.items()}
    assert doubtful == doubtful_by_hand(links, typed, title_of) - expected.keys()
    assert len(doubtful) > 5
    assert len(dictionary) == len(expected) + len(doubtful)


def test_the_order_of_the_parts_does_not_matter():
    links = some_links(1)
    tables = [table_of(links[start::3]) for start in range(3)]
    assert merged(tables).equals(merged(tables[::-1]))
    assert merged(tables).equals(table_of(links))


def test_an_empty_dictionary():
    table = agreed(merged([]), 1, np.array([False]), np.zeros(0, np.int32))
    assert table.schema == SURFACES
    assert list(Dictionary(table).lookup(["Ulm"])) == []
    assert list(Dictionary(table).lookup([])) == []
