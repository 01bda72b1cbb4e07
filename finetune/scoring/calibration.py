"""The score of a mention as the probability that it is right, and the smallest one that pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BINS = 15
"""Bins of the calibration error, as in Guo et al. 2017."""
_EDGE = 1e-6
_LEAST = 100
"""Mentions that a calibration needs, right ones and wrong ones together."""


@dataclass(frozen=True)
class Calibration:
    """Logistic of `slope * logit(score) + intercept` (Platt 1999); `slope` is 1 / temperature.

    Attributes:
        slope: factor of the score's log-odds.
        intercept: what is added to them.
        min_score: smallest calibrated score of a mention that is kept.
    """

    slope: float = 1.0
    intercept: float = 0.0
    min_score: float = 0.0

    @classmethod
    def fitted(cls, scores: Sequence[float], is_right: Sequence[bool], gold: int) -> Calibration:
        """The calibration by predicted mentions of sentences that were not trained on.

        Likelihood is maximised with Platt's targets, so a few mentions that are all right do not
        make all scores 1. The smallest score is that of the best F1; of equal ones, the lowest.

        Args:
            scores: score of each predicted mention.
            is_right: whether each is a gold mention, with its type.
            gold: number of gold mentions.

        Returns:
            The calibration; one that changes nothing if there are fewer than `_LEAST` mentions.
        """
        # It takes half a second to load, and predicting does not need it.
        from scipy.optimize import minimize

        right = np.asarray(is_right, bool)
        if len(right) < _LEAST:
            return cls()
        n_right = right.sum()
        n_wrong = len(right) - n_right
        targets = np.where(right, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
        odds: Floats = _log_odds(scores)

        def loss(weights: Floats) -> float:
            scaled = weights[0] * odds + weights[1]
            return float((np.logaddexp(0, scaled) - targets * scaled).mean())

        bounds = [(0.01, None), (None, None)]  # a higher score never becomes the lower one
        slope, intercept = minimize(loss, (1.0, 0.0), method="L-BFGS-B", bounds=bounds).x
        calibration = cls(float(slope), float(intercept))
        order = np.argsort(-odds, kind="stable")
        f1 = 2 * right[order].cumsum() / (np.arange(1, len(right) + 1) + gold)
        last = len(f1) - 1 - int(f1[::-1].argmax())
        if last == len(f1) - 1:
            return calibration
        between = sum(calibration(scores[place]) for place in order[last : last + 2]) / 2
        return cls(calibration.slope, calibration.intercept, round(between, 4))

    @classmethod
    def parsed(cls, value: Any) -> Calibration:
        """The calibration with the fields of a dict.

        Raises:
            ValueError: it has other fields, or values that no calibration has.
        """
        names = {field.name for field in fields(cls)}
        is_form = isinstance(value, dict) and value.keys() <= names
        numbers = list(value.values()) if is_form else []
        if not is_form or not all(
            isinstance(number, int | float) and math.isfinite(number) for number in numbers
        ):
            raise ValueError(f"give numbers for {', '.join(sorted(names))}")
        calibration = cls(**value)
        if calibration.slope <= 0 or not 0 <= calibration.min_score <= 1:
            raise ValueError("slope must be above 0, and min_score from 0 to 1")
        return calibration

    def __call__(self, score: float) -> float:
        """The probability of being right."""
        if self.slope == 1 and self.intercept == 0:
            return score
        return float(1 / (1 + np.exp(-self.slope * _log_odds(score) - self.intercept)))


AS_THEY_ARE = Calibration()
"""Changes no score, and drops no mention."""


def _log_odds(scores: npt.ArrayLike) -> Any:
    inside = np.clip(scores, _EDGE, 1 - _EDGE)
    return np.log(inside / (1 - inside))


@dataclass(frozen=True)
class Reliability:
    """Scores against what is right, in bins of equal width.

    Attributes:
        counts: mentions of each bin.
        scores: mean score of each bin; 0 of an empty one.
        right: share of right mentions of each bin; 0 of an empty one.
    """

    counts: npt.NDArray[np.int64]
    scores: Floats
    right: Floats

    @classmethod
    def of(cls, scores: Sequence[float], is_right: Sequence[bool]) -> Reliability:
        """Counts predicted mentions."""
        values = np.asarray(scores, float)
        bins = np.minimum((values * BINS).astype(int), BINS - 1)
        counts = np.bincount(bins, minlength=BINS)
        sums = (np.bincount(bins, part, BINS) for part in (values, np.asarray(is_right, float)))
        means = (part / np.maximum(counts, 1) for part in sums)
        return cls(counts, *means)

    @property
    def error(self) -> float:
        """Expected calibration error: mean distance of score and share, by mentions."""
        distances = np.abs(self.scores - self.right)
        return float((distances * self.counts).sum() / max(self.counts.sum(), 1))
