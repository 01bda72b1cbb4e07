"""Settings of the pre-training: defaults < recipe < flags."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from pipeline.errors import UserError

TINY = "tiny"
"""Name of the base model that is made from the corpus itself."""

AS_IN_CORPUS = "corpus"
"""Name of the category view that changes nothing."""

_LEAST = {"max_subwords": 8, "batch_size": 1, "train_examples": 0, "validation_examples": 1}


class BadLossError(RuntimeError):
    """The loss is not a finite number."""


@dataclass(frozen=True)
class PretrainSettings:
    """What decides a pre-training, beside `transformers.TrainingArguments`.

    Attributes:
        corpus: folder with `train/`, `validation/` and `labels.json`.
        output: folder of the checkpoint.
        base_model: name on the hub, folder, or `tiny`.
        categories: view of the corpus's categories: `corpus`, a shipped set, or a table's path.
        max_subwords: of a piece, the special ones included.
        batch_size: pieces of one optimiser step, over all devices and accumulated steps.
        mask_unlinked: whether names that no link marks are left out of the loss.
        train_examples: of the corpus that are used, from its first; 0 for all.
        validation_examples: that a checkpoint is scored on, drawn at random.
        cache_dir: where `datasets` keeps the memory-mapped corpus; its own default if None.
        training: fields of TrainingArguments that the recipe sets.
    """

    corpus: str
    output: str
    base_model: str = "bert-base-cased"
    categories: str = AS_IN_CORPUS
    max_subwords: int = 128
    batch_size: int = 960
    mask_unlinked: bool = False
    train_examples: int = 0
    validation_examples: int = 20_000
    cache_dir: str | None = None
    training: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                flag = "--" + name.replace("_", "-")
                raise UserError(f"{flag} {getattr(self, name)}: give {least} or more")

    def identity(self) -> dict[str, Any]:
        """What two runs must share for one to go on where the other stopped."""
        passing = {"corpus", "output", "cache_dir", "validation_examples", "training"}
        return {key: value for key, value in asdict(self).items() if key not in passing}


def recipe_names() -> list[str]:
    """Names of the shipped recipes."""
    folder = files("pretrain") / "recipes"
    return sorted(Path(str(path)).stem for path in folder.iterdir() if path.name.endswith(".toml"))


def read_recipe(name: str) -> dict[str, Any]:
    """A shipped recipe by name, or a TOML file by path.

    Raises:
        UserError: there is no such recipe, it is no TOML, or it has a key that we do not know.
    """
    shipped = name in recipe_names()
    path = Path(str(files("pretrain") / "recipes" / f"{name}.toml")) if shipped else Path(name)
    if not path.is_file():
        raise UserError(
            f"--recipe {name}: no such recipe; use {', '.join(recipe_names())}, or a TOML file"
        )
    try:
        recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no TOML: {error}") from error
    known = {entry.name: entry for entry in fields(PretrainSettings)}
    if unknown := sorted(set(recipe) - set(known) | ({"corpus", "output"} & set(recipe))):
        allowed = ", ".join(sorted(set(known) - {"corpus", "output"}))
        raise UserError(f"{path}: unknown key {unknown[0]!r}; a recipe may have {allowed}")
    return recipe


def resolve(recipe: Mapping[str, Any], flags: Mapping[str, Any]) -> PretrainSettings:
    """Settings of a recipe, changed by the flags that were given.

    Raises:
        UserError: a value is out of range, or of another type than the setting has.
    """
    defaults = PretrainSettings(corpus=flags["corpus"], output=flags["output"])
    given = {**recipe, **flags}
    for name, value in given.items():
        default = getattr(defaults, name)
        if default is not None and not isinstance(value, type(default)):
            raise UserError(f"{name} = {value!r}: must be of type {type(default).__name__}")
    return replace(defaults, **given)
