"""The levels of a domain corpus."""

from __future__ import annotations

from typing import Literal, get_args

Level = Literal["domain", "entity", "task", "integrated"]

LEVELS: dict[Level, tuple[str, ...]] = {
    "domain": ("domain",),
    "entity": ("entity",),
    "task": ("task",),
    "integrated": ("entity", "task", "task"),
}
"""Level of a domain corpus -> flags of the sentences that it holds. `domain` holds all sentences.

Source: Liu et al. 2021 (CrossNER), arXiv:2012.04373, section 3.1.
"""

assert tuple(LEVELS) == get_args(Level)
