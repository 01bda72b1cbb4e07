"""The Trainer's arguments: ours, changed by the recipe, changed by the flags."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any, NoReturn

import torch
from transformers import HfArgumentParser, TrainingArguments

from pipeline.errors import UserError
from pretrain.config import S
from pretrain.data import UNLINKED

_NAMES = {entry.name for entry in fields(TrainingArguments)}
_OURS = {"output_dir": "--output", "run_name": None}


class _Parser(HfArgumentParser):
    """The flags of TrainingArguments; a wrong value is one line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def processes() -> int:
    """Cores that each process of this machine may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


TAGGING: Mapping[str, Any] = {
    "load_best_model_at_end": True, "metric_for_best_model": "f1", "greater_is_better": True,
    "label_names": ["labels", UNLINKED], "batch_eval_metrics": True,
}  # fmt: skip
"""What entity tagging wants beside `_defaults`."""


def _defaults(output: str, on_gpu: bool) -> dict[str, Any]:
    """What a pre-training wants and TrainingArguments does not say by itself."""
    return {
        "output_dir": output,
        "eval_strategy": "steps", "save_strategy": "steps", "save_total_limit": 2,
        "remove_unused_columns": False, "logging_nan_inf_filter": False, "disable_tqdm": True,
        "report_to": "none", "ddp_find_unused_parameters": False, "optim": "adamw_torch_fused",
        "bf16": on_gpu and torch.cuda.is_bf16_supported(), "torch_compile": on_gpu,
        "dataloader_num_workers": min(12, max(1, processes() - 1)) if on_gpu else 1,
        "dataloader_pin_memory": on_gpu,
    }  # fmt: skip


def training_arguments(
    settings: S, rest: Sequence[str], kind: Mapping[str, Any] = TAGGING
) -> tuple[TrainingArguments, S]:
    """The arguments, and the settings with the batch size that they ask for.

    Args:
        settings: with what the recipe says of TrainingArguments.
        rest: flags.
        kind: defaults of this kind of pre-training.

    Raises:
        UserError: a flag or a key of the recipe is unknown, or its value is no good.
    """
    for name in settings.training:
        if name not in _NAMES or name in _OURS:
            raise UserError(f"recipe, [training]: unknown key {name!r}{_near(name)}")
    given = {part.split("=")[0].lstrip("-").replace("-", "_") for part in rest
             if part.startswith("--")}  # fmt: skip
    if given & set(_OURS):
        raise UserError("--output_dir: give --output instead")
    parser = _Parser(TrainingArguments, allow_abbrev=False)  # type: ignore[arg-type]
    on_gpu = torch.cuda.is_available() and "use_cpu" not in given
    parser.set_defaults(**{**_defaults(settings.output, on_gpu), **kind, **settings.training})
    try:
        args, unknown = parser.parse_args_into_dataclasses(
            list(rest), return_remaining_strings=True, look_for_args_file=False
        )
    except (ValueError, ImportError) as error:
        raise UserError(f"training arguments: {' '.join(str(error).split())}") from error
    if unknown:
        raise UserError(f"unknown flag {unknown[0]}{_near(unknown[0].lstrip('-'))}; see --help")
    if "gradient_accumulation_steps" in given:
        size = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
        settings = replace(settings, batch_size=size)
    return args, settings


def _near(name: str) -> str:
    near = get_close_matches(name.replace("-", "_"), _NAMES, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def spread(args: TrainingArguments, batch_size: int, pieces: int) -> None:
    """Sets how many batches a device takes for a step, none of them above its batch size.

    Raises:
        UserError: there are fewer pieces than devices.
    """
    if pieces < args.world_size:
        raise UserError(f"{pieces} pieces for {args.world_size} devices; use fewer devices")
    steps = -(-pieces // batch_size)
    share = -(-pieces // (steps * args.world_size))
    args.gradient_accumulation_steps = -(-share // args.per_device_train_batch_size)
