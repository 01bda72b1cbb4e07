"""Descriptions of entity types in words, for models that compare mentions with them."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

_WORD = re.compile(r"[^\W\d_][^\W\d_]*?(?=[A-Z][a-z]|[\W\d_]|$)")


@cache
def _known() -> dict[str, str]:
    text = (files("finetune.models") / "descriptions.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def description(name: str) -> list[str]:
    """The words that describe a type, in lower case: `politicalparty` is "political party"."""
    if name.lower() in _known():
        return _known()[name.lower()].split()
    return [word.lower() for word in _WORD.findall(name)] or [name.lower()]
