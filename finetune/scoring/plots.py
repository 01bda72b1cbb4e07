"""Plots of results as PNG files; equal numbers give equal bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.figure import Figure

from finetune.scoring.calibration import Reliability
from finetune.scoring.results import Point
from nerbert.reports import png

_MOST_TYPES, _OTHERS = 40, "(other types)"
_MOST_TICKS = 6
_MARKS = "osD^v<>PX*"  # so that colours are not all that tells lines or types apart
_LONGEST = 30  # largest number of characters of a name on a plot


def curves(
    lines: Mapping[str, Sequence[Point]], title: str, x_label: str, y_label: str, gain: bool = False
) -> bytes:
    """Plots lines with bands of the deviation; x has a logarithmic scale.

    Source: Liu et al. 2021 (NER-BERT), figure 2.

    Args:
        lines: name -> points.
        title: title of the plot.
        x_label: label of the x axis.
        y_label: label of the y axis.
        gain: whether the gain of each line over the first one is plotted, on an axis to the right.
    """
    figure = Figure(figsize=(6, 4), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    for (name, points), mark in zip(lines.items(), cycle(_MARKS), strict=False):
        x, y, spread = np.array(points).T
        (line,) = axes.plot(x, y, f"{mark}-", label=short(name), markersize=4)
        axes.fill_between(
            x, y - spread, y + spread, color=line.get_color(), alpha=0.15, linewidth=0
        )
    axes.set_xscale("log")
    places = sorted({x for points in lines.values() for x, *_ in points})
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.spines[["top", "right"]].set_visible(False)
    if gain:
        _gains(axes, list(lines.values()))
    axes.legend(frameon=False)
    return png(figure)


def _gains(axes: Any, lines: Sequence[Sequence[Point]]) -> None:
    """Plots the gains over the first line as dashed lines."""
    right = axes.twinx()
    base = {x: y for x, y, _ in lines[0]}
    for number, points in enumerate(lines[1:], start=1):
        places = [(x, y - base[x]) for x, y, _ in points if x in base]
        right.plot(*zip(*places, strict=True), "--", color=f"C{number}", linewidth=1, alpha=0.7)
    right.axhline(0, color="grey", linewidth=0.5)
    right.set_ylabel("gain (dashed), points")
    right.spines[["top"]].set_visible(False)


def heat_map(
    values: npt.NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    x_label: str = "test",
    y_label: str = "train",
    digits: int = 1,
) -> bytes:
    """Plots a matrix with its numbers, rounded to `digits`; NaN is left empty."""
    size = (2.5 + (0.45 + 0.2 * digits) * len(columns), 2 + 0.4 * len(rows))
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    axes = figure.add_subplot()
    high = max(float(np.nanmax(values)), 1e-9) if not np.isnan(values).all() else 1.0
    axes.imshow(values, cmap="viridis", vmin=0, vmax=high, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            color = "black" if value > 0.6 * high else "white"
            axes.text(
                column,
                row,
                f"{value:.{digits}f}",
                ha="center",
                va="center",
                color=color,
                fontsize=8,
            )
    axes.set_xticks(range(len(columns)), map(short, columns), rotation=45, ha="right", fontsize=8)
    axes.set_yticks(range(len(rows)), map(short, rows), fontsize=8)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.set_title(title, fontsize=9, wrap=True)
    return png(figure)


def reliability(parts: Mapping[str, Reliability], title: str) -> bytes:
    """Plots the share of right mentions by their scores, a panel for each way to score.

    Source: Guo et al. 2017, figure 4.

    Args:
        parts: name -> scores and shares.
        title: title of the plot.
    """
    figure = Figure(figsize=(3.4 * len(parts), 3.4), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(parts), sharey=True, squeeze=False)[0]
    for axes, (name, curve) in zip(panels, parts.items(), strict=True):
        full = curve.counts > 0
        axes.plot([0, 1], [0, 1], color="grey", linewidth=0.7)
        axes.scatter(
            curve.scores[full], curve.right[full], 2 + 200 * curve.counts[full] / curve.counts.sum()
        )
        axes.set(title=f"{name}: error {curve.error:.3f}", xlabel="score", xlim=(0, 1), ylim=(0, 1))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share that is right")
    figure.suptitle(title)
    return png(figure)


def by_setting(panels: Mapping[str, Sequence[Any]], scores: Sequence[float], y_label: str) -> bytes:
    """Plots scores by the values of settings, a panel for each; wide ranges are logarithmic."""
    figure = Figure(figsize=(3 * len(panels), 3.2), dpi=110, layout="constrained")
    panel_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (name, values) in zip(panel_axes, panels.items(), strict=True):
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            axes.plot(values, scores, "o", markersize=5, alpha=0.7)
            if min(values) > 0 and max(values) > 5 * min(values):
                axes.set_xscale("log")
            if len(set(values)) <= _MOST_TICKS:
                axes.set_xticks(sorted(set(values)), [f"{v:g}" for v in sorted(set(values))])
                axes.minorticks_off()
        else:
            names = sorted(set(map(str, values)))
            places = [names.index(str(value)) for value in values]
            axes.plot(places, scores, "o", markersize=5, alpha=0.7)
            axes.set_xticks(range(len(names)), names)
            axes.set_xlim(-0.5, len(names) - 0.5)
        axes.set(xlabel=name)
        axes.spines[["top", "right"]].set_visible(False)
    panel_axes[0].set_ylabel(y_label)
    return png(figure)


def confusion(table: Mapping[str, Mapping[str, int]], title: str) -> bytes:
    """Plots the shares of predicted types, in per cent of the mentions of each gold type.

    Of many types the most frequent ones are plotted, and the sum of the others.

    Args:
        table: result of `finetune.scoring.metrics.type_confusion`.
        title: title of the plot.
    """
    table = _frequent(table)
    types = {*table, *(name for row in table.values() for name in row)}
    names = [*sorted(types - {"O", _OTHERS}), *sorted(types & {_OTHERS}), "O"]
    counts = np.array([[table.get(a, {}).get(b, 0) for b in names] for a in names], float)
    total = counts.sum(1, keepdims=True)
    shares = np.divide(100 * counts, total, where=total > 0, out=np.full_like(counts, np.nan))
    return heat_map(shares, names, names, title, "predicted", "gold", digits=0)


def _frequent(table: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """A table of the most frequent types; rows and columns of the others are summed."""
    counts: Counter[str] = Counter()
    for gold, row in table.items():
        for predicted, count in row.items():
            counts.update({gold: count, predicted: count})
    del counts["O"]
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    types = {*ranked[: _MOST_TYPES if len(ranked) > _MOST_TYPES else None], "O"}
    rows: dict[str, dict[str, int]] = {}
    for gold, row in table.items():
        into = rows.setdefault(gold if gold in types else _OTHERS, {})
        for predicted, count in row.items():
            name = predicted if predicted in types else _OTHERS
            into[name] = into.get(name, 0) + count
    return rows


def scatter(panels: Mapping[str, tuple[npt.NDArray[np.float64], Sequence[str]]]) -> bytes:
    """Plots points, coloured by type; one panel for each model.

    Source: Liu et al. 2021 (NER-BERT), figures 3 to 7.

    Args:
        panels: title -> coordinates (points, 2), and the type of each point.
    """
    types = sorted({name for _, names in panels.values() for name in names})
    figure = Figure(figsize=(4 * len(panels) + 2, 4), dpi=110, layout="constrained")
    colors = colormaps["tab20"](np.linspace(0, 1, max(len(types), 2)))
    for axes, (title, (places, names)) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for name, color, mark in zip(types, colors, cycle(_MARKS), strict=False):
            picked = places[[point_name == name for point_name in names]]
            axes.plot(*picked.T, mark, color=color, markersize=3, label=name, alpha=0.7)
        axes.set(title=short(title), xticks=[], yticks=[])
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside right upper", fontsize=7, frameon=False
    )
    return png(figure)


def short(name: str) -> str:
    """A name that fits a plot: a long one is shortened to the last part of its path, or its end."""
    last = name if len(name) <= _LONGEST else name.rstrip("/").rsplit("/", 1)[-1]
    return last if len(last) <= _LONGEST else f"…{last[1 - _LONGEST :]}"
