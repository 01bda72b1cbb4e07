"""Loads encoders, and taggers: encoders with a linear layer over all tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from transformers import (
    MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING,
    AutoModel,
    AutoModelForTokenClassification,
    PreTrainedModel,
)

from nerbert.errors import UserError
from nerbert.text.schemes import MARK, ModelTags, TagError
from nerbert.text.tags import LabelSet
from pretrain.training.checkpoints import KeyFilter, check_weights, is_head, is_pooler
from pretrain.training.tokenizer import NO_CODE, UNLOADABLE, load_config, load_tokenizer, no_model

_LONGEST = 512
HeadInitMap = Callable[[str, Sequence[str]], list[str]]
"""Takes a new type and the old types; returns the old types whose weights initialise its row.

Without such types the row is initialised at random.
"""


def load_model(
    base_model: str,
    labels: LabelSet,
    max_subwords: int | None,
    head_init_map: HeadInitMap | None = None,
) -> PreTrainedModel:
    """Loads an encoder, with a new head over the tags.

    Args:
        base_model: name on the hub, or folder.
        labels: labels of the head.
        max_subwords: number of sub-words that the encoder must accept; None for any.
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
        is_head,
        num_labels=len(names),
        id2label=names,
        label2id={name: index for index, name in names.items()},
    )
    model.config.tagging_scheme = MARK
    if hasattr(model.config, "tag_head"):  # the base model's CRF or span heads are not loaded
        model.config.tag_head = "linear"
    vars(model.config).pop("mention_scores", None)  # of the types of another head
    if max_subwords is not None:
        check_length(model, base_model, max_subwords)
    if head_init_map is not None:
        _renew_head(model)
        _borrow_rows(model, load_tagger(base_model), labels, head_init_map)
    elif _lends_head(base_model, len(names)):
        _renew_head(model)
    return model


def device_of(name: str = "auto") -> torch.device:
    """A device by its name; "auto" is a GPU (CUDA, else MPS) if there is one, else the CPU.

    Raises:
        UserError: there is no such device.
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"{str(error).splitlines()[0]}; give cpu, cuda or auto", name) from None
    return device


def place(model: PreTrainedModel, device: torch.device, half: bool) -> None:
    """Moves a model to a device, with weights of 16 bits if asked for; some heads keep 32."""
    model.to(device)  # type: ignore[arg-type]
    if half:
        model.to(torch.bfloat16 if device.type == "cpu" else torch.float16)  # type: ignore[arg-type]
        for module in model.children():
            if getattr(module, "keeps_float32", False):
                module.float()


def longest_input(model: PreTrainedModel) -> int:
    """Largest number of sub-words that a model takes, special ones included; at most 512.

    Encoders for longer texts would take more, but labelled sentences are short.
    """
    return min(_places(model) or _LONGEST, _LONGEST)


def check_length(model: PreTrainedModel, base_model: str, max_subwords: int) -> None:
    """Checks that a model accepts a number of sub-words.

    Raises:
        UserError: it accepts fewer.
    """
    longest = _places(model) or max_subwords
    if longest < max_subwords:
        raise UserError(
            f"accepts {longest} sub-words; give --max-subwords {longest} or less", base_model
        )


def _places(model: PreTrainedModel) -> int | None:
    """Number of positions; None if the model has none, or only relative ones."""
    places = getattr(model.config, "max_position_embeddings", None) or 0
    if places <= 0:
        return None
    # The positions of RoBERTa and its kin begin after that of the padding token.
    tables = (
        module.padding_idx
        for name, module in model.named_modules()
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
    )
    return int(places) - max((index + 1 for index in tables if index is not None), default=0)


def _lends_head(base_model: str, n_tags: int) -> bool:
    """Whether the base model has a tagging head of our size, which transformers then loads."""
    config = load_config(base_model)
    is_tagger = any("TokenClassification" in name for name in config.architectures or ())
    return is_tagger and bool(config.num_labels == n_tags)


def check_tagger_base(base_model: str) -> None:
    """Checks, without loading its weights, that a model can become a tagger.

    Raises:
        UserError: there is no such model, its files are torn, or transformers has no tagging head
            for it.
    """
    load_tokenizer(base_model)
    config = load_config(base_model)
    if type(config) not in MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING:
        raise UserError(f"transformers has no tagging head for {config.model_type}", base_model)
    folder = Path(base_model)
    weights = [*folder.glob("*.safetensors"), *folder.glob("*.bin")]
    if folder.is_dir() and not weights:
        raise UserError("no weights (model.safetensors) in this folder", base_model)
    for path in weights:
        if path.suffix == ".safetensors":
            try:
                with safe_open(path, "pt"):
                    pass
            except SafetensorError as error:
                raise no_model(base_model, error) from error


def load_tagger(folder: str, head_weights: Sequence[str] = ()) -> PreTrainedModel:
    """Loads an encoder with its own tagging head.

    Args:
        folder: folder, or name on the hub.
        head_weights: beginnings of the names of weights that the caller loads.

    Raises:
        UserError: there is no such model, weights are missing, or it has no tags.
    """
    by_caller = tuple(head_weights)
    model = _loaded(
        AutoModelForTokenClassification,
        folder,
        lambda name, model: (
            is_pooler(name, model) or bool(by_caller and name.startswith(by_caller))
        ),
    )
    _check_tags(model, folder)
    _rename_tags(model)
    return model


def load_encoder(base_model: str) -> PreTrainedModel:
    """Loads an encoder without a head.

    Raises:
        UserError: there is no such model, or weights are missing.
    """
    return _loaded(AutoModel, base_model, is_head)


def _check_tags(model: PreTrainedModel, folder: str) -> None:
    """Checks that the labels of a tagger are numbered from 0, and that there is one besides O."""
    names: Any = model.config.id2label or {}
    tags = [names.get(index) for index in range(len(names))]
    if None in tags or len(set(tags)) < max(2, len(tags)):
        raise UserError(
            f"its config.json has no tags to use (id2label: {str(names)[:60]}...)", folder
        )


def tag_names(model: PreTrainedModel) -> list[str]:
    """Tags of a tagger, by label id."""
    names: Any = model.config.id2label
    return [names[index] for index in range(len(names))]


def model_tags(model: PreTrainedModel) -> ModelTags:
    """The tags of a tagger, and how they are decoded.

    Raises:
        TagError: its labels are no tags.
    """
    return ModelTags.of(tag_names(model), getattr(model.config, "tagging_scheme", None))


@torch.no_grad()
def _rename_tags(model: PreTrainedModel) -> None:
    """Gives all tags a prefix, and moves O to label id 0; T-NER's taggers have it last."""
    try:
        tags = model_tags(model)
    except TagError:
        return  # whoever needs tags says so
    if tags.order != sorted(tags.order):
        head = _head(model)
        head.weight.copy_(head.weight[tags.order].clone())
        head.bias.copy_(head.bias[tags.order].clone())
    model.config.id2label = dict(enumerate(tags.names))
    model.config.label2id = {name: index for index, name in model.config.id2label.items()}


