"""Fine-tuning, evaluation and serving of entity taggers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from finetune.settings import FitSettings
    from finetune.tagger.entities import Entities, Entity, Prediction
    from finetune.tagger.tagger import Tagger

__all__ = ["Entities", "Entity", "FitSettings", "Prediction", "Tagger"]

_MODULES = {
    "Entities": "finetune.tagger.entities",
    "Entity": "finetune.tagger.entities",
    "FitSettings": "finetune.settings",
    "Prediction": "finetune.tagger.entities",
    "Tagger": "finetune.tagger.tagger",
}


def __getattr__(name: str) -> Any:
    """Loads `Tagger`, and torch with it, only where it is used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
