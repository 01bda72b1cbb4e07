"""Results as tables."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any


def markdown(results: Sequence[dict[str, Any]]) -> str:
    """A row for each model, a column for each set: mean and deviation of the F1 over seeds.

    Args:
        results: of the runs, as `finetune.evaluate` keeps them; at least one.
    """
    models = list(dict.fromkeys(row["model"] for row in results))
    sets = list(dict.fromkeys(row["data"] for row in results))
    seeds = len({row["settings"]["seed"] for row in results})
    lines = [
        f"F1 (seqeval strict, IOB2) in per cent, mean and deviation of {seeds} seeds; "
        f"setting `{results[0]['setting']}`.",
        "",
        "| model | " + " | ".join(sets) + " |",
        "|---|" + "---|" * len(sets),
    ]
    for model in models:
        cells = [
            _cell([100 * row["strict"]["f1"] for row in results
                   if (row["model"], row["data"]) == (model, name)])
            for name in sets
        ]  # fmt: skip
        lines.append(f"| {model} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(scores: Sequence[float]) -> str:
    if len(scores) < 2:
        return f"{scores[0]:.2f}"
    return f"{mean(scores):.2f} ± {stdev(scores):.2f}"
