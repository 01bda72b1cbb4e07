"""Labels at sub-words: where words begin, and the loss. To predict, a tagger needs no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch

IGNORED = -100
"""Label of sub-words that the loss ignores."""


def first_subwords(
    word_ids: Sequence[int | None],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Where the words of a text begin among its sub-words.

    Args:
        word_ids: word of each sub-word, None for special ones, shape (length,).

    Returns:
        The words that have sub-words, and whether each sub-word is the first of its word, shape
        (length,).
    """
    words = np.array([-1 if word is None else word for word in word_ids], np.int64)
    first = words >= 0
    first[1:] &= words[1:] != words[:-1]
    return words[first], first


def softmax(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Probabilities by scores, over the last dimension."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    chances: npt.NDArray[np.float32] = powers / powers.sum(-1, keepdims=True)
    return chances


def token_loss(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
    """Cross entropy: the sum over a batch, divided by the labelled sub-words of the optimiser step.

    Args:
        outputs: output of the model, with `logits` (batch, length, tags).
        labels: label ids (batch, length), `IGNORED` for sub-words without label.
        num_items_in_batch: number of labelled sub-words of the step, over all devices and
            accumulated batches; if None, that of this batch.
    """
    # A tagger that computes without torch needs the sub-words alone.
    import torch
    from torch.nn import functional

    logits = outputs.logits.float()  # sums of bfloat16 lose small terms
    total = functional.cross_entropy(
        logits.view(-1, logits.shape[-1]), labels.view(-1), ignore_index=IGNORED, reduction="sum"
    )
    items = labels.ne(IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
    return total / torch.as_tensor(items, device=total.device).clamp(min=1)
