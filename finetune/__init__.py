"""Fine-tuning and evaluation of entity taggers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from finetune.entities import Entity
    from finetune.tagger import Tagger

__all__ = ["Entity", "Tagger"]


def __getattr__(name: str) -> Any:
    """Loads `Tagger`, and torch with it, only where it is used."""
    if name == "Tagger":
        from finetune.tagger import Tagger

        return Tagger
    if name == "Entity":
        from finetune.entities import Entity

        return Entity
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
