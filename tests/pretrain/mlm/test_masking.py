import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.lazy import lazy

masking = lazy("pretrain.mlm.model")


def moved(positions, length=20):
    return np.flatnonzero(
        masking.span_mask(np.isin(np.arange(length), positions)[None])[0]
    ).tolist()


def one_by_one(row):
    """The rule as it is told, position by position."""
    result, pending = list(row), None
    for place, drawn in enumerate(row):
        if not drawn:
            continue
        if pending is None:
            pending = None if place and result[place - 1] else place
        else:
            if pending != place - 1:
                result[pending], result[place - 1] = False, True
            pending = None
    return result


@pytest.mark.parametrize(
    ("drawn", "masked"),
    [
        ([5, 11], [10, 11]),
        ([1, 5, 6], [4, 5, 6]),
        ([1, 2, 7], [1, 2, 7]),
        ([1, 3, 5, 7], [2, 3, 6, 7]),
        ([3], [3]),
        ([], []),
        ([0, 19], [18, 19]),
    ],
)
def test_examples(drawn, masked):
    assert moved(drawn) == masked


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=5)
    )
)
def test_like_the_rule_one_by_one(rows):
    mask = np.array(rows)
    before = mask.copy()
    assert masking.span_mask(mask).tolist() == [one_by_one(row) for row in rows]
    assert (mask == before).all()


@pytest.mark.parametrize(("rate", "most"), [(0.15, 0.01), (0.2, 0.01)])
def test_ten_thousand_rows_keep_their_number_and_few_stay_single(rate, most):
    drawn = np.random.default_rng(0).random((10_000, 510)) < rate
    masked = masking.span_mask(drawn)
    assert (masked.sum(1) == drawn.sum(1)).all()
    padded = np.pad(masked, ((0, 0), (1, 1)))
    single = masked & ~padded[:, :-2] & ~padded[:, 2:]
    assert single.sum() < most * masked.sum()


def test_empty():
    assert masking.span_mask(np.zeros((0, 5), bool)).shape == (0, 5)
    assert masking.span_mask(np.zeros((3, 0), bool)).shape == (3, 0)


class Tokenizer:
    """A vocabulary of 1,000 sub-words; the first five are special."""

    pad_token_id, mask_token_id, all_special_ids = 0, 4, [0, 1, 2, 3, 4]

    def __len__(self):
        return 1000


@pytest.mark.parametrize("kind", ["token", "span"])
def test_shares_of_masks_random_words_and_words_that_stay(kind):
    """Devlin et al. 2019, section 3.1: 80 %, 10 % and 10 % of the chosen sub-words."""
    blocks = lazy("pretrain.mlm.blocks")
    word = 999
    collate = masking.Masker(Tokenizer(), kind, 0.15, 0)
    rows = [blocks.Block((0, number), np.array([1, *[word] * 508, 2])) for number in range(400)]
    found = collate(rows)
    ids, labels = found["input_ids"].numpy(), found["labels"].numpy()
    chosen = labels != -100
    assert (labels[chosen] == word).all()
    assert (ids[~chosen & (ids != 1) & (ids != 2)] == word).all()
    n = chosen.sum()
    assert n / (400 * 508) == pytest.approx(0.15, abs=0.004)
    assert (ids[chosen] == 4).sum() / n == pytest.approx(0.8, abs=0.01)
    # A random word may be the word itself, or a special one.
    other = (ids[chosen] != 4) & (ids[chosen] != word)
    assert other.sum() / n == pytest.approx(0.1, abs=0.01)
    drawn = ids[chosen][other]
    assert drawn.min() < 20
    assert drawn.max() > 980
