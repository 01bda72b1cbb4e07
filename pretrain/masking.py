"""Which positions masked language modelling hides: single ones are moved together into spans."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]


def span_mask(mask: Bools) -> Bools:
    """Moves drawn positions that stand alone directly before the next drawn one.

    Left to right: a drawn position next to its predecessor makes a run and stays; a single one
    waits; when the next drawn position j comes and is not adjacent, the waiting one moves to j - 1,
    and both are done. The number of masks never changes, in no row.

    Source: Liu et al. 2021 (CrossNER), arXiv:2012.04373, section 3.2, and its released code.

    >>> np.flatnonzero(span_mask(np.isin(np.arange(12), [5, 11])[None])[0]).tolist()
    [10, 11]

    Args:
        mask: drawn positions, shape (batch, length).

    Returns:
        Masked positions, shape (batch, length).
    """
    edge = np.zeros((len(mask), 1), bool)
    begins = mask & ~np.hstack([edge, mask[:, :-1]])
    ends = mask & ~np.hstack([mask[:, 1:], edge])
    rows, columns = np.nonzero(begins)
    numbers = np.arange(len(rows))
    single = ends[rows, columns]
    last = np.append(rows[1:] != rows[:-1], True)[: len(rows)]
    first = np.insert(last[:-1], 0, True)[: len(rows)]
    # In a streak of singles every other one waits: the one between is where it moves to.
    streak = np.maximum.accumulate(np.where(single, np.where(first, numbers, 0), numbers + 1))
    moves = np.flatnonzero(single & ((numbers - streak) % 2 == 0) & ~last)
    result = mask.copy()
    result[rows[moves], columns[moves]] = False
    result[rows[moves], columns[moves + 1] - 1] = True
    return result
