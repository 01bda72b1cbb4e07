"""How often each train example is repeated, so that categories follow |E|**alpha.

Source: Liu et al. 2021, section 2: p(E) proportional to |E|**0.7, p(E) the probability to sample
sentences that contain E.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.stable_hash import uniform

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_ROUNDS = 500
TOLERANCE = 1e-4
"""Raking ends when no category's count is further (in the logarithm) from its target."""


def sampling_weights(counts: Mapping[str, int], alpha: float) -> dict[str, float]:
    """Category weights proportional to count**alpha, summing to 1.

    Args:
        counts: category -> mentions, each at least 1.
        alpha: exponent in [0, 1]; 1 keeps the natural distribution, 0 makes it uniform.

    Raises:
        ValueError: alpha out of range, no categories, or a count below 1.
    Source: Liu et al. 2021, arXiv:2112.00405, section 2.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha {alpha} is outside 0..1")
    if not counts or min(counts.values()) < 1:
        raise ValueError("every category needs a count of at least 1")
    powers = {name: count**alpha for name, count in counts.items()}
    total = sum(powers.values())
    return {name: power / total for name, power in powers.items()}


@dataclass(frozen=True)
class Bags:
    """Categories of sentences.

    Entry i says that sentence `rows[i]` holds `categories[i]` as often as `mentions[i]`; each pair
    of sentence and category occurs once.
    """

    rows: Ints
    categories: Ints
    mentions: Ints
    n_rows: int

    @classmethod
    def of_tags(cls, ner_tags: pa.ListArray, n_categories: int) -> Bags:
        """From label ids of IOB2 tags, one list a sentence (see `ontology.labels.LabelSet`)."""
        lengths = pc.list_value_length(ner_tags).to_numpy(zero_copy_only=False).astype(np.int64)
        rows = np.repeat(np.arange(len(ner_tags)), lengths)
        labels = ner_tags.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        begins = labels % 2 == 1
        pairs = rows[begins] * n_categories + (labels[begins] - 1) // 2
        unique, mentions = np.unique(pairs, return_counts=True)
        return cls(unique // n_categories, unique % n_categories, mentions, len(ner_tags))

    def sum_by_row(self, values: Floats) -> Floats:
        """Sum of `values` (one an entry) over the entries of each sentence."""
        return np.bincount(self.rows, weights=values, minlength=self.n_rows).astype(np.float64)


def signatures(columns: Iterable[pa.ListArray], n_categories: int) -> tuple[Bags, Floats]:
    """Bags of the distinct sentences by categories, and how many sentences each stands for."""
    times: Counter[bytes] = Counter()
    for column in columns:
        bags = Bags.of_tags(column, n_categories)
        pairs = np.stack([bags.categories, bags.mentions], axis=1).astype("<i4")
        bounds = np.searchsorted(bags.rows, np.arange(bags.n_rows + 1))
        times.update(pairs[first:last].tobytes() for first, last in pairwise(bounds))
    ordered = sorted(times)
    lengths = np.array([len(key) // 8 for key in ordered], np.int64)
    joined: Ints = np.frombuffer(b"".join(ordered), "<i4").reshape(-1, 2).astype(np.int64)
    rows = np.repeat(np.arange(len(ordered)), lengths)
    bags = Bags(rows, joined[:, 0], joined[:, 1], len(ordered))
    return bags, np.array([times[key] for key in ordered], float)


def category_first(
    names: Sequence[str], mentions: Mapping[str, int], sentences: Mapping[str, int],
    n_sentences: int, alpha: float,
) -> Floats:  # fmt: skip
    """Expected copies that each category adds to a sentence holding it, shape (categories,).

    Drawing `n_sentences` times a category by p(E), then a sentence that holds it, gives a sentence
    N times the sum over its categories of p(E)/n(E) copies.

    Args:
        names: the categories, by index.
        mentions: |E| of each category.
        sentences: n(E), sentences that hold the category.
        n_sentences: N.
        alpha: exponent.
    """
    weights = sampling_weights({name: n for name, n in mentions.items() if n}, alpha)
    return np.array([
        n_sentences * weights[name] / sentences[name] if name in weights else 0.0 for name in names
    ])  # fmt: skip


def calibrate(
    bags: Bags, times: Floats, n_categories: int, alpha: float
) -> tuple[Floats, float, int]:
    """Factors that make mention counts follow |E|**alpha, by raking.

    A sentence's expected copies are `scale` times the geometric mean, over its mentions, of their
    categories' factors. Each round multiplies a factor by target/count; the number of examples
    stays.

    Args:
        bags: categories of sentences.
        times: how many sentences each row of `bags` stands for, shape (rows,).
        n_categories: number of categories.
        alpha: exponent.

    Returns:
        Logarithms of the factors, shape (categories,); the logarithm of the scale; rounds taken.
    """
    before = np.bincount(bags.categories, bags.mentions * times[bags.rows], n_categories)
    present = before > 0
    target = np.zeros(n_categories)
    target[present] = before[present] ** alpha
    logs, rounds = np.zeros(n_categories), 0
    per_row = np.maximum(bags.sum_by_row(bags.mentions.astype(float)), 1)
    while rounds < MAX_ROUNDS:
        rounds += 1
        means = bags.sum_by_row(bags.mentions * logs[bags.categories]) / per_row
        copies = times * np.exp(means - means.max(initial=0.0))
        copies *= times.sum() / copies.sum()
        counts = np.bincount(bags.categories, bags.mentions * copies[bags.rows], n_categories)
        error = np.zeros(n_categories)
        error[present] = np.log(target[present] / counts[present])
        error[present] -= np.average(error[present], weights=counts[present])
        if np.abs(error).max(initial=0.0) < TOLERANCE:
            break
        logs += error
        logs[present] -= logs[present].mean()
    means = bags.sum_by_row(bags.mentions * logs[bags.categories]) / per_row
    scale = float(np.log(times.sum() / (times * np.exp(means)).sum()))
    return logs, scale, rounds


@dataclass(frozen=True)
class Weights:
    """Expected copies of a sentence, as a function of its categories alone.

    Attributes:
        mode: category-first (a sum over categories), calibrated (a geometric mean) or none.
        by_category: a number for each category; for `calibrated` its logarithm.
        log_scale: for `calibrated`.
    """

    mode: str
    by_category: tuple[float, ...]
    log_scale: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {"mode": self.mode, "by_category": list(self.by_category),
                "log_scale": self.log_scale}  # fmt: skip

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Weights:
        """What `to_json` wrote."""
        return cls(fields["mode"], tuple(fields["by_category"]), fields["log_scale"])

    def expected(self, bags: Bags) -> Floats:
        """Expected copies of each sentence, shape (rows,)."""
        values = np.asarray(self.by_category)
        if self.mode == "none":
            return np.ones(bags.n_rows)
        if self.mode == "category-first":
            return bags.sum_by_row(values[bags.categories])
        per_row = np.maximum(bags.sum_by_row(bags.mentions.astype(float)), 1)
        means = bags.sum_by_row(bags.mentions * values[bags.categories]) / per_row
        return np.exp(means + self.log_scale)


def whole_copies(expected: Floats, keys: Sequence[str], seed: int) -> Ints:
    """Whole copies: the floor, and one more with the probability of what is left.

    The draw is a keyed digest, so it depends on the example alone, not on where it is made.
    """
    floor = np.floor(expected)
    rest = expected - floor
    copies = floor.astype(np.int64)
    for index in np.flatnonzero(rest > 0):
        copies[index] += uniform(seed, "copies", keys[int(index)]) < rest[index]
    return copies


def exponent(before: Mapping[str, int], after: Mapping[str, int]) -> float | None:
    """Slope of log(after) on log(before) over categories in both; None for fewer than two."""
    pairs = [(n, after.get(name, 0)) for name, n in before.items() if n and after.get(name, 0)]
    if len({n for n, _ in pairs}) < 2:
        return None
    x, y = np.log(np.array(pairs, float)).T
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())
