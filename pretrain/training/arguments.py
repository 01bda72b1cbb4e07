"""Arguments of the Trainer: defaults, flags of the user, and when it scores."""

from __future__ import annotations

import logging
import os
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NoReturn, TypeVar

import torch
from transformers import HfArgumentParser, TrainingArguments

from nerbert.commands.options import options_of
from nerbert.commands.process import cores
from nerbert.commands.values import near
from nerbert.errors import UserError
from pretrain.settings import Settings
from pretrain.training.features import UNLINKED

S = TypeVar("S", bound=Settings)
_LOGGER = logging.getLogger("nerbert")
_NAMES = {entry.name for entry in fields(TrainingArguments)}


_OURS = {"output_dir": "--output", "run_name": None}


class _Parser(HfArgumentParser):
    """A parser for the flags of TrainingArguments, whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def processes() -> int:
    """Number of cores that each process of a run may use on this machine."""
    return max(1, cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


TAGGING: Mapping[str, Any] = {
    "load_best_model_at_end": True,
    "metric_for_best_model": "f1",
    "greater_is_better": True,
    "label_names": ["labels", UNLINKED],
    "batch_eval_metrics": True,
}
"""Arguments for entity tagging, besides `_defaults`."""


def _defaults(output: str, on_gpu: bool) -> dict[str, Any]:
    """Our defaults that differ from those of TrainingArguments."""
    return {
        "output_dir": output,
        "eval_strategy": "steps",
        "save_strategy": "steps",
        "save_total_limit": 2,
        "remove_unused_columns": False,
        "logging_nan_inf_filter": False,  # it would replace a NaN loss in the log by the last one
        "disable_tqdm": True,
        "report_to": "none",
        "ddp_find_unused_parameters": False,
        "optim": "adamw_torch_fused",
        "bf16": on_gpu and torch.cuda.is_bf16_supported(),
        "torch_compile": on_gpu,
        "dataloader_num_workers": min(12, max(1, processes() - 1)) if on_gpu else 1,
        "dataloader_pin_memory": on_gpu,
    }


def training_arguments(
    settings: S, training_flags: Sequence[str], kind: Mapping[str, Any] = TAGGING
) -> tuple[TrainingArguments, S]:
    """Makes the Trainer's arguments; also returns the settings, with the resulting batch size.

    Args:
        settings: settings of the run, with the recipe's values for TrainingArguments.
        training_flags: flags of TrainingArguments.
        kind: defaults of this kind of pre-training.

    Raises:
        UserError: a flag or a key of the recipe is unknown, or has a wrong value.
    """
    for name in settings.training:
        if name not in _NAMES or name in _OURS:
            raise UserError(f"recipe, [training]: unknown key {name!r}{near(name, _NAMES)}")
    typed_names = {
        part.split("=")[0].lstrip("-").replace("-", "_")
        for part in training_flags
        if part.startswith("--")
    }
    if typed_names & set(_OURS):
        raise UserError("--output_dir: give --output instead")
    if "eval_steps" in typed_names and "save_steps" not in typed_names:
        training_flags = [*training_flags, "--save_steps", _value(training_flags, "--eval_steps")]
    if "bf16" in {*typed_names, *settings.training} and not torch.accelerator.is_available():
        # Else transformers says that this needs a GPU; processors have it, too.
        training_flags = [*training_flags, "--use_cpu", "true"]
    parser = _Parser(TrainingArguments, allow_abbrev=False)  # type: ignore[arg-type]
    on_gpu = torch.cuda.is_available() and "use_cpu" not in typed_names
    parser.set_defaults(**{**_defaults(settings.output, on_gpu), **kind, **settings.training})
    try:
        args, unknown = parser.parse_args_into_dataclasses(
            list(training_flags), return_remaining_strings=True, look_for_args_file=False
        )
    except (ValueError, ImportError) as error:
        raise UserError(f"training arguments: {' '.join(str(error).split())}") from error
    if unknown:
        flags = ["--" + name.replace("_", "-") for name in _NAMES]
        flags += [flag for entry in options_of(type(settings)) for flag in entry.flags]
        raise UserError(f"{unknown[0]}: unknown flag{near(unknown[0], flags) or '; see --help'}")
    if not 0 <= args.seed < 1 << 32:
        raise UserError(f"--seed {args.seed}: give a number from 0 to {(1 << 32) - 1}")
    if "gradient_accumulation_steps" in typed_names:
        size = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
        settings = replace(settings, batch_size=size)
    return args, settings


def _value(training_flags: Sequence[str], flag: str) -> str:
    """The last value of a flag that was typed."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(flag, flag.replace("_", "-"), dest="value", default="")
    value: str = parser.parse_known_args(list(training_flags))[0].value
    return value


_SCORING = 1 / 3
"""Time of scoring a piece, forwards only, in times that of training on one."""


_MOST_SCORING = 0.1
"""Largest share of a run's time that scoring may take, if its places are a share of the steps."""


_ONCE = 0.999  # share of the steps: at the end. The Trainer takes 1 as a number of steps.


def space_scores(args: TrainingArguments, trained: int, scored: int) -> None:
    """Scores, and writes checkpoints, less often if scoring took more than a tenth of the run.

    That holds where the arguments say the share of the steps between two scores, not a number.

    Args:
        args: arguments of the Trainer.
        trained: pieces of an epoch.
        scored: validation pieces.
    """
    between = args.eval_steps
    if between is None or not 0 < between < 1 or not 0 < args.save_steps < 1:
        return
    size = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
    total = args.max_steps * size if args.max_steps > 0 else args.num_train_epochs * trained
    least = min(_SCORING * scored / (_MOST_SCORING * max(total, 1)), _ONCE)
    if least > between:
        _LOGGER.info(
            "scores on %s pieces after each %.0f %% of the steps, not %.0f %%: they may take a "
            "tenth of the time",
            f"{scored:,}",
            100 * least,
            100 * between,
        )
        args.eval_steps = args.save_steps = least


def spread(args: TrainingArguments, batch_size: int, pieces: int) -> None:
    """Sets the number of accumulated batches, so that no batch exceeds the size of a device.

    Raises:
        UserError: there are fewer pieces than devices.
    """
    if pieces < args.world_size:
        raise UserError(f"{pieces} pieces for {args.world_size} devices; use fewer devices")
    steps = -(-pieces // batch_size)
    share = -(-pieces // (steps * args.world_size))
    args.gradient_accumulation_steps = -(-share // args.per_device_train_batch_size)
