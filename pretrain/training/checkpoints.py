"""The checkpoints of a run: which of them are whole, and how training continues from one."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import is_zipfile

from transformers import Trainer

from nerbert.errors import UserError
from nerbert.storage import files

_LOGGER = logging.getLogger("nerbert")
_STATE = "trainer_state.json"
_SHARDED = ("global_step*", "optimizer_0", "pytorch_model_fsdp*")
"""What DeepSpeed and FSDP write instead of one file of weights and one of the optimiser."""


def last_whole(folder: Path) -> Path | None:
    """The last complete checkpoint in a folder; None if there is none. Later ones are logged."""
    found = sorted(folder.glob("checkpoint-*"), key=_step, reverse=True)
    for path in found:
        reason = damage(path)
        if reason is None:
            return path
        _LOGGER.warning("%s: left out (%s); an earlier checkpoint is used", path, reason)
    return None


def _step(checkpoint: Path) -> int:
    number = checkpoint.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def damage(checkpoint: Path) -> str | None:
    """Why training cannot continue from a checkpoint exactly; None if it can.

    The Trainer writes `trainer_state.json` last, but after a power cut, a full disk or a copy that
    was cut off any file may be missing or torn.
    """
    for name in (_STATE, "config.json"):
        content = files.read_json_or_none(str(checkpoint / name))
        if not isinstance(content, dict):
            return f"{name} is missing or torn"
    if any(any(checkpoint.glob(pattern)) for pattern in _SHARDED):
        return None
    if reason := _damaged_weights(checkpoint):
        return reason
    random_states = sorted(checkpoint.glob("rng_state*.pth"))
    for path in (checkpoint / "optimizer.pt", checkpoint / "scheduler.pt", *random_states):
        if not is_zipfile(path):
            return f"{path.name} is missing or torn"
    return None if random_states else "rng_state.pth is missing"


def _damaged_weights(checkpoint: Path) -> str | None:
    index = checkpoint / "model.safetensors.index.json"
    names = {"model.safetensors"}
    if index.is_file():
        content = files.read_json_or_none(str(index))
        if not isinstance(content, dict) or not isinstance(content.get("weight_map"), dict):
            return f"{index.name} is torn"
        names = set(content["weight_map"].values())
    for name in sorted(names):
        path = checkpoint / name
        if not path.is_file():
            # Other formats of weights are read by transformers, and errors are its own.
            return None if any(checkpoint.glob("pytorch_model*.bin")) else f"{name} is missing"
        if not _is_whole_safetensors(path):
            return f"{name} is torn"
    return None


def _is_whole_safetensors(path: Path) -> bool:
    """Whether a file has all bytes that its head announces.

    Source: safetensors, format: 8 bytes with the length of the head, the head in JSON, the data.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= size - 8:
            return False
        try:
            head: dict[str, Any] = json.loads(file.read(length))
        except ValueError:
            return False
    ends = [entry["data_offsets"][1] for name, entry in head.items() if name != "__metadata__"]
    return size == 8 + length + max(ends, default=0)


def train(trainer: Trainer, checkpoint: str | None) -> None:
    """Trains from the start, or from a checkpoint.

    A finished run is not trained any more, unless more steps are asked for than it has.

    Raises:
        UserError: the checkpoint holds objects that only foreign code can load.
    """
    if checkpoint is not None:
        state = files.read_json(os.path.join(checkpoint, _STATE))
        done = state["global_step"]
        if done >= state["max_steps"] and trainer.args.max_steps <= done:
            # The Trainer would train one more step of an epoch that a run ended in.
            accumulated = trainer.args.gradient_accumulation_steps
            per_epoch = max(1, -(-len(trainer.get_train_dataloader()) // accumulated))
            trainer.args.max_steps = -1
            trainer.args.num_train_epochs = done // per_epoch
    try:
        trainer.train(resume_from_checkpoint=checkpoint)
    except UnpicklingError as error:
        reason = str(error).strip().splitlines()[0][:100]
        raise UserError(f"not a checkpoint of ours ({reason}); remove it", checkpoint) from error
