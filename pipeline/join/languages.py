"""Balancing by category within a language, and by language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.examples import balance
from pipeline.examples.corpus_files import weights_of
from pipeline.examples.counts import SelectionReport
from pipeline.join.runs import JoinedExamples


@dataclass(frozen=True)
class BalancedLanguage:
    """How often the train examples of a language are repeated.

    Attributes:
        examples: its examples.
        selected: counts of these before balancing.
        factor: how many times as many copies as in a corpus of its own.
        weights: the weights of the copies.
    """

    examples: JoinedExamples
    selected: SelectionReport
    factor: float
    weights: balance.Weights


def balanced_languages(
    all_examples: Sequence[JoinedExamples], alpha: float
) -> list[BalancedLanguage]:
    """Balances each language by the options of its run, and the languages by an exponent."""
    counted = list(map(_counted, all_examples))
    weights = list(map(_weights, all_examples, counted))
    expected = list(map(_expected, all_examples, weights))
    least = [of_language.least for of_language in weights]
    sentences = [selected.sentences["train"] for selected in counted]
    factors = language_factors(expected, least, sentences, alpha)
    return [
        BalancedLanguage(examples, selected, factor, of_language.times(factor))
        for examples, selected, factor, of_language in zip(
            all_examples, counted, factors, weights, strict=True
        )
    ]


def _counted(examples: JoinedExamples) -> SelectionReport:
    counts = SelectionReport()
    for name in examples.run.parts:
        for split, batch in examples.batches(name, ("title", "page_id", "ner_tags", "tokens")):
            counts.count(split, batch, examples.labels.categories)
    return counts


def _weights(examples: JoinedExamples, selected: SelectionReport) -> balance.Weights:
    report, categories = examples.run.report, examples.labels.categories
    table = report.categories.table
    support = {name: table[name].support if name in table else 0.0 for name in categories}
    return weights_of(report.settings["balance"], support, selected, examples.train_tags())


def _expected(examples: JoinedExamples, weights: balance.Weights) -> balance.Floats:
    """Expected copies of each train sentence without a least number, shape (sentences,)."""
    n_categories, free = len(examples.labels.categories), replace(weights, least=0)
    columns = (
        free.expected(balance.CategoryCounts.of_tags(tags, n_categories))
        for tags in examples.train_tags()
    )
    return np.concatenate([np.zeros(0), *columns])


def language_factors(
    expected: Sequence[balance.Floats], least: Sequence[int], sentences: Sequence[int], alpha: float
) -> list[float]:
    """How many times as many copies each language has, so that its share follows |L|**alpha.

    The language with the most sentences has as many copies as in its own corpus.

    Args:
        expected: expected copies of each train sentence of each language, without a least number.
        least: fewest copies of a sentence of each language.
        sentences: |L|, number of train sentences of each language.
        alpha: exponent.

    Source of the exponent: Lample and Conneau 2019, arXiv:1901.07291, section 3.1.
    """
    largest = max(range(len(sentences)), key=lambda number: sentences[number])
    total = float(np.maximum(expected[largest], least[largest]).sum())
    return [
        _factor(copies, fewest, total * (count / sentences[largest]) ** alpha) if count else 1.0
        for copies, fewest, count in zip(expected, least, sentences, strict=True)
    ]


def _factor(expected: balance.Floats, least: int, total: float) -> float:
    """The factor of the copies that, with no fewer than `least` of a sentence, sum to `total`."""
    low, high = 0.0, total / max(float(expected.sum()), 1e-9)  # with `least` there are no fewer
    for _ in range(50):
        middle = (low + high) / 2
        is_too_large = np.maximum(middle * expected, least).sum() > total
        low, high = (low, middle) if is_too_large else (middle, high)
    return high
