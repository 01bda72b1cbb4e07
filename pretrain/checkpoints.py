"""The output folder: what it was made with, and where a stopped run goes on."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import TrainingArguments

from pipeline.errors import UserError
from pretrain.config import Settings

RECORD = "pretrain.json"
_LIBRARIES = ("nerbert", "torch", "transformers", "tokenizers", "datasets", "accelerate")

_DECIDING = (
    "seed", "learning_rate", "weight_decay", "num_train_epochs", "max_steps", "lr_scheduler_type",
    "warmup_steps", "optim",
)  # fmt: skip
"""Training arguments that two runs must share for one to go on where the other stopped."""


class Output:
    """The folder of a pre-training."""

    def __init__(
        self, folder: Path, settings: Settings, args: TrainingArguments, corpus: str
    ) -> None:
        """Describes a run.

        Args:
            folder: of the checkpoint.
            settings: of the run.
            args: of the Trainer.
            corpus: fingerprint.
        """
        self._folder = folder
        self._args = args
        self._record: dict[str, Any] = {
            "corpus": corpus,
            "settings": settings.identity(),
            "training": {name: _plain(getattr(args, name)) for name in _DECIDING},
        }

    def checkpoint(self, tags: Sequence[str] | None = None) -> str | None:
        """The checkpoint to go on from: the one asked for, or the folder's last whole one.

        Args:
            tags: that its head must have, if it is to have any.

        Raises:
            UserError: the folder holds something else, or a run with other settings or corpus.
        """
        wanted = self._args.resume_from_checkpoint
        if wanted and str(wanted).lower() not in ("true", "false"):
            self._check_checkpoint(Path(wanted), tags)
            return str(wanted)
        found = self._found()
        if found is None:
            if self._folder.is_dir() and any(self._folder.iterdir()):
                raise UserError(f"{self._folder}: holds something else; give an empty --output")
            return None
        whole = [path for path in self._folder.glob("checkpoint-*") if is_whole(path)]
        if not whole:  # nothing was learnt that other settings could spoil
            return None
        self._check_same(found, self._folder)
        return str(max(whole, key=lambda path: int(path.name.rpartition("-")[2])))

    def _found(self) -> dict[str, Any] | None:
        path = self._folder / RECORD
        if not path.is_file():
            return None
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return record

    def _check_same(self, found: dict[str, Any], where: Path) -> None:
        if found["corpus"] != self._record["corpus"]:
            raise UserError(f"{where}: was trained on another corpus; give another --output")
        for part in ("settings", "training"):
            for name, value in found[part].items():
                if (ours := self._record[part].get(name)) != value:
                    raise UserError(
                        f"{where}: was trained with {name} {value!r}, not {ours!r}; "
                        "give another --output"
                    )

    def _check_checkpoint(self, path: Path, tags: Sequence[str] | None) -> None:
        """Raises when a checkpoint is not whole, or of another corpus or view."""
        if not is_whole(path):
            raise UserError(
                f"--resume-from-checkpoint {path}: no whole checkpoint (no readable "
                "trainer_state.json); give one of an earlier step"
            )
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        if tags is not None and list(config.get("id2label", {}).values()) != list(tags):
            raise UserError(
                f"--resume-from-checkpoint {path}: its tags are not those of the corpus; give a "
                "checkpoint of this corpus and --categories"
            )
        record = path.parent / RECORD
        if record.is_file():
            self._check_same(json.loads(record.read_text(encoding="utf-8")), path)

    def begin(self, **facts: Any) -> None:
        """Writes what the run is made with, before its first step; `facts` stand in the record."""
        self._record["versions"] = {
            "python": sys.version.split()[0], "cuda": torch.version.cuda,
            **{name: version(name) for name in _LIBRARIES},
        }  # fmt: skip
        self._record["name"] = self._folder.name
        self._record |= facts
        self._write()

    def finish(self, results: dict[str, Any]) -> dict[str, Any]:
        """Adds what came of it, and returns the whole record."""
        self._record["results"] = results
        self._write()
        return self._record

    def _write(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = self._folder / (RECORD + ".tmp")
        temporary.write_text(json.dumps(self._record, indent=1, ensure_ascii=False) + "\n")
        temporary.replace(self._folder / RECORD)


def is_whole(checkpoint: Path) -> bool:
    """Whether a checkpoint was written to its end: the Trainer writes its state last."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _plain(value: Any) -> Any:
    """An enumeration's value, anything else as it is."""
    return getattr(value, "value", value)