@torch.no_grad()
def _renew_head(model: PreTrainedModel) -> None:
    """Initialises the head at random."""
    head = _head(model)
    nn.init.normal_(head.weight, std=getattr(model.config, "initializer_range", 0.02))
    nn.init.zeros_(head.bias)


@torch.no_grad()
def _borrow_rows(
    model: PreTrainedModel, lender: PreTrainedModel, labels: LabelSet, head_init_map: HeadInitMap
) -> None:
    """Copies rows of another head: the row of O, and means of rows by `head_init_map`."""
    head, lent = _head(model), _head(lender)
    row_of = {name: index for index, name in enumerate(tag_names(lender))}
    types = list(dict.fromkeys(name[2:] for name in row_of if name != "O"))
    # Taggers of IO and IOB1 have no B- of some types.
    rows_of = {(name[0], name[2:]): name for name in row_of}
    sources = {"O": ["O"]} | {
        f"{prefix}-{name}": [
            rows_of.get((prefix, source)) or rows_of.get((lender, source), "")
            for source in head_init_map(name, types)
        ]
        for name in labels.categories
        for prefix, lender in ("BI", "IB")
    }
    for index, name in enumerate(tag_names(model)):
        if rows := [row_of[source] for source in sources[name] if source in row_of]:
            head.weight[index] = lent.weight[rows].mean(0)
            head.bias[index] = lent.bias[rows].mean()


def _head(model: PreTrainedModel) -> nn.Linear:
    head = model.get_submodule("classifier")
    assert isinstance(head, nn.Linear)
    return head


def _loaded(kind: Any, base_model: str, may_lack: KeyFilter, **options: Any) -> PreTrainedModel:
    """Loads a model with one of transformers' Auto classes, and checks that all weights came.

    Its weights have 32 bits, also if those of the file have 16: small updates would be lost, and
    sums overflow.

    Args:
        kind: the class.
        base_model: name on the hub, or folder.
        may_lack: says which weights may be missing, or left over, by their names.
        options: options of the class.
    """
    load_config(base_model)
    try:
        model: PreTrainedModel
        model, info = kind.from_pretrained(
            base_model,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # `check_weights` says which
            **options,
            **NO_CODE,
        )
    except UNLOADABLE as error:
        raise no_model(base_model, error) from error
    check_weights(base_model, model, info, may_lack)
    return model
