"""Checkpoints: which are whole, how training continues, whether weights and tokenizer fit."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import torch
from safetensors.torch import load_file
from transformers import PreTrainedModel
from transformers.utils.hub import cached_file

from nerbert.digests import fingerprint
from nerbert.errors import UserError
from nerbert.storage.places import Place
from pretrain.training.tokenizer import UNLOADABLE

if TYPE_CHECKING:  # loads what only training needs
    from transformers import Trainer

_LOGGER = logging.getLogger("nerbert")
_STATE = "trainer_state.json"
_SHARDED = ("global_step*", "optimizer_0", "pytorch_model_fsdp*")
"""What DeepSpeed and FSDP write instead of one file of weights and one of the optimiser."""


def last_whole(folder: Path) -> Path | None:
    """The last complete checkpoint in a folder; None if there is none. Later ones are logged."""
    folders = sorted(folder.glob("checkpoint-*"), key=_step, reverse=True)
    for path in folders:
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
        content = Place(checkpoint / name).read_json_or_none()
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
        content = Place(index).read_json_or_none()
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


def resume(trainer: Trainer, checkpoint: str | None) -> None:
    """Trains from the start, or from a checkpoint.

    A finished run is not trained any more, unless more steps are asked for than it has.

    Raises:
        UserError: the checkpoint holds objects that only foreign code can load.
    """
    if checkpoint is not None:
        state = (Place(checkpoint) / _STATE).read_json()
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


KeyFilter = Callable[[str, PreTrainedModel], bool]
"""Takes the name of a weight, and the model; says whether the model may do without it."""

_SAMPLED = 256
"""Sub-words of a tokenizer that its digest has."""
_SPARE = 2
"""Models have a few vectors more than their tokenizer has sub-words, but not twice as many."""


def is_head(name: str, model: PreTrainedModel) -> bool:
    """Whether a weight belongs to a head, which is new by design, or to a part that we do not use.

    In a file that an encoder without a head wrote, names have no prefix.
    """
    parts = {part for part, _ in model.base_model.named_children()}
    first = name.removeprefix(f"{model.base_model_prefix}.").partition(".")[0]
    return is_pooler(name, model) or first not in parts


def is_pooler(name: str, model: PreTrainedModel) -> bool:
    """Whether a weight is of the pooler, which tags need not, or a table of old checkpoints."""
    parts = name.split(".")
    return "pooler" in parts or parts[-1] == "position_ids"


def check_weights(
    base_model: str, model: PreTrainedModel, info: Mapping[str, Any], may_lack: KeyFilter
) -> None:
    """Checks the weights of a loaded model.

    Args:
        base_model: name on the hub, or folder.
        model: the model.
        info: what transformers says of the loading (`output_loading_info`).
        may_lack: says which weights may be missing, or left over.

    Raises:
        UserError: a weight is missing, left over, of another shape, or not finite.
    """
    mismatched = [key if isinstance(key, str) else key[0] for key in info["mismatched_keys"]]
    problems = {
        "its checkpoint lacks": info["missing_keys"],
        "its config.json has no place for": info["unexpected_keys"],
        "its config.json has other sizes for": mismatched,
    }
    for problem, names in problems.items():
        if bad := sorted(name for name in names if not may_lack(name, model)):
            count = "1 weight" if len(bad) == 1 else f"{len(bad):,} weights, such as"
            is_encoder = names and all(name.startswith("classifier.") for name in names)
            hint = "; if it is an encoder, fine-tune it first" if is_encoder else ""
            raise UserError(f"{problem} {count} {bad[0]}{hint}", base_model)
    check_finite(model, base_model, info["missing_keys"])


def check_finite(model: torch.nn.Module, base_model: str, new: Collection[str] = ()) -> None:
    """Checks that no weight is NaN or infinite.

    Args:
        model: the model, or a part of it.
        base_model: name on the hub, or folder.
        new: names of weights that are not of the checkpoint.

    Raises:
        UserError: one is.
    """
    for name, values in model.named_parameters():
        if name not in new and not torch.isfinite(values).all():
            raise UserError(f"the weights {name} are not finite; train it again", base_model)


def add_head(
    model: PreTrainedModel,
    head: str,
    part: str,
    add: Callable[[PreTrainedModel], object],
    folder: str,
) -> None:
    """Adds a head that transformers does not know to a model, with the weights of its checkpoint.

    Args:
        model: the model.
        head: name of the head, for errors.
        part: name of its part of the model.
        add: adds the head, with other weights.
        folder: folder of the checkpoint, or name on the hub.

    Raises:
        UserError: its weights are missing, of another shape, or not finite.
    """
    prefix = f"{part}."
    try:
        add(model)
        file = cached_file(folder, "model.safetensors")
        assert file is not None
        weights = {
            name.removeprefix(prefix): value
            for name, value in load_file(file).items()
            if name.startswith(prefix)
        }
        model.get_submodule(part).load_state_dict(weights)
    except UNLOADABLE as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"its head {head!r} cannot be loaded ({reason})", folder) from error
    check_finite(model.get_submodule(part), folder)


def check_vocabulary(model: PreTrainedModel, tokenizer: Any, base_model: str) -> None:
    """Checks that a tokenizer is that of a model, and notes it in the model's config.

    Raises:
        UserError: it is not, by the number of its sub-words or by an earlier note.
    """
    config: Any = model.config
    digest = _digest(tokenizer)
    if getattr(config, "tokenizer_digest", digest) != digest:
        raise UserError("its tokenizer is not the one that it was trained with", base_model)
    config.tokenizer_digest = digest
    try:
        rows = getattr(model.get_input_embeddings(), "num_embeddings", None)
    except NotImplementedError:  # the model has no single table
        return
    if rows is not None and not rows / _SPARE <= len(tokenizer) <= rows:
        raise UserError(
            f"its tokenizer has {len(tokenizer):,} sub-words, and the model vectors of {rows:,}; "
            "they are not of the same model",
            base_model,
        )


def _digest(tokenizer: Any) -> str:
    """Digest of some sub-words, evenly spaced, and of what it makes of them in other cases.

    All sub-words would take a while.
    """
    size = len(tokenizer)
    ids = sorted({size * number // _SAMPLED for number in range(_SAMPLED)})
    tokens = tokenizer.convert_ids_to_tokens(ids)
    text = " ".join(map(str, tokens))
    encoded = tokenizer(f"{text} {text.upper()} caf\u00e9 e\u0301 \u4e2d\u6587", verbose=False)
    return fingerprint(size, tokens, encoded["input_ids"])
