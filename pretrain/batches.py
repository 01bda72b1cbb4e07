"""Which pieces make which batch: a function of seed and epoch alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from torch.utils.data import Sampler

WINDOW = 50
"""Optimiser steps whose pieces are sorted by length together, if no other number is given."""


class LengthBatches(Sampler[list[int]]):
    """Batches of pieces of similar length.

    Every piece comes once in an epoch, on one device. The pieces are shuffled; those of a window of
    optimiser steps are sorted by length, cut into steps, and the steps shuffled. A step's pieces
    are dealt out to its batches (one for each device and accumulated step), of equal size but for
    one piece. What a step holds does not depend on how many devices and accumulated steps it is
    spread over.
    """

    def __init__(
        self, lengths: npt.NDArray[np.int32], batch_size: int, accumulation: int = 1,
        world: int = 1, rank: int = 0, seed: int = 0, window: int = WINDOW,
    ) -> None:  # fmt: skip
        """Plans the epochs.

        Args:
            lengths: sub-words of each piece, shape (pieces,).
            batch_size: most pieces of an optimiser step, over all devices; steps are of equal size
                but for one piece.
            accumulation: batches that a device takes for a step.
            world: devices.
            rank: of this device.
            seed: of the shuffles.
            window: optimiser steps whose pieces are sorted by length together.

        Raises:
            ValueError: a batch would be empty.
        """
        self._lengths = lengths
        self._accumulation, self._world, self._rank, self._seed = accumulation, world, rank, seed
        self._epoch, self._window = 0, window
        self.steps = -(-len(lengths) // batch_size)
        if len(lengths) // max(self.steps, 1) < accumulation * world:
            raise ValueError(f"{len(lengths)} pieces do not fill {accumulation} x {world} batches")

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the pieces."""
        self._epoch = epoch

    def __len__(self) -> int:
        return self.steps * self._accumulation

    def __iter__(self) -> Iterator[list[int]]:
        for step in self._steps():
            for batch in np.array_split(step, self._accumulation):
                yield batch[self._rank :: self._world].tolist()

    def _steps(self) -> Iterator[npt.NDArray[np.int64]]:
        """Pieces of each optimiser step, by length."""
        draw = np.random.default_rng((self._seed, self._epoch))
        order = draw.permutation(len(self._lengths))
        bounds = np.arange(self.steps + 1) * len(order) // self.steps
        for first in range(0, self.steps, self._window):
            inner = bounds[first : first + self._window + 1]
            window = order[inner[0] : inner[-1]]
            window = window[np.argsort(self._lengths[window], kind="stable")]
            steps = np.split(window, inner[1:-1] - inner[0])
            for number in draw.permutation(len(steps)):
                yield steps[number]
