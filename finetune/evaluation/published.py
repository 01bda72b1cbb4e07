"""Published scores, for comparison with ours."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def published() -> dict[str, Any]:
    """Scores in papers, in per cent; `published.toml` names the tables of the papers."""
    text = (files("finetune.evaluation") / "published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
