"""The field against brute force over all tag sequences."""

from itertools import pairwise, product

import pytest

from tests.helpers.lazy import lazy

crf_module = lazy("finetune.heads.crf")
torch = lazy("torch")

TAGS, LENGTH = 3, 4


@pytest.fixture
def crf():
    torch.manual_seed(0)
    field = crf_module.CRF(TAGS).double()
    with torch.no_grad():
        for parameter in field.parameters():
            parameter.normal_()
    return field


def score(field, emissions, tags):
    total = field.start_transitions[tags[0]] + field.end_transitions[tags[-1]]
    total = total + sum(emissions[place, tag] for place, tag in enumerate(tags))
    return total + sum(field.transitions[a, b] for a, b in pairwise(tags))


def every(length):
    return [list(tags) for tags in product(range(TAGS), repeat=length)]


@pytest.mark.parametrize("seed", range(20))
def test_likelihood_and_best_path(crf, seed):
    draw = torch.Generator().manual_seed(seed)
    emissions = torch.randn(5, LENGTH, TAGS, generator=draw, dtype=torch.double)
    lengths = torch.randint(1, LENGTH + 1, (5,), generator=draw).tolist()
    mask = torch.arange(LENGTH) < torch.tensor(lengths)[:, None]
    tags = torch.randint(0, TAGS, (5, LENGTH), generator=draw)
    found = crf(emissions, tags.where(mask, -100), mask)
    assert found.shape == (5,)
    for row, length in enumerate(lengths):
        scores = torch.stack([score(crf, emissions[row], path) for path in every(length)])
        gold = score(crf, emissions[row], tags[row, :length].tolist())
        assert torch.isclose(found[row], gold - scores.logsumexp(0))
        assert crf.decode(emissions, mask)[row] == every(length)[int(scores.argmax())]


def test_likelihoods_of_all_sequences_sum_to_one(crf):
    emissions = torch.randn(1, LENGTH, TAGS, dtype=torch.double)
    paths = torch.tensor(every(LENGTH))
    likelihoods = crf(emissions.expand(len(paths), -1, -1), paths)
    assert torch.isclose(likelihoods.exp().sum(), torch.tensor(1.0, dtype=torch.double))


def test_marginals(crf):
    emissions = torch.randn(2, LENGTH, TAGS, dtype=torch.double)
    mask = torch.tensor([[True] * LENGTH, [True, True, False, False]])
    found = crf.marginals(emissions, mask)
    for row, length in enumerate((LENGTH, 2)):
        weights = torch.stack([score(crf, emissions[row], path) for path in every(length)]).softmax(
            0
        )
        expected = torch.zeros(LENGTH, TAGS, dtype=torch.double)
        for path, weight in zip(every(length), weights, strict=True):
            expected[range(length), path] += weight
        assert torch.allclose(found[row], expected)


def test_gradients(crf):
    emissions = torch.randn(2, 3, TAGS, dtype=torch.double, requires_grad=True)
    tags = torch.tensor([[0, 1, 2], [2, 0, -100]])
    mask = tags >= 0
    assert torch.autograd.gradcheck(lambda e: crf(e, tags, mask), (emissions,))


def test_half_precision_is_finite():
    field = crf_module.CRF(5)
    emissions = torch.randn(2, 400, 5) * 50
    assert torch.isfinite(field(emissions, torch.zeros(2, 400, dtype=torch.long))).all()


@pytest.mark.parametrize(
    ("emissions", "mask", "message"),
    [
        ((2, 3, 4), (2, 3), "emissions"),
        ((2, 3), (2, 3), "emissions"),
        ((2, 3, TAGS), (2, 4), "mask"),
        ((2, 3, TAGS), None, "mask: true for at least the first position"),
    ],
)
def test_bad_shapes(emissions, mask, message):
    given = torch.ones(mask) if mask else torch.tensor([[1, 0, 1], [0, 1, 1]])
    with pytest.raises(ValueError, match=message):
        crf_module.CRF(TAGS).decode(torch.zeros(emissions), given)
