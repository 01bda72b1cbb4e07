"""Checks that a model has all the weights of its checkpoint, and its own tokenizer.

transformers initialises weights that a checkpoint lacks at random, and only logs it: such a tagger
gives other tags each time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from transformers import PreTrainedModel

from nerbert.digests import fingerprint
from nerbert.errors import UserError

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
            raise UserError(f"{problem} {count} {bad[0]}", base_model)
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
    found = tokenizer(f"{text} {text.upper()} caf\u00e9 e\u0301 \u4e2d\u6587", verbose=False)
    return fingerprint(size, tokens, found["input_ids"])
