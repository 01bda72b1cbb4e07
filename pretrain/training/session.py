"""A run of pre-training: arguments of the Trainer, record, and checkpoints."""

from __future__ import annotations

import logging
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

import torch
from datasets import Dataset
from transformers import HfArgumentParser, Trainer, TrainingArguments, set_seed

from nerbert.commands.options import near, options_of
from nerbert.commands.process import cores
from nerbert.errors import UserError
from nerbert.reports import TRAINING, versions
from nerbert.storage import files
from nerbert.storage.records import seal
from pretrain.settings import RECORD, Settings
from pretrain.training import tiny
from pretrain.training.checkpoints import damage, last_whole, resume
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


_DECIDING = (
    "seed",
    "learning_rate",
    "weight_decay",
    "num_train_epochs",
    "max_steps",
    "lr_scheduler_type",
    "lr_scheduler_kwargs",
    "warmup_steps",
    "optim",
    "optim_args",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "max_grad_norm",
    "label_smoothing_factor",
    "neftune_noise_alpha",
)
"""Training arguments that must be equal to continue a stopped run."""


_MEASURED = ("train_s", "subwords_per_s", "padding")
"""Results that only a run with steps can have."""


class TrainingRun(Generic[S]):
    """A run of pre-training.

    Attributes:
        settings: settings of the run.
        args: arguments of the Trainer.
        checkpoint: checkpoint to continue from: the requested one, or the last complete one of the
            output folder; None to start from the base model.
    """

    def __init__(
        self,
        settings: S,
        training_flags: Sequence[str],
        kind: Mapping[str, Any],
        corpus: str,
        tags: Sequence[str] | None = None,
        **facts: Any,
    ) -> None:
        """Begins a run: checks flags and output folder, and writes the record.

        Args:
            settings: checked settings.
            training_flags: flags of TrainingArguments.
            kind: defaults of TrainingArguments for this kind of pre-training.
            corpus: fingerprint of the corpus.
            tags: tags that the head of a checkpoint must have; None to not check them.
            facts: additional entries of the record.

        Raises:
            UserError: a flag is wrong, or the output folder holds other files, or a run with other
                settings or corpus.
        """
        self.args, self.settings = training_arguments(settings, training_flags, kind)
        self.folder = Path(settings.output)
        self._record: dict[str, Any] = {
            "corpus": corpus,
            "settings": self.settings.identity(),
            "training": {name: _plain(getattr(self.args, name)) for name in _DECIDING},
        }
        self._measured: dict[str, Any] = {}  # by an earlier run, which was finished
        self.checkpoint = self._checkpoint(tags)
        if self.args.process_index == 0:
            self._begin(facts)
        set_seed(self.args.seed)

    def base_model(self, rows: Callable[[], Dataset]) -> str:
        """Name or folder of the base model; `tiny` is made from the rows of the corpus."""
        renew = self.checkpoint is None and self.args.process_index == 0
        return tiny.base_model(self.settings.base_model, self.folder / "base", rows, renew)

    def _checkpoint(self, tags: Sequence[str] | None) -> str | None:
        resume_from = self.args.resume_from_checkpoint
        if resume_from and str(resume_from).lower() not in ("true", "false"):
            self._check_checkpoint(Path(resume_from), tags)
            return str(resume_from)
        record = self._record_of(self.folder)
        if record is None:
            if files.is_used_folder(str(self.folder)):
                raise UserError(f"{self.folder}: holds something else; give an empty --output")
            return None
        last = last_whole(self.folder)
        if last is None:  # nothing was trained yet, so other settings are allowed
            return None
        self._check_same(record, self.folder)
        self._measured = {k: v for k, v in record.get("results", {}).items() if k in _MEASURED}
        return str(last)

    def _record_of(self, folder: Path) -> dict[str, Any] | None:
        """The record of the run in a folder; None if there is none."""
        path = folder / RECORD
        record = files.read_json_or_none(str(path))
        if isinstance(record, dict) and {"corpus", "settings", "training"} <= record.keys():
            return record
        if path.is_file():
            raise UserError(f"{path}: torn, or not of a run; restore it, or give another --output")
        return None

    def _check_same(self, record: dict[str, Any], where: Path) -> None:
        if record["corpus"] != self._record["corpus"]:
            raise UserError(f"{where}: was trained on another corpus; give another --output")
        for part in ("settings", "training"):
            for name in {**record[part], **self._record[part]}:
                value, our_value = record[part].get(name), self._record[part].get(name)
                if our_value != value:
                    raise UserError(
                        f"{where}: was trained with {name} {value!r}, not {our_value!r}; "
                        "give another --output"
                    )

    def _check_checkpoint(self, path: Path, tags: Sequence[str] | None) -> None:
        """Checks that a checkpoint is complete, and of this corpus and view.

        Raises:
            UserError: it is not.
        """
        if (reason := damage(path)) is not None:
            raise UserError(
                f"--resume-from-checkpoint {path}: not a complete checkpoint ({reason}); give one "
                "of an earlier step"
            )
        config = files.read_json(str(path / "config.json"))
        if tags is not None and list(config.get("id2label", {}).values()) != list(tags):
            raise UserError(
                f"--resume-from-checkpoint {path}: its tags are not those of the corpus; give a "
                "checkpoint of this corpus and --categories"
            )
        if record := self._record_of(path.parent):
            self._check_same(record, path)

    def _begin(self, facts: Mapping[str, Any]) -> None:
        self._record["versions"] = {
            "python": sys.version.split()[0],
            "cuda": torch.version.cuda,
            **versions(*TRAINING, "accelerate"),
        }
        self._record["name"] = self.folder.name
        self._record |= facts
        files.write_json(str(self.folder / RECORD), self._record)

    def train(self, trainer: Trainer) -> dict[str, Any]:
        """Trains from the checkpoint on; returns steps, epochs and seconds."""
        start = time.monotonic()
        resume(trainer, self.checkpoint)
        if not (self.checkpoint or "").endswith(f"-{trainer.state.global_step}"):
            self._measured = {}
        return {
            "steps": trainer.state.global_step,
            "epochs": round(trainer.state.epoch or 0, 4),
            "train_s": round(time.monotonic() - start, 1),
        }

    def finish(self, results: dict[str, Any]) -> dict[str, Any]:
        """Adds the results to the record, and returns the record.

        If the training was finished before, what was measured then counts: now no step was made.
        """
        self._record["results"] = results | self._measured
        files.write_json(str(self.folder / RECORD), self._record)
        return self._record

    def seal(self, outputs: Collection[str]) -> None:
        """Writes the record for the last time, with the sizes of the files of the checkpoint.

        Args:
            outputs: names of these files.
        """
        if self.args.process_index == 0:
            seal(str(self.folder / RECORD), self._record, outputs)


def _plain(value: Any) -> Any:
    """An enumeration's value, anything else as it is."""
    return getattr(value, "value", value)
