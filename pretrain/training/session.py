"""A run of pre-training: arguments of the Trainer, record, and checkpoints."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic

import torch
from datasets import Dataset
from transformers import Trainer, set_seed

from nerbert.errors import UserError
from nerbert.reports import TRAINING, versions
from nerbert.storage.places import Place
from nerbert.storage.records import difference, seal
from pretrain.settings import RECORD
from pretrain.training import tiny
from pretrain.training.arguments import S, training_arguments
from pretrain.training.checkpoints import damage, last_whole, resume

_DECIDING = (
    "seed",
    "data_seed",
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

_DECIDED = ("corpus", "settings", "training")
"""Keys of the record that must be equal for that."""

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
        self.measured: dict[str, Any] = {}  # by an earlier run, which was finished
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
            if Place(self.folder).is_used_folder():
                raise UserError(f"{self.folder}: holds something else; give an empty --output")
            return None
        last = last_whole(self.folder)
        if last is None:  # nothing was trained yet, so other settings are allowed
            return None
        if change := self._difference(record):
            raise UserError(f"{self.folder}: made with {change}; give another --output")
        self.measured = {k: v for k, v in record.get("results", {}).items() if k in _MEASURED}
        return str(last)

    def _record_of(self, folder: Path) -> dict[str, Any] | None:
        """The record of the run in a folder; None if there is none."""
        path = folder / RECORD
        record = Place(path).read_json_or_none()
        if isinstance(record, dict) and {*_DECIDED} <= record.keys():
            return record
        if path.is_file():
            raise UserError(f"{path}: torn, or not of a run; restore it, or give another --output")
        return None

    def _difference(self, record: dict[str, Any]) -> str:
        """What another run was made with that this one is not; "" if nothing."""
        was, now = ({key: run[key] for key in _DECIDED} for run in (record, self._record))
        return difference(was, now)

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
        config = Place(path / "config.json").read_json()
        if tags is not None and list(config.get("id2label", {}).values()) != list(tags):
            raise UserError(
                f"--resume-from-checkpoint {path}: its tags are not those of the corpus; give a "
                "checkpoint of this corpus and --categories"
            )
        if (record := self._record_of(path.parent)) and (change := self._difference(record)):
            raise UserError(
                f"--resume-from-checkpoint {path}: made with {change}; give a checkpoint of the "
                "same corpus and settings"
            )

    def _begin(self, facts: Mapping[str, Any]) -> None:
        self._record["versions"] = {
            "python": sys.version.split()[0],
            "cuda": torch.version.cuda,
            **versions(*TRAINING, "accelerate"),
        }
        self._record["name"] = self.folder.name
        self._record |= facts
        Place(self.folder / RECORD).write_json(self._record)

    def train(self, trainer: Trainer) -> dict[str, Any]:
        """Trains from the checkpoint on; returns steps, epochs and seconds."""
        start = time.monotonic()
        resume(trainer, self.checkpoint)
        if not (self.checkpoint or "").endswith(f"-{trainer.state.global_step}"):
            self.measured = {}
        return {
            "steps": trainer.state.global_step,
            "epochs": round(trainer.state.epoch or 0, 4),
            "train_s": round(time.monotonic() - start, 1),
        }

    def finish(self, results: dict[str, Any]) -> dict[str, Any]:
        """Adds the results to the record, and returns the record.

        If the training was finished before, what was measured then counts: now no step was made.
        """
        self._record["results"] = results | self.measured
        Place(self.folder / RECORD).write_json(self._record)
        return self._record

    def seal(self, outputs: Collection[str]) -> None:
        """Writes the record for the last time, with the sizes of the files of the checkpoint.

        Args:
            outputs: names of these files.
        """
        if self.args.process_index == 0:
            seal(Place(self.folder / RECORD), self._record, outputs)


def _plain(value: Any) -> Any:
    """An enumeration's value, anything else as it is."""
    return getattr(value, "value", value)
