"""Loads masked language models, and trains them on masked positions only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import AutoModelForMaskedLM, PreTrainedModel, TrainerCallback

from nerbert.errors import BadLossError, UserError
from pretrain.training.checkpoints import check_weights, is_head
from pretrain.training.features import IGNORED
from pretrain.training.models import check_length
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
