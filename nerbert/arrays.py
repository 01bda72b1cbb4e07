"""What numpy does slowly, or loads too much for."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

K = TypeVar("K", bound=np.generic)


def unique(keys: npt.NDArray[K]) -> npt.NDArray[K]:
    """The distinct keys, sorted.

    Sorting is much faster here than the hashes of `np.unique`, which also loads `numpy.ma` first.
    """
    ordered = np.sort(keys)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
