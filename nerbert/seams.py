"""Seams: the lists of commands, heads, filters and the like, which may grow without our code.

A package of ours names its parts in a file `seams.toml`, another package by entry points of the
group `nerbert.SEAM`. So the core never imports a wing, nor knows its names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from nerbert.errors import UserError

T = TypeVar("T")

_HOME = Path(__file__).parent.parent
_FILES = ("nerbert", "pipeline", "pipeline/clusters", "finetune", "finetune/papers")
"""Folders with a file `seams.toml`; `pipeline/clusters` and `finetune/papers` are wings."""


def load(place: str) -> Any:
    """Imports "module:name"."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def parts(seam: str) -> dict[str, Any]:
    """The parts of a seam that can be imported, by their names, in order.

    Raises:
        UserError: another package brings a part that cannot be loaded, or has a name that is taken.
    """
    return {name: load(place) for name, place in entries(seam).items()} | foreign(seam, object)


def described(seam: str, kind: type[T]) -> dict[str, T]:
    """Our own parts of a seam that are described by a dataclass, by their names, in order.

    Args:
        seam: name of the seam.
        kind: the dataclass. Tables of `seams.toml` have its fields.
    """
    return {name: kind(**_fixed(table)) for name, table in entries(seam).items()}


def entries(seam: str) -> dict[str, Any]:
    """What our own packages say of the parts of a seam, by name: a place or a table."""
    return {name: entry for table in _tables() for name, entry in table.get(seam, {}).items()}


def foreign(seam: str, kind: type[T]) -> dict[str, T]:
    """The parts of other packages, by name; see `parts` for errors.

    Args:
        seam: name of the seam.
        kind: what they must be.
    """
    loaded: dict[str, T] = {}
    for point in _points().select(group=f"nerbert.{seam}"):
        package = point.dist.name if point.dist else point.value
        if point.name in {*entries(seam), *loaded}:
            raise UserError(f"the package {package}: nerbert.{seam} has {point.name} already")
        try:
            part = point.load()
        except Exception as error:  # the code of others
            raise UserError(
                f"the package {package}: its entry point {point.name} of nerbert.{seam} cannot be "
                f"loaded ({type(error).__name__}: {error}); mend or uninstall it"
            ) from error
        if not isinstance(part, kind):
            raise UserError(
                f"the package {package}: its entry point {point.name} of nerbert.{seam} is no "
                f"{kind.__name__}"
            )
        loaded[point.name] = part
    return loaded


def packages(seam: str) -> dict[str, str]:
    """Names of the parts of other packages, with the version that brings them.

    A result depends on these: they belong to its fingerprint.
    """
    points = _points().select(group=f"nerbert.{seam}")
    return {p.name: f"{p.dist.name} {p.dist.version}" if p.dist else p.value for p in points}


def names(seam: str) -> list[str]:
    """Names of the parts of a seam, ours first; nothing is imported."""
    return [*entries(seam), *packages(seam)]


@cache
def _tables() -> list[Mapping[str, Any]]:
    texts = [(_HOME / folder / "seams.toml").read_text(encoding="utf-8") for folder in _FILES]
    return [tomllib.loads(text) for text in texts]


@cache
def _points() -> Any:
    return entry_points()


def _fixed(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
