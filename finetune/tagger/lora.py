"""LoRA: trains matrices beside the layers of an encoder instead of their weights, and the head."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from peft import LoraConfig, LoraModel
from torch import nn

from nerbert.errors import UserError

_NAME = "default"


@contextmanager
def lora(model: nn.Module, heads: Collection[str], rank: int, alpha: int) -> Iterator[None]:
    """Adds LoRA's matrices to all linear layers but the head; adds them to the weights afterwards.

    In between only these matrices and the head are trained. The layers are changed in place, so
    that checkpoints of the Trainer hold the head and the matrices as well as all other weights.

    Args:
        model: tagger.
        heads: names of the modules that are its head.
        rank: rank of the matrices; 0 changes nothing.
        alpha: scale of the matrices: their product is multiplied by alpha / rank.

    Raises:
        UserError: the model has no linear layers.
    """
    if rank == 0:
        yield
        return
    linear = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name.partition(".")[0] not in heads
    ]
    if not linear:
        raise UserError("--lora-rank: this model has no linear layers but its head; leave it out")
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=linear)
    layers = LoraModel(model, config, _NAME)
    for head in heads:
        if hasattr(model, head):
            model.get_submodule(head).requires_grad_(True)
    yield
    layers.merge_and_unload()
