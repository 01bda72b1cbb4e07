"""Loads a tagger with the head of its checkpoint, also one that transformers does not know."""

from __future__ import annotations

from transformers import PreTrainedModel

from finetune.heads.head import Head, head_class
from finetune.parts import models
from nerbert.errors import UserError
from nerbert.seams import load
from pretrain.training.checkpoints import load_part
from pretrain.training.models import load_tagger
from pretrain.training.tokenizer import UNLOADABLE, load_config


def know_architectures() -> None:
    """Lets transformers know the architectures of models without pre-training."""
    for entry in models().values():
        load(entry.build)


def load_with_head(folder: str) -> PreTrainedModel:
    """Loads a tagger with the head of its checkpoint.

    Raises:
        UserError: there is no such checkpoint, or weights are missing.
    """
    know_architectures()
    head = head_class(getattr(load_config(folder), "tag_head", "linear"))
    model = load_tagger(folder, [f"{name}." for name in head.parts])
    if head.parts:
        _load_parts(model, head, folder)
    return model


def _load_parts(model: PreTrainedModel, head: type[Head], folder: str) -> None:
    """Adds the parts of a head to a model, with their weights."""
    try:
        head.restore(model)
        load_part(model, head.parts[0], folder)
    except UNLOADABLE as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"its head {head.name!r} cannot be loaded ({reason})", folder) from error
