"""Masks sub-words for masked language modelling: single ones, or spans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedTokenizerFast

from pretrain.mlm.blocks import Block
from pretrain.training.features import IGNORED

Bools = npt.NDArray[np.bool_]


def span_mask(mask: Bools) -> Bools:
    """Moves isolated drawn positions directly before the next drawn position.

    Positions are read from left to right. A drawn position next to its predecessor is not moved.
    An isolated one waits. If the next drawn position j is not adjacent to it, it is moved to j - 1,
    and then neither waits. The number of masked positions of a row does not change.

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
    # In a streak of isolated positions every other one waits, and moves next to the one after it.
    streak = np.maximum.accumulate(np.where(single, np.where(first, numbers, 0), numbers + 1))
    moves = np.flatnonzero(single & ((numbers - streak) % 2 == 0) & ~last)
    result = mask.copy()
    result[rows[moves], columns[moves]] = False
    result[rows[moves], columns[moves + 1] - 1] = True
    return result


class Masker:
    """Makes batches for masked language modelling.

    A sub-word is masked with probability `rate`. Of these 80 % are replaced by the mask, 10 % by a
    random sub-word, and 10 % are not changed. The draws depend only on seed, epoch and block.

    Source: Devlin et al. 2019 (BERT), section 3.1; Liu et al. 2021 (CrossNER), section 3.2.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, masking: str, rate: float, seed: int
    ) -> None:
        """Sets the parameters of the draws.

        Args:
            tokenizer: tokenizer of the model; its special sub-words are never masked.
            masking: "token" or "span".
            rate: share of the sub-words that is masked.
            seed: seed of the draws.
        """
        self._masking, self._rate, self._seed = masking, rate, seed
        self._size = len(tokenizer)
        self._pad, self._mask = int(tokenizer.pad_token_id or 0), int(tokenizer.mask_token_id)
        self._special = np.array(sorted(tokenizer.all_special_ids))

    def __call__(self, blocks: Sequence[Block]) -> dict[str, torch.Tensor]:
        """Makes ids, attention mask, and labels (batch, length)."""
        shape = len(blocks), max(len(block.input_ids) for block in blocks)
        ids = np.full(shape, self._pad)
        attention = np.zeros(shape, np.int64)
        draws = np.ones((3, *shape))  # which position, how it is replaced, by which sub-word
        for row, block in enumerate(blocks):
            length = len(block.input_ids)
            ids[row, :length] = block.input_ids
            attention[row, :length] = 1
            # A generator per block: the draws do not depend on the other blocks of the batch.
            generator = np.random.default_rng((self._seed, *block.key))
            draws[:, row, :length] = generator.random((3, length))
        text = (attention == 1) & ~np.isin(ids, self._special)
        hidden = (draws[0] < self._rate) & text
        if not hidden.any():  # a very small batch: mask at least one sub-word
            hidden.flat[np.where(text, draws[0], 2).argmin()] = True
        if self._masking == "span":
            hidden = span_mask(hidden)
        labels = np.where(hidden, ids, IGNORED)
        ids = np.where(hidden & (draws[1] < 0.8), self._mask, ids)
        random = np.minimum((draws[2] * self._size).astype(np.int64), self._size - 1)
        ids = np.where(hidden & (draws[1] >= 0.8) & (draws[1] < 0.9), random, ids)
        batch = {"input_ids": ids, "attention_mask": attention, "labels": labels}
        return {name: torch.from_numpy(values) for name, values in batch.items()}
