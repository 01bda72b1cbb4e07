"""Masks sub-words, loads masked language models, and trains them on masked positions only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import (
    AutoModelForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    TrainerCallback,
)

from nerbert.errors import BadLossError, UserError
from pretrain.mlm.blocks import Block
from pretrain.training.checkpoints import check_weights, is_head
from pretrain.training.models import check_length
from pretrain.training.subwords import IGNORED
from pretrain.training.tokenizer import NO_CODE, UNLOADABLE, load_config, load_tokenizer
from pretrain.training.trainer import CardTrainer

_HEADS = ("cls", "lm_head")
"""Attributes with the language-model head, in models where it is one module."""


class FiniteLoss(TrainerCallback):
    """Stops the training if the loss is NaN or infinite."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if not math.isfinite((logs or {}).get("loss", 0.0)):
            raise BadLossError(
                f"loss is {logs['loss']} before step {state.global_step}; lower --learning-rate"
            )


@contextmanager
def hidden_only(model: Any, hidden: torch.Tensor) -> Iterator[bool]:
    """Restricts the language-model head to masked positions: the others have no loss.

    The scores of the whole vocabulary take most of the time and memory of a batch.

    Args:
        model: model with its head, or a wrapper of it.
        hidden: whether each position is masked, shape (batch, length).

    Yields:
        False if the head cannot be restricted, because it is not one module.
    """
    inner = getattr(model, "module", model)
    head = next((getattr(inner, name) for name in _HEADS if hasattr(inner, name)), None)
    if head is None:
        yield False
        return
    handle = head.register_forward_pre_hook(lambda _, args: (args[0][hidden], *args[1:]))
    try:
        yield True
    finally:
        handle.remove()


class MlmTrainer(CardTrainer):
    """A Trainer whose language-model head sees masked positions only."""

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Mean loss of the masked sub-words."""
        hidden = inputs["labels"].ne(IGNORED)
        with hidden_only(model, hidden) as alone:
            labels = inputs["labels"][hidden] if alone else inputs["labels"]
            return super().compute_loss(model, {**inputs, "labels": labels}, *args, **kwargs)


def load_masked_lm(base_model: str, max_subwords: int, new_head: bool) -> PreTrainedModel:
    """Loads an encoder with its language-model head.

    Args:
        base_model: name on the hub, or folder.
        max_subwords: number of sub-words that it must accept.
        new_head: whether a head that the checkpoint lacks may be initialised at random.

    Raises:
        UserError: there is no such model, it is not a masked language model, its checkpoint has no
            head, or it accepts fewer sub-words.
    """
    load_tokenizer(base_model)  # its error says what is missing in a folder without a model
    try:
        model: Any
        model, info = AutoModelForMaskedLM.from_pretrained(
            base_model, output_loading_info=True, dtype=torch.float32, **NO_CODE
        )
    except UNLOADABLE as error:
        kind = load_config(base_model).model_type
        raise UserError(
            f"transformers has no masked language model of type {kind}; use an encoder such as "
            "bert-base-cased",
            base_model,
        ) from error
    check_weights(base_model, model, info, is_head)
    if info["missing_keys"] and not new_head:
        raise UserError(
            "its checkpoint has no language-model head; give --new-head to start one from random "
            "weights",
            base_model,
        )
    check_length(model, base_model, max_subwords)
    loaded: PreTrainedModel = model
    return loaded


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
