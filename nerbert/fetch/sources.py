"""The table of where files are published."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _table() -> dict[str, Any]:
    text = (files("nerbert.fetch") / "data" / "sources.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def source(name: str) -> dict[str, Any]:
    """The facts about one publisher: "dumps", "types", "mappings" or "sets"."""
    found: dict[str, Any] = _table()[name]
    return found
