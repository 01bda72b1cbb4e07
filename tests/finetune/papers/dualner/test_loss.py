"""The terms of the objective, by hand."""

import itertools
import math

import pytest

from tests.helpers.lazy import lazy

loss_module = lazy("finetune.papers.dualner.loss")
span_head = lazy("finetune.papers.dualner.spans")
torch = lazy("torch")

TAGS = 3  # one type: O, B, I; then none and the type, for starts and for ends


def logsum(values):
    return math.log(sum(math.exp(value) for value in values))


SCORES = [
    [
        [0.0, 1.0, 2.0, 0.5, 1.5, 2.0, 0.0],
        [1.0, 0.0, 3.0, 1.0, 0.0, 0.0, 1.0],
        [2.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
    ]
]
"""Three words: scores of O, B, I; of none and start; of none and end."""


def by_hand(labels):
    """Cross entropy of (tag, start, end) of each word."""
    total = 0.0
    for row, (tag, start, end) in zip(SCORES[0], labels, strict=True):
        total += logsum(row[:3]) - row[tag]
        total += logsum(row[3:5]) - row[3 + start]
        total += logsum(row[5:]) - row[5 + end]
    return total


def test_multitask_loss_by_hand():
    """A mention of the first two words."""
    mask = torch.ones(1, 3, dtype=torch.bool)
    loss = loss_module.gold_loss(
        torch.tensor(SCORES), torch.tensor([[1, 2, 0]]), mask, ("sequence", "span")
    )
    assert loss.item() == pytest.approx(by_hand([(1, 1, 0), (2, 0, 1), (0, 0, 0)]), rel=1e-5)
    parts = [
        loss_module.gold_loss(scores, torch.tensor([[1, 2, 0]]), mask, (head,)).item()
        for head, scores in (
            ("sequence", torch.tensor(SCORES)[..., :3]),
            ("span", torch.tensor(SCORES)),
        )
    ]
    assert sum(parts) == pytest.approx(loss.item(), rel=1e-5)
    half = loss_module.gold_loss(
        torch.tensor(SCORES),
        torch.tensor([[1, 2, 0]]),
        mask & (torch.tensor(SCORES)[..., 0] < 2),
        ("span",),
    )
    assert half.item() < parts[1]
    assert (
        loss_module.gold_loss(
            torch.tensor(SCORES), torch.tensor([[1, 2, 0]]), mask & False, ("span",)
        ).item()
        == 0
    )


def test_each_head_teaches_the_other():
    """By tags: I, I, O, so no mention. By spans: start at the first word, end at the second."""
    tags, starts, ends = span_head.labels_of(torch.tensor(SCORES), TAGS)
    assert tags.tolist() == [[1, 2, 0]]
    assert starts.tolist() == ends.tolist() == [[0, 0, 0]]
    mask = torch.ones(1, 3, dtype=torch.bool)
    loss = loss_module.pseudo_loss(torch.tensor(SCORES), (tags, starts, ends), mask)
    assert loss.item() == pytest.approx(by_hand([(1, 0, 0), (2, 0, 0), (0, 0, 0)]), rel=1e-5)


def test_self_teaching_is_the_divergence_of_each_head():
    mask = torch.ones(1, 3, dtype=torch.bool)
    teacher = torch.tensor(SCORES).flip(1)
    wanted = 0.0
    for own, other in zip(SCORES[0], teacher[0].tolist(), strict=True):
        for first, stop in ((0, 3), (3, 5), (5, 7)):
            one, two = own[first:stop], other[first:stop]
            for a, b in zip(one, two, strict=True):
                chance = math.exp(b - logsum(two))
                wanted += chance * ((b - logsum(two)) - (a - logsum(one)))
    assert loss_module.self_loss(torch.tensor(SCORES), teacher, mask).item() == pytest.approx(
        wanted, rel=1e-5
    )
    assert loss_module.self_loss(
        torch.tensor(SCORES), torch.tensor(SCORES), mask
    ).item() == pytest.approx(0, abs=1e-6)


def test_regularisation_by_hand():
    """One mention: the first two words. Its vector: the first word's, then the second's."""
    hidden = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    vectors, types, languages = loss_module.entities(
        torch.tensor(SCORES), hidden, mask, torch.tensor([4])
    )
    assert vectors.tolist() == [[1, 2, 3, 4]]
    assert (types.tolist(), languages.tolist()) == ([1], [4])
    assert loss_module.entities(torch.tensor(SCORES), hidden, mask & False, torch.tensor([4]))[
        0
    ].shape == (0, 4)
    vectors = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0], [5.0, 5.0]])
    types, languages = torch.tensor([1, 1, 1, 2]), torch.tensor([0, 0, 1, 1])
    # Type 1: the first language's mean is (1, 0), the second's (1, 2); type 2 is in one alone.
    assert distance(vectors, types, languages) == pytest.approx(2.0)
    assert distance(vectors, types, languages * 0) == 0


def distance(vectors, types, languages):
    shape = (int(types.max()) + 1, int(languages.max()) + 1)
    return loss_module.regularisation(*loss_module.sums(vectors, types, languages, shape)).item()


def test_regularisation_by_loops():
    draw = torch.Generator().manual_seed(0)
    for _ in range(20):
        vectors = torch.randn(30, 5, generator=draw)
        types = torch.randint(1, 4, (30,), generator=draw)
        languages = torch.randint(0, 6, (30,), generator=draw)
        wanted = []
        for kind in range(1, 4):
            means = []
            for language in range(6):
                rows = [n for n in range(30) if types[n] == kind and languages[n] == language]
                if rows:
                    means.append(vectors[rows].mean(0))
            for one, other in itertools.combinations(means, 2):
                wanted.append(float(((one - other) ** 2).mean()))
        assert distance(vectors, types, languages) == pytest.approx(sum(wanted) / len(wanted))
