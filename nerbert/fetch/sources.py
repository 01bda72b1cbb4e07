"""The table of where files are published."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit


@cache
def _table() -> dict[str, Any]:
    text = (files("nerbert.fetch") / "data" / "sources.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def source(name: str) -> dict[str, Any]:
    """The facts about one publisher: "dumps", "types", "mappings" or "sets"."""
    found: dict[str, Any] = _table()[name]
    return found


@cache
def hosts() -> frozenset[str]:
    """Hosts that the table names; a server may redirect to them."""
    addresses = (text for text in _texts(_table()) if text.startswith("https://"))
    return frozenset(host for address in addresses if (host := urlsplit(address).hostname))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else ():
        yield from _texts(inner)
    for inner in value if isinstance(value, list) else ():
        yield from _texts(inner)
