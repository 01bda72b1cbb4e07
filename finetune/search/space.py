"""The settings that a search tries, from texts such as "learning_rate=1e-5,1e-4"."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from finetune.settings import FitSettings
from nerbert.commands.options import Given, Option, build, near, options_of
from nerbert.errors import UserError

_RANGE = ".."

Space = dict[str, BaseDistribution]
Values = dict[str, Any]


def parse(texts: Sequence[str]) -> Space:
    """The settings to try.

    Args:
        texts: `NAME=VALUE,VALUE` for a choice, `NAME=LOW..HIGH` for a range; ranges of floats are
            drawn by their logarithm.

    Raises:
        UserError: there is no such setting, or a value is wrong.
    """
    known = {entry.name: entry for entry in options_of(FitSettings)}
    space: Space = {}
    for text in texts:
        name, _, values = text.partition("=")
        name = name.replace("-", "_")
        if name not in known or not values:
            raise UserError(f"write NAME=VALUE,VALUE or NAME=LOW..HIGH{near(name, known)}", text)
        if _RANGE in values:
            space[name] = _range(known[name], values, text)
        else:
            found = [_value(known[name], value, text) for value in values.split(",")]
            space[name] = CategoricalDistribution(found)
    return space


def _range(entry: Option, values: str, text: str) -> BaseDistribution:
    low, high = (_value(entry, value, text) for value in values.split(_RANGE, 1))
    if isinstance(low, bool) or not isinstance(low, int | float) or not low < high:
        raise UserError("a range has a lower and a higher number", text)
    if isinstance(low, int):
        return IntDistribution(low, high)
    return FloatDistribution(low, high, log=low > 0)


def _value(entry: Option, value: str, text: str) -> Any:
    """The value of a setting.

    Raises:
        UserError: it is not one.
    """
    try:
        found = entry.parsed(value)
    except ValueError:
        raise UserError(f"{value} is no value of {entry.name}", text) from None
    build(FitSettings, {entry.name: Given(found, f"--space {entry.name}", value)})
    return found


def points(space: Space) -> list[Values]:
    """All points of a space of choices.

    Raises:
        UserError: one of its settings has a range.
    """
    axes = []
    for name, distribution in space.items():
        if not isinstance(distribution, CategoricalDistribution):
            raise UserError(f"--space {name}: a grid needs values; --method random takes ranges")
        axes.append([(name, value) for value in distribution.choices])
    return [dict(point) for point in itertools.product(*axes)]
