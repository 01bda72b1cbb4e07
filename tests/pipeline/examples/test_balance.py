"""Balancing, on a simulated corpus."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from pipeline.examples import balance, corpus_files
from pipeline.examples.counts import SelectionReport, Statistics
from pipeline.settings import CorpusSettings


@pytest.fixture(scope="module")
def simulated():
    """Label ids of 40,000 sentences over 60 categories with Zipf frequencies and topics."""
    draw = np.random.default_rng(1)
    n_categories = 60
    share = 1 / np.arange(1, n_categories + 1) ** 1.3
    share /= share.sum()
    sentences = []
    for _ in range(40_000):
        topic = draw.choice(n_categories, p=share)
        others = draw.choice(n_categories, draw.poisson(1.2), p=share)
        sentences.append([1 + 2 * int(c) for c in (topic, *others)])
    return pa.array(sentences, pa.list_(pa.int32())), n_categories


def counts(held, n_categories, copies=None):
    weight = 1 if copies is None else copies[held.rows]
    mentions = np.bincount(held.categories, held.mentions * weight, n_categories).astype(int)
    return dict(enumerate(mentions.tolist()))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7, 1.0])
def test_calibrated_reaches_the_exponent(simulated, alpha):
    tags, n = simulated
    held, times = balance.signatures([tags.slice(0, 15_000), tags.slice(15_000)], n)
    logs, scale, rounds = balance.calibrate(held, times, n, alpha)
    assert rounds < balance.MAX_ROUNDS
    weights = balance.Weights("calibrated", tuple(logs.tolist()), scale)
    held = balance.CategoryCounts.of_tags(tags, n)
    copies = balance.whole_copies(weights.expected(held), [str(i) for i in range(len(tags))], 0)
    achieved = balance.exponent(counts(held, n), counts(held, n, copies))
    assert abs(achieved - alpha) < 0.02
    assert abs(copies.sum() / len(tags) - 1) < 0.02


def test_category_first_gives_the_expected_copies(simulated):
    tags, n = simulated
    held = balance.CategoryCounts.of_tags(tags, n)
    mentions = counts(held, n)
    holding = dict(enumerate(np.bincount(held.categories, minlength=n).tolist()))
    per_category = balance.category_first(range(n), mentions, holding, len(tags), 0.7)
    expected = balance.Weights("category-first", tuple(per_category)).expected(held)
    power = {c: m**0.7 for c, m in mentions.items() if m}
    total = sum(power.values())
    for index, labels in enumerate(tags.to_pylist()[:300]):
        categories = {(label - 1) // 2 for label in labels}
        by_hand = len(tags) * sum(power[c] / total / holding[c] for c in categories)
        assert expected[index] == pytest.approx(by_hand)
    assert expected.sum() == pytest.approx(len(tags))
    keys = [f"{i}:0:0" for i in range(len(tags))]
    copies = balance.whole_copies(expected, keys, seed=3)
    assert ((copies == np.floor(expected)) | (copies == np.floor(expected) + 1)).all()
    rest = expected - np.floor(expected)
    deviation = copies.sum() - expected.sum()
    assert abs(deviation) < 4 * np.sqrt((rest * (1 - rest)).sum())
    np.testing.assert_array_equal(copies, balance.whole_copies(expected, keys, seed=3))
    assert (copies != balance.whole_copies(expected, keys, seed=4)).any()


def test_sampling_weights():
    weights = balance.sampling_weights({"a": 1, "b": 128}, 0.5)
    assert weights["b"] / weights["a"] == pytest.approx(128**0.5)
    assert sum(weights.values()) == pytest.approx(1)
    for bad in ({}, {"a": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            balance.sampling_weights(bad, 0.5)
    with pytest.raises(ValueError, match="alpha"):
        balance.sampling_weights({"a": 1}, 1.5)


@pytest.mark.parametrize("mode", ["category-first", "calibrated"])
def test_sentences_of_categories_without_support_are_not_repeated(mode, monkeypatch):
    names = ["ENTITY", "Band", "City"]
    tags = pa.array([[3]] * 2 + [[5]] * 90 + [[1]] * 8, pa.list_(pa.int32()))
    selected = SelectionReport()
    rows = pa.record_batch([tags, [["x"]] * 100], ["ner_tags", "tokens"])
    selected.count("train", rows, names)
    mentions = dict(zip(names, (8, 2, 90), strict=True))
    known = Statistics(names, {}, mentions, {"Band": 1, "City": 90}, {})
    monkeypatch.setattr(corpus_files, "example_part", lambda *_: "")
    batch = pa.record_batch([tags], ["ner_tags"])
    monkeypatch.setattr(corpus_files.parts, "read_batches", lambda *_: [batch])

    def copies(least):
        settings = CorpusSettings(balance=mode, alpha=0.7, min_support=least, every_sentence=False)
        plan = SimpleNamespace(settings=settings)
        weights = corpus_files.balancing_weights(plan, known, selected, [""])
        held = balance.CategoryCounts.of_tags(tags, len(names))
        return weights.expected(held)[[0, 2, 92]]

    assert copies(0.5)[0] > 2
    assert copies(0.6) == pytest.approx([1, *copies(0.5)[1:]])


def test_every_sentence_stays_at_least_once():
    tags = pa.array([[3]] * 2 + [[5]] * 90 + [[3, 5]], pa.list_(pa.int32()))
    held = balance.CategoryCounts.of_tags(tags, 3)
    logs = tuple(np.log([1.0, 4.0, 0.5]).tolist())
    for few in (
        balance.Weights("category-first", (0.0, 4.0, 0.5)),
        balance.Weights("calibrated", logs),
    ):
        every = replace(few, least=1)
        lost, kept = few.expected(held), every.expected(held)
        assert lost.min() < 1
        assert kept.tolist() == [max(1, value) for value in lost]
        keys = [f"1:{row}:0" for row in range(len(lost))]
        assert balance.whole_copies(kept, keys, 0).min() == 1
    assert balance.Weights("none", ()).expected(held).tolist() == [1] * 93
