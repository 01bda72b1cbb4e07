"""Balancing: how often each train example is repeated, so that categories follow |E|**alpha.

Source: Liu et al. 2021, section 2: sentences that contain a category E are sampled with a
probability p(E) proportional to |E|**0.7.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.digests import uniform

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_ROUNDS = 500
TOLERANCE = 1e-4
"""Raking ends if the logarithms of all counts are at least this near to their targets."""


def sampling_weights(counts: Mapping[str, int], alpha: float) -> dict[str, float]:
    """Category weights proportional to count**alpha, summing to 1.

    Args:
        counts: category -> mentions, each at least 1.
        alpha: exponent in [0, 1]; 1 keeps the natural distribution, 0 makes it uniform.

    Raises:
        ValueError: alpha is out of range, there are no categories, or a count is below 1.

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
class CategoryCounts:
    """Numbers of mentions of each category in each sentence, as a sparse matrix.

    Sentence `rows[i]` holds `mentions[i]` mentions of category `categories[i]`. Each pair of a
    sentence and a category occurs once.
    """

    rows: Ints
    categories: Ints
    mentions: Ints
    n_rows: int

    @classmethod
    def of_tags(cls, ner_tags: pa.ListArray, n_categories: int) -> CategoryCounts:
        """Counts the mentions of sentences by their label ids, which `LabelSet` defines."""
        lengths = pc.list_value_length(ner_tags).to_numpy(zero_copy_only=False).astype(np.int64)
        rows = np.repeat(np.arange(len(ner_tags)), lengths)
        labels = ner_tags.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        begins = labels % 2 == 1
        pairs = rows[begins] * n_categories + (labels[begins] - 1) // 2
        unique, mentions = np.unique(pairs, return_counts=True)
        return cls(unique // n_categories, unique % n_categories, mentions, len(ner_tags))

    def sum_by_row(self, values: Floats) -> Floats:
        """Sums `values`, one per entry of the matrix, by sentence."""
        return np.bincount(self.rows, weights=values, minlength=self.n_rows).astype(np.float64)


def signatures(columns: Iterable[pa.ListArray], n_categories: int) -> tuple[CategoryCounts, Floats]:
    """Groups sentences with equal counts of categories; returns the groups and their sizes."""
    times: Counter[bytes] = Counter()
    for column in columns:
        category_counts = CategoryCounts.of_tags(column, n_categories)
        pairs = np.stack([category_counts.categories, category_counts.mentions], axis=1).astype(
            "<i4"
        )
        bounds = np.searchsorted(category_counts.rows, np.arange(category_counts.n_rows + 1))
        times.update(pairs[first:last].tobytes() for first, last in pairwise(bounds))
    ordered = sorted(times)
    lengths = np.array([len(key) // 8 for key in ordered], np.int64)
    joined: Ints = np.frombuffer(b"".join(ordered), "<i4").reshape(-1, 2).astype(np.int64)
    rows = np.repeat(np.arange(len(ordered)), lengths)
    category_counts = CategoryCounts(rows, joined[:, 0], joined[:, 1], len(ordered))
    return category_counts, np.array([times[key] for key in ordered], float)


def category_first(
    names: Sequence[str],
    mentions: Mapping[str, int],
    sentences: Mapping[str, int],
    n_sentences: int,
    alpha: float,
) -> Floats:
    """Expected copies that each category adds to a sentence that holds it, shape (categories,).

    A category is drawn by p(E), then a sentence that holds it. After N such draws the expected
    number of copies of a sentence is N times the sum of p(E)/n(E) over its categories.

    Args:
        names: the categories, by index.
        mentions: |E|, mentions of each category.
        sentences: n(E), sentences that hold each category.
        n_sentences: N, number of draws.
        alpha: exponent.
    """
    weights = sampling_weights({name: n for name, n in mentions.items() if n}, alpha)
    return np.array(
        [
            n_sentences * weights[name] / sentences[name] if name in weights else 0.0
            for name in names
        ]
    )


def calibrate(
    category_counts: CategoryCounts, times: Floats, n_categories: int, alpha: float
) -> tuple[Floats, float, int]:
    """Finds factors that make the mention counts follow |E|**alpha, by raking.

    The expected copies of a sentence are `scale` times the geometric mean of the factors of its
    mentions' categories. Each round multiplies a factor by target/count. The number of examples
    does not change.

    Args:
        category_counts: categories of groups of sentences.
        times: number of sentences of each group, shape (rows,).
        n_categories: number of categories.
        alpha: exponent.

    Returns:
        Logarithms of the factors, shape (categories,); logarithm of the scale; number of rounds.
    """
    before = np.bincount(
        category_counts.categories,
        category_counts.mentions * times[category_counts.rows],
        n_categories,
    )
    present = before > 0
    target = np.zeros(n_categories)
    target[present] = before[present] ** alpha
    logs, rounds = np.zeros(n_categories), 0
    per_row = np.maximum(category_counts.sum_by_row(category_counts.mentions.astype(float)), 1)
    while rounds < MAX_ROUNDS:
        rounds += 1
        means = (
            category_counts.sum_by_row(category_counts.mentions * logs[category_counts.categories])
            / per_row
        )
        copies = times * np.exp(means - means.max(initial=0.0))
        copies *= times.sum() / copies.sum()
        counts = np.bincount(
            category_counts.categories,
            category_counts.mentions * copies[category_counts.rows],
            n_categories,
        )
        error = np.zeros(n_categories)
        error[present] = np.log(target[present] / counts[present])
        error[present] -= np.average(error[present], weights=counts[present])
        if np.abs(error).max(initial=0.0) < TOLERANCE:
            break
        logs += error
        logs[present] -= logs[present].mean()
    means = (
        category_counts.sum_by_row(category_counts.mentions * logs[category_counts.categories])
        / per_row
    )
    scale = float(np.log(times.sum() / (times * np.exp(means)).sum()))
    return logs, scale, rounds


@dataclass(frozen=True)
class Weights:
    """Expected copies of a sentence, as a function of its categories.

    Attributes:
        mode: category-first (a sum over categories), calibrated (a geometric mean) or none.
        by_category: a number for each category; for `calibrated` the logarithm of its factor.
        log_scale: logarithm of the scale of `calibrated` and `none`.
        least: fewest copies of a sentence: 1 if none may be lost.
    """

    mode: str
    by_category: tuple[float, ...]
    log_scale: float = 0.0
    least: int = 0

    def times(self, factor: float) -> Weights:
        """Weights of `factor` times as many copies; no fewer than `least` of a sentence."""
        if self.mode == "category-first":
            return replace(self, by_category=tuple(factor * copies for copies in self.by_category))
        return replace(self, log_scale=self.log_scale + math.log(factor))

    def expected(self, category_counts: CategoryCounts) -> Floats:
        """Expected copies of each sentence, shape (rows,)."""
        values = np.asarray(self.by_category)
        if self.mode == "none":
            return np.full(category_counts.n_rows, math.exp(self.log_scale))
        if self.mode == "category-first":
            return np.maximum(
                category_counts.sum_by_row(values[category_counts.categories]), self.least
            )
        per_row = np.maximum(category_counts.sum_by_row(category_counts.mentions.astype(float)), 1)
        means = (
            category_counts.sum_by_row(
                category_counts.mentions * values[category_counts.categories]
            )
            / per_row
        )
        return np.maximum(np.exp(means + self.log_scale), self.least)


def whole_copies(expected: Floats, keys: Sequence[str], seed: int) -> Ints:
    """Rounds expected copies up, with the probability of the fractional part, or down.

    The draw is a keyed digest: it depends on the example, not on the worker or the order.
    """
    floor = np.floor(expected)
    fraction = expected - floor
    copies = floor.astype(np.int64)
    for index in np.flatnonzero(fraction > 0):
        copies[index] += uniform(seed, "copies", keys[int(index)]) < fraction[index]
    return copies


def repeat(
    batch: pa.RecordBatch, weights: Weights, n_categories: int, seed: int
) -> tuple[pa.RecordBatch, CategoryCounts, Ints]:
    """Repeats the examples of a batch.

    Args:
        batch: examples.
        weights: expected copies of each example.
        n_categories: number of categories.
        seed: seed of the draws.

    Returns:
        The repeated examples; counts of categories, and numbers of copies, of the given ones.
    """
    counts = CategoryCounts.of_tags(batch.column("ner_tags"), n_categories)
    ids = batch.column("id").to_pylist()
    copies = whole_copies(weights.expected(counts), ids, seed)
    indices = np.repeat(np.arange(len(batch)), copies)
    number = np.arange(len(indices)) - np.repeat(np.cumsum(copies) - copies, copies)
    repeated = batch.take(pa.array(indices))
    stems = [ids[index].rpartition(":")[0] for index in indices]
    columns = dict(zip(batch.schema.names, repeated.columns, strict=True))
    columns["id"] = pa.array([f"{s}:{n}" for s, n in zip(stems, number, strict=True)], pa.string())
    columns["copy"] = pa.array(number, pa.int32())
    result = pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)
    return result, counts, copies


def exponent(before: Mapping[str, int], after: Mapping[str, int]) -> float | None:
    """Slope of log(after) over log(before), for categories in both; None for fewer than two."""
    pairs = [(n, after.get(name, 0)) for name, n in before.items() if n and after.get(name, 0)]
    if len({n for n, _ in pairs}) < 2:
        return None
    x, y = np.log(np.array(pairs, float)).T
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())
