"""The baseline systems of CrossNER's table 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from finetune.settings import NAME, RECIPES, WORDS, FitSettings
from nerbert.commands.options import Given, build

SystemName = Literal[
    "bilstm-crf-word",
    "bilstm-crf",
    "coach-word",
    "coach",
    "cdlm",
    "multicell",
    "multicell-dapt",
    "all",
]


@dataclass(frozen=True)
class System:
    """A baseline system.

    Attributes:
        row: its row in the paper's table 2.
        recipe: recipe of its fine-tuning.
        base: name of the model; empty for the base model, or for its domain-adapted ones.
        changes: settings that differ from the recipe.
        adapted: whether it is on the domain-adapted encoders.
    """

    row: str
    recipe: str
    base: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    adapted: bool = False

    def settings(self, flags: Mapping[str, Given]) -> FitSettings:
        """The settings of its recipe; settings that the user gave as flags override them.

        Args:
            flags: what the user gave, by name of the option.
        """
        known = RECIPES.read(self.recipe, [FitSettings])
        changes = {name: Given(value, f"--{name} =") for name, value in self.changes.items()}
        return build(FitSettings, {**known, **flags, **changes})


SYSTEMS: dict[str, System] = {
    "bilstm-crf-word": System("BiLSTM-CRF (word)", "bilstm-crf", NAME, {"spelling": "none"}),
    "bilstm-crf": System("BiLSTM-CRF (word + char)", "bilstm-crf", NAME),
    "coach-word": System("Coach (word)", "coach", WORDS, {"spelling": "none"}),
    "coach": System("Coach (word + char)", "coach", WORDS),
    "cdlm": System("CDLM", "cdlm", WORDS),
    "multicell": System("multi-cell LSTM", "multicell"),
    "multicell-dapt": System("multi-cell LSTM", "multicell", adapted=True),
}
"""Name of a system -> what it is, in the order of the table."""


def row_of(base: str, settings: FitSettings) -> str:
    """The row of a baseline system that is given as base model; empty for an encoder."""
    is_word = settings.spelling == "none"
    for system in SYSTEMS.values():
        on_base = system.base in ("", base)
        same = on_base and RECIPES.read(system.recipe, [FitSettings])["head"].value
        if same == settings.head and is_word == (system.changes.get("spelling") == "none"):
            return system.row
    return ""
