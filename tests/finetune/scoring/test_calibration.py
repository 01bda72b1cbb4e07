"""Calibrated scores of mentions, against brute force."""

import numpy as np
import pytest

from finetune.scoring.calibration import BINS, Calibration, Reliability


def drawn(seed, size=2000, slope=0.5, intercept=-0.4):
    """Scores that are too sure of themselves, and what is right."""
    random = np.random.default_rng(seed)
    true = random.uniform(0.05, 0.95, size)
    odds = (np.log(true / (1 - true)) - intercept) / slope
    return (1 / (1 + np.exp(-odds))).tolist(), (random.random(size) < true).tolist()


def test_it_finds_what_was_drawn():
    scores, right = drawn(0, 20_000)
    found = Calibration.fitted(scores, right, 15_000)
    assert found.slope == pytest.approx(0.5, abs=0.03)
    assert found.intercept == pytest.approx(-0.4, abs=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_the_likelihood_is_the_largest(seed):
    """No point of a grid around it is better; logistic regression finds the same."""
    from sklearn.linear_model import LogisticRegression

    scores, right = drawn(seed)
    found = Calibration.fitted(scores, right, 1500)
    odds = np.log(np.array(scores) / (1 - np.array(scores)))[:, None]
    judge = LogisticRegression(C=1e9).fit(odds, right)
    assert found.slope == pytest.approx(judge.coef_[0, 0], abs=0.01)
    assert found.intercept == pytest.approx(judge.intercept_[0], abs=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_score_has_the_best_f1(seed):
    scores, right = drawn(seed, 300)
    gold = sum(right) + 50
    found = Calibration.fitted(scores, right, gold)

    def f1(least):
        kept = [r for s, r in zip(scores, right, strict=True) if found(s) >= least]
        return 2 * sum(kept) / (len(kept) + gold)

    assert f1(found.min_score) == max(f1(least) for least in [0, *map(found, scores)])
    assert f1(found.min_score) >= f1(0)


def test_order_and_bounds():
    scores, right = drawn(3)
    upside_down = [not one for one in right]
    for judged in (right, upside_down, [True] * len(right), [False] * len(right)):
        found = Calibration.fitted(scores, judged, 1000)
        values = [found(score) for score in (0.0, 0.1, 0.5, 0.9, 1.0)]
        assert values == sorted(values)
        assert 0 <= values[0] <= values[-1] <= 1
    assert max(map(Calibration.fitted(scores, [True] * 2000, 2000), scores)) < 1


def test_few_mentions_change_nothing():
    found = Calibration.fitted([0.9] * 19, [True] * 19, 19)
    assert found == Calibration()
    assert found(0.123456) == 0.123456
    assert Calibration.fitted([], [], 5) == Calibration()


def test_error_by_brute_force():
    scores, right = drawn(1, 500)
    scores[:3] = [0.0, 1.0, 1 / BINS]
    expected = 0.0
    for place in range(BINS):
        last = place == BINS - 1
        inside = [
            (s, r)
            for s, r in zip(scores, right, strict=True)
            if place / BINS <= s and (s < (place + 1) / BINS or last)
        ]
        if inside:
            expected += abs(sum(s for s, _ in inside) - sum(r for _, r in inside))
    assert Reliability.of(scores, right).error == pytest.approx(expected / 500)
    assert Reliability.of([], []).error == 0
    assert Reliability.of([1.0, 1.0], [True, True]).error == 0
