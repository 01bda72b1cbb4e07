"""Loads a tagger with the head of its checkpoint, also one that transformers does not know."""

from __future__ import annotations

from transformers import PreTrainedModel

from finetune.heads.head import head_class
from finetune.parts import models
from nerbert.seams import load
from pretrain.training.checkpoints import add_head
from pretrain.training.models import load_tagger
from pretrain.training.tokenizer import load_config


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
        add_head(model, head.name, head.parts[0], head.restore, folder)
    return model
