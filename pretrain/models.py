"""Loads encoders, and taggers: encoders with a linear layer over all tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from nerbert.errors import UserError
from nerbert.text.tags import LabelSet

_NEED_PREFIX_SPACE = {"bloom", "deberta", "gpt2", "longformer", "roberta"}
"""Models whose tokenizer needs a space before a word: else pre-split words are joined into one."""


NO_CODE = {"trust_remote_code": False}
"""Option of all loaders: a model with code of its own is refused, and nobody is asked."""

UNLOADABLE = (
    *(OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError),
    SafetensorError,
)
"""What transformers raises for a folder with missing, torn or foreign files."""

HeadInitMap = Callable[[str, Sequence[str]], list[str]]
"""Takes a new type and the old types; returns the old types whose weights initialise its row.

Without such types the row is initialised at random.
"""


def load_tokenizer(base_model: str) -> PreTrainedTokenizerFast:
    """Loads the fast tokenizer of a base model.

    Raises:
        UserError: there is no such model, or it has no fast tokenizer.
    """
    try:
        config = AutoConfig.from_pretrained(base_model, **NO_CODE)
        prefix = {"add_prefix_space": True} if config.model_type in _NEED_PREFIX_SPACE else {}
        tokenizer: Any = AutoTokenizer.from_pretrained(
            base_model, use_fast=True, **prefix, **NO_CODE
        )
    except UNLOADABLE as error:
        raise _no_model(base_model, error) from error
    if not tokenizer.is_fast or tokenizer.pad_token_id is None:
        raise UserError(
            "no fast tokenizer with a padding token; use an encoder such as bert-base-cased",
            base_model,
        )
    fast: PreTrainedTokenizerFast = tokenizer
    return fast


def load_model(
    base_model: str, labels: LabelSet, max_subwords: int, head_init_map: HeadInitMap | None = None
) -> PreTrainedModel:
    """Loads an encoder, with a new head over the tags.

    Args:
        base_model: name on the hub, or folder.
        labels: labels of the head.
        max_subwords: number of sub-words that the encoder must accept.
        head_init_map: chooses types of the base model's own head; the mean of their rows
            initialises the row of a new type. None to initialise all rows at random.

    Raises:
        UserError: there is no such model, transformers has no tagging head for it, or it accepts
            fewer sub-words.
    """
    names = dict(enumerate(labels.tags))
    model = _loaded(
        AutoModelForTokenClassification,
        base_model,
        num_labels=len(names),
        id2label=names,
        label2id={name: index for index, name in names.items()},
        ignore_mismatched_sizes=True,
    )
    if hasattr(model.config, "tag_head"):  # the base model's CRF or span heads are not loaded
        model.config.tag_head = "linear"
    check_length(model, base_model, max_subwords)
    if head_init_map is not None:
        _renew_head(model)
        _borrow_rows(model, load_tagger(base_model), labels, head_init_map)
    elif _lends_head(base_model, len(names)):
        _renew_head(model)
    return model


def check_length(model: PreTrainedModel, base_model: str, max_subwords: int) -> None:
    """Checks that a model accepts a number of sub-words.

    Raises:
        UserError: it accepts fewer.
    """
    longest = getattr(model.config, "max_position_embeddings", max_subwords)
    if longest < max_subwords:
        raise UserError(
            f"accepts {longest} sub-words; give --max-subwords {longest} or less", base_model
        )


def _lends_head(base_model: str, n_tags: int) -> bool:
    """Whether the base model has a tagging head of our size, which transformers then loads."""
    config = AutoConfig.from_pretrained(base_model, **NO_CODE)
    is_tagger = any("TokenClassification" in name for name in config.architectures or ())
    return is_tagger and bool(config.num_labels == n_tags)


def load_tagger(folder: str) -> PreTrainedModel:
    """Loads an encoder with its own tagging head.

    Raises:
        UserError: there is no such model.
    """
    return _loaded(AutoModelForTokenClassification, folder)


def load_encoder(base_model: str) -> PreTrainedModel:
    """Loads an encoder without a head.

    Raises:
        UserError: there is no such model.
    """
    return _loaded(AutoModel, base_model)


def tag_names(model: PreTrainedModel) -> list[str]:
    """Tags of a tagger, by label id."""
    names: Any = model.config.id2label
    return [names[index] for index in range(len(names))]


@torch.no_grad()
def _renew_head(model: PreTrainedModel) -> None:
    """Initialises the head at random."""
    head = _head(model)
    nn.init.normal_(head.weight, std=getattr(model.config, "initializer_range", 0.02))
    nn.init.zeros_(head.bias)


@torch.no_grad()
def _borrow_rows(
    model: PreTrainedModel, other: PreTrainedModel, labels: LabelSet, head_init_map: HeadInitMap
) -> None:
    """Copies rows of another head: the row of O, and means of rows by `head_init_map`."""
    head, lent = _head(model), _head(other)
    known = {name: index for index, name in enumerate(tag_names(other))}
    types = [name[2:] for name in known if name.startswith("B-")]
    wanted = {"O": ["O"]} | {
        f"{prefix}-{name}": [f"{prefix}-{source}" for source in head_init_map(name, types)]
        for name in labels.categories
        for prefix in "BI"
    }
    for index, name in enumerate(tag_names(model)):
        if rows := [known[source] for source in wanted[name] if source in known]:
            head.weight[index] = lent.weight[rows].mean(0)
            head.bias[index] = lent.bias[rows].mean()


def _head(model: PreTrainedModel) -> nn.Linear:
    head = model.get_submodule("classifier")
    assert isinstance(head, nn.Linear)
    return head


def _loaded(kind: Any, base_model: str, **options: Any) -> PreTrainedModel:
    """Loads a model with one of transformers' Auto classes."""
    try:
        model: PreTrainedModel = kind.from_pretrained(base_model, **options, **NO_CODE)
    except UNLOADABLE as error:
        raise _no_model(base_model, error) from error
    return model


def _no_model(base_model: str, error: Exception) -> UserError:
    if "trust_remote_code" in str(error):
        return UserError(
            "this model needs code of its own, which we do not run (trust_remote_code=False); "
            "give a model of transformers itself",
            base_model,
        )
    path = Path(base_model)
    is_path = path.is_absolute() or path.exists() or len(path.parts) > 2
    reason = "no such folder" if is_path and not path.exists() else str(error).split("\n", 1)[0]
    return UserError(
        f"{reason.rstrip('.')}; give a model of the hub, a folder with config.json, weights and "
        "tokenizer, or `tiny`",
        base_model,
    )
