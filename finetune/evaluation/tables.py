"""Formats numbers, and Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev


def cent(value: float) -> str:
    """A share, in per cent."""
    return f"{100 * value:.2f}"


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation of shares, in per cent; "-" without shares.

    >>> spread([0.5, 0.54])
    '52.00 ± 2.83'
    """
    if not values:
        return "-"
    return f"{cent(mean(values))} ± {cent(stdev(values))}" if len(values) > 1 else cent(values[0])


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; the first row is the header."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]
