"""Cells of the grid: each is one run of an encoder on a domain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from finetune.experiments.runs import Run
from nerbert.errors import UserError
from nerbert.storage.places import Place
from pretrain.settings import RECORD


@dataclass(frozen=True)
class Encoder:
    """An encoder of the grid.

    Attributes:
        model: name or folder.
        domain: domain of its domain-adaptive pre-training; None for the base model, which is used
            for all domains.
        masking: masking of this pre-training.
        level: level of the domain corpus.
        fraction: share of the domain corpus.
        system: row of a baseline system on this model; empty for the plain fine-tuning.
    """

    model: str
    domain: str | None = None
    masking: str = ""
    level: str = ""
    fraction: float = 1.0
    system: str = ""

    @property
    def name(self) -> str:
        """Its name in the published tables, such as "none" or "span integrated"."""
        share = "" if self.fraction == 1 else f" {self.fraction:g}"
        adapted = f"{self.masking} {self.level}{share}" if self.domain else ""
        if self.system:
            return f"{self.system}, {adapted}" if adapted else self.system
        return adapted or "none"

    @classmethod
    def of(cls, folder: str) -> Encoder:
        """Reads the record of a checkpoint of `nerbert dapt`.

        Raises:
            UserError: the folder is not such a checkpoint, or its training is not finished.
        """
        path = Path(folder) / RECORD
        record = Place(path).read_json_or_none() or {}
        settings = record.get("settings", {})
        if "masking" not in settings:
            raise UserError(
                f"not a checkpoint of nerbert dapt (no {RECORD} with masking); make one", folder
            )
        if "results" not in record:
            raise UserError("not finished; run the command that makes it again", folder)
        return cls(
            folder, record["domain"], settings["masking"], settings["level"], settings["fraction"]
        )


@dataclass(frozen=True)
class Cell:
    """One run of the grid, with its encoder and domain."""

    encoder: Encoder
    domain: str
    run: Run
