"""Settings of the pre-training: defaults < recipe < flags."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from pipeline.errors import UserError

TINY = "tiny"
"""Name of the base model that is made from the corpus itself."""

AS_IN_CORPUS = "corpus"
"""Name of the category view that changes nothing."""

_LEAST = {"max_subwords": 8, "batch_size": 1, "train_examples": 0, "validation_examples": 1}


class BadLossError(RuntimeError):
    """The loss is not a finite number."""


@dataclass(frozen=True)
class Settings:
    """What decides a pre-training of any kind, beside `transformers.TrainingArguments`.

    Attributes:
        corpus: folder.
        output: folder of the checkpoint.
        base_model: name on the hub, folder, or `tiny`.
        max_subwords: of a piece, the special ones included.
        batch_size: pieces of one optimiser step, over all devices and accumulated steps.
        cache_dir: where `datasets` keeps the memory-mapped corpus; its own default if None.
        training: fields of TrainingArguments that the recipe sets.
    """

    corpus: str
    output: str
    base_model: str = "bert-base-cased"
    max_subwords: int = 128
    batch_size: int = 960
    cache_dir: str | None = None
    training: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name, least) < least:
                flag = "--" + name.replace("_", "-")
                raise UserError(f"{flag} {getattr(self, name)}: give {least} or more")

    def identity(self) -> dict[str, Any]:
        """What two runs must share for one to go on where the other stopped."""
        passing = {"corpus", "output", "cache_dir", "validation_examples", "training"}
        return {key: value for key, value in asdict(self).items() if key not in passing}


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class PretrainSettings(Settings):
    """What decides a pre-training by entity tagging.

    Attributes:
        categories: view of the corpus's categories: `corpus`, a shipped set, or a table's path.
        mask_unlinked: whether names that no link marks are left out of the loss.
        train_examples: of the corpus that are used, from its first; 0 for all.
        validation_examples: that a checkpoint is scored on, drawn at random.
    """

    categories: str = AS_IN_CORPUS
    mask_unlinked: bool = False
    train_examples: int = 0
    validation_examples: int = 20_000


def recipe_names(folder: str = "recipes") -> list[str]:
    """Names of the shipped recipes, or of the TOML files of another folder of the package."""
    found = (files("pretrain") / folder).iterdir()
    return sorted(Path(str(path)).stem for path in found if path.name.endswith(".toml"))


def read_recipe(
    name: str,
    kind: type[Settings] = PretrainSettings,
    folder: str = "recipes",
    flag: str = "--recipe",
) -> dict[str, Any]:
    """A shipped recipe by name, or a TOML file by path.

    Args:
        name: of the recipe, or path.
        kind: settings that it is for.
        folder: of the package, where the shipped ones are.
        flag: that named it.

    Raises:
        UserError: there is no such recipe, it is no TOML, or it has a key that we do not know.
    """
    shipped = name in recipe_names(folder)
    path = Path(str(files("pretrain") / folder / f"{name}.toml")) if shipped else Path(name)
    if not path.is_file():
        raise UserError(
            f"{flag} {name}: no such recipe; use {', '.join(recipe_names(folder))}, or a TOML file"
        )
    try:
        recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no TOML: {error}") from error
    known = {entry.name for entry in fields(kind)}
    if unknown := sorted(set(recipe) - known | ({"corpus", "output"} & set(recipe))):
        allowed = ", ".join(sorted(known - {"corpus", "output"}))
        raise UserError(f"{path}: unknown key {unknown[0]!r}; a recipe may have {allowed}")
    return recipe


def resolve(recipe: Mapping[str, Any], flags: Mapping[str, Any], kind: type[S]) -> S:
    """Settings of a recipe, changed by the flags that were given.

    Args:
        recipe: values.
        flags: values that go before them, `corpus` and `output` among them.
        kind: of the settings.

    Raises:
        UserError: a value is out of range, or of another type than the setting has.
    """
    defaults = kind(corpus=flags["corpus"], output=flags["output"])
    given = {**recipe, **flags}
    for name, value in given.items():
        default = getattr(defaults, name)
        if default is not None and not isinstance(value, type(default)):
            raise UserError(f"{name} = {value!r}: must be of type {type(default).__name__}")
    return replace(defaults, **given)
