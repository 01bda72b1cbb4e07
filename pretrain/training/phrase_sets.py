"""What mentions are in Wikipedia's words, as a part of their labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from datasets import Dataset

PHRASES = "phrases"
"""Column of a corpus with the phrases of each mention."""
_BETWEEN = "\n"


class PhraseSets:
    """Labels of mentions that say their category, and their phrases.

    Attributes:
        sets: distinct lists of phrases of mentions; the first one is empty.
    """

    def __init__(self, rows: Dataset, n_categories: int) -> None:
        """Collects the phrases of the mentions of some rows.

        Args:
            rows: rows of a corpus, with the column PHRASES.
            n_categories: number of categories of the labels.
        """
        texts: set[str] = set()
        for batch in rows.with_format("arrow").select_columns([PHRASES]).iter(10_000):
            for chunk in batch.column(PHRASES).chunks:
                texts.update(pc.binary_join(chunk.flatten(), _BETWEEN).unique().to_pylist())
        ordered = sorted(texts - {""})
        self.sets = [[], *(text.split(_BETWEEN) for text in ordered)]
        self._numbers = {text: number for number, text in enumerate(ordered, 1)}
        self._n_categories = n_categories

    def added(
        self, labels: npt.NDArray[np.int64], phrases: Sequence[Sequence[str]]
    ) -> npt.NDArray[np.int64]:
        """Labels whose category numbers are increased by the number of categories for each set.

        Args:
            labels: label ids of the words of a sentence, shape (words,).
            phrases: phrases of its mentions.
        """
        numbers = [self._numbers.get(_BETWEEN.join(of_mention), 0) for of_mention in phrases]
        mention = np.cumsum(labels % 2) - 1
        of_words = np.array([*numbers, 0])[mention]
        return np.where(labels > 0, labels + 2 * self._n_categories * of_words, 0)
