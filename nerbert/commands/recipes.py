"""Recipes: TOML files with values of options."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from nerbert.commands.options import options_of
from nerbert.commands.values import Given, near
from nerbert.errors import UserError


@dataclass(frozen=True)
class Recipes:
    """The shipped recipes of a command: TOML files in the folder `recipes` of a package.

    Attributes:
        package: name of the package; empty if no recipes are shipped.
        default: recipe that is used if the flag is not given; empty for none.
        flag: flag that names a recipe.
    """

    package: str = ""
    default: str = ""
    flag: str = "--recipe"

    @property
    def names(self) -> list[str]:
        """Names of the shipped recipes, sorted."""
        if not self.package:
            return []
        folder = files(self.package) / "recipes"
        return sorted(Path(entry.name).stem for entry in folder.iterdir())

    def read(self, name: str, kinds: Sequence[type]) -> dict[str, Given]:
        """Reads a shipped recipe, or a TOML file.

        Args:
            name: name of the recipe, or path of the file.
            kinds: options classes whose fields the recipe may set.

        Raises:
            UserError: there is no such recipe, it is not valid TOML, or it has an unknown key.
        """
        shipped = name in self.names
        path = (
            Path(str(files(self.package) / "recipes" / f"{name}.toml")) if shipped else Path(name)
        )
        if not path.is_file():
            choices = (
                f"use {', '.join(self.names)}, or a TOML file" if self.names else "give a TOML file"
            )
            raise UserError(f"{self.flag} {name}: no such recipe; {choices}")
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UserError(f"{path}: not valid TOML: {error}") from error
        table = _flat(table, kinds)
        option_names = sorted(entry.name for entry in options_of(*kinds) if entry.facts["recipe"])
        for key in table:
            if key not in option_names:
                hint = near(key, option_names) or f"; a recipe may have {', '.join(option_names)}"
                raise UserError(f"{path}: unknown key {key!r}{hint}")

        def where(key: str) -> str:
            # Nobody mends a shipped recipe: the flag overrides it, and its path says nothing.
            flag = f"recipe {name}, --{key.replace('_', '-')}"
            return flag if shipped else f"{path}: {key} ="

        return {key: Given(_fixed(value), where(key)) for key, value in table.items()}


def _flat(table: Mapping[str, Any], kinds: Sequence[type]) -> dict[str, Any]:
    """A recipe without the tables of options that belong to a choice, such as `[head]`."""
    tables = {entry.facts["table"] for entry in options_of(*kinds)}
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if key in tables and isinstance(value, dict):
            flat |= {key if name == "name" else name: of_name for name, of_name in value.items()}
        else:
            flat[key] = value
    return flat


def _fixed(value: Any) -> Any:
    """Lists of TOML as tuples, which the fields of options have."""
    return tuple(map(_fixed, value)) if isinstance(value, list) else value


def recipe_text(values: Mapping[str, Any]) -> str:
    """Values of options as a recipe (TOML); those that are not set are left out."""
    set_values = {name: value for name, value in values.items() if value is not None}
    tables = [name for name, value in set_values.items() if isinstance(value, Mapping)]
    lines = [f"{name} = {_literal(set_values[name])}" for name in set_values if name not in tables]
    for name in tables:
        lines += ["", f"[{name}]"] if set_values[name] else []
        lines += [f"{key} = {_literal(value)}" for key, value in set_values[name].items()]
    return "\n".join(lines) + "\n"


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    # JSON's texts, numbers and truth values are those of TOML.
    # But TOML has no raw DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
