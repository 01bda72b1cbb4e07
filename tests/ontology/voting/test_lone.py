"""Classes that one voter states alone."""

import numpy as np
import pytest

from ontology.classes import ClassTree
from ontology.entity_table import NO_CLASS
from ontology.voting.lone import LinkFeatures, doubt
from ontology.voting.page_features import Pages, link_features, title_features
from ontology.voting.votes import Decision

TREE = ClassTree(
    {"Agent": [], "Person": ["Agent"], "Band": ["Agent"], "Place": [], "City": ["Place"]}
)
KINDS = ["Person", "Place"]
GOOD, BAD, OTHER = range(3)


def decision(n, random):
    """Entities 0 to n-1 that two voters know, then n that BAD states alone, n that GOOD does.

    Half of what each states alone is of the other kind.
    """
    truth = random.integers(0, 2, 3 * n)
    stated = truth.copy()
    alone = np.arange(3 * n) >= n
    stated[alone] ^= random.integers(0, 2, 2 * n)
    voters = np.repeat([1 << GOOD | 1 << BAD, 1 << BAD, 1 << GOOD], n).astype(np.uint32)
    support = np.full(3 * n, 100, np.uint8)
    return truth, stated, Decision(stated.astype(np.int16), support, voters)


def evidence(truth, random):
    """Ten features of each title: nine in ten are those of its kind."""
    keys = np.sort(random.integers(1, 1 << 63, 2 * len(truth)).astype(np.uint64))
    entity_of = np.tile(np.arange(len(truth)), 2).astype(np.int32)  # two titles each
    kind = truth[entity_of][:, None] ^ (random.random((len(keys), 10)) < 0.1)
    features = np.sort(random.integers(0, 40, kind.shape) + 40 * kind, axis=1)
    rows = {
        key: np.unique(row).astype(np.int32)
        for key, row in zip(keys.tolist(), features, strict=True)
    }

    def read(wanted):
        found = [rows[key] for key in wanted.tolist()]
        return Pages(wanted, np.concatenate(found), np.array([len(row) for row in found]))

    return (keys, entity_of), LinkFeatures(keys, keys, read)


def weights(good=0.98, bad=0.8):
    return np.array([good, bad, 0.9]), np.array([1000, 1000, 0])


@pytest.mark.parametrize("seed", range(3))
def test_an_unreliable_voter_keeps_what_links_bear_out(seed):
    random = np.random.default_rng(seed)
    n = 200
    truth, stated, chosen = decision(n, random)
    titles, links = evidence(truth, random)
    found = doubt(chosen, KINDS, *weights(), titles, links, TREE, 0.95)
    assert (chosen.classes[:n] == stated[:n]).all()  # others know them, too
    assert (chosen.classes[2 * n :] == stated[2 * n :]).all()  # the voter is reliable
    kept = chosen.classes[n : 2 * n] != NO_CLASS
    right = stated[n : 2 * n] == truth[n : 2 * n]
    assert right[kept].mean() > 0.95
    assert kept[right].mean() > 0.9
    assert (chosen.support[n : 2 * n][~kept] == 0).all()
    assert found.keys() == {BAD}
    assert (found[BAD].entities, found[BAD].kept) == (n, kept.sum())
    assert found[BAD].right == pytest.approx(right.mean(), abs=0.1)


def test_no_voter_is_doubted_without_comparisons_or_links():
    random = np.random.default_rng(0)
    truth, stated, chosen = decision(50, random)
    titles, links = evidence(truth, random)
    weight, compared = weights()
    assert doubt(chosen, KINDS, weight, compared // 100, titles, links, TREE, 0.95) == {}
    none = Pages(np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int64))
    nothing = LinkFeatures(none.keys, none.keys, lambda keys: none)
    assert doubt(chosen, KINDS, weight, compared, titles, nothing, TREE, 0.95) == {}
    assert (chosen.classes == stated).all()


def test_pages_that_are_only_linked_are_judged_by_their_like():
    """Where no other voter knows one of them, what is alone stays."""
    random = np.random.default_rng(0)
    n = 200
    truth, stated, chosen = decision(n, random)
    titles, links = evidence(truth, random)
    keys, entity_of = titles
    confirmed = LinkFeatures(links.keys, keys[entity_of < n], links.read)
    assert doubt(chosen, KINDS, *weights(), titles, confirmed, TREE, 0.95) == {}
    assert (chosen.classes == stated).all()
    half = LinkFeatures(links.keys, keys[entity_of % 2 == 0], links.read)
    found = doubt(chosen, KINDS, *weights(), titles, half, TREE, 0.95)
    kept = chosen.classes[n : 2 * n] != NO_CLASS
    assert (stated[n : 2 * n] == truth[n : 2 * n])[kept].mean() > 0.95
    assert (found[BAD].entities, found[BAD].kept) == (n, kept.sum())


def test_a_kind_that_no_other_voter_knows_is_no_class():
    random = np.random.default_rng(1)
    truth, _, chosen = decision(100, random)
    titles, links = evidence(truth, random)
    chosen.classes[100:110] = 2
    doubt(chosen, [*KINDS, "Food"], *weights(), titles, links, TREE, 0.95)
    assert (chosen.classes[100:110] == NO_CLASS).all()


def test_at_most_so_many_known_titles_are_read(monkeypatch):
    monkeypatch.setattr("ontology.voting.lone.MOST_PAGES", 60)
    random = np.random.default_rng(2)
    truth, _, chosen = decision(200, random)
    titles, links = evidence(truth, random)
    asked = []
    counted = LinkFeatures(
        links.keys, links.of_dump, lambda keys: asked.append(keys) or links.read(keys)
    )
    assert doubt(chosen, KINDS, *weights(), titles, counted, TREE, 0.95)
    lone = titles[0][np.isin(titles[1], np.arange(200, 400))]
    assert np.isin(lone, asked[0]).all()
    assert len(asked[0]) == len(lone) + 60


def test_features_of_a_link():
    text = "It lies in Upper Egypt near Luxor, which is old."
    start = text.index("Luxor")
    found = link_features(text, start, start + 5)
    wanted = {"before 0:near", "before:egypt near", "after:which is", "after 1:is"}
    assert wanted <= found
    assert link_features("X", 0, 1) == {"before:", "after:"}


def test_features_of_a_title():
    found = title_features("Luxor Temple (ruin)")
    assert found >= {"title:luxor", "title ends:temple", "suffix:ple", "bracket:ruin"}
    assert "title:x" in title_features("X")
