"""The two plots of a corpus; equal numbers give equal bytes."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from nerbert.reports import png
from pipeline.examples.report import Funnel

_BEFORE, _AFTER, _MUTED = "#9aa5b1", "#d1495b", "#52606d"


def categories(before: Mapping[str, int], after: Mapping[str, int]) -> bytes:
    """Plots the train mentions of each category before and after balancing, on a log scale.

    Source: Liu et al. 2021, figures 1 and 8.
    """
    names = sorted(before, key=lambda name: (-before[name], name))
    width = min(4 + 0.16 * len(names), 24)
    figure = Figure(figsize=(width, 4.2), dpi=100)
    axes = figure.add_axes((0.7 / width, 0.32, 1 - 0.8 / width, 0.66))
    places = range(len(names))
    axes.bar(places, [before[name] for name in names], color=_BEFORE, label="before balancing")
    axes.plot(
        places,
        [after.get(name, 0) or float("nan") for name in names],
        "o",
        color=_AFTER,
        markersize=3.5,
        label="after balancing",
    )
    if any(before.values()):
        axes.set_yscale("log")
    shown = names if len(names) <= 60 else [name[:3] for name in names]
    axes.set_xticks(list(places), shown, rotation=90, fontsize=6 if len(names) > 30 else 8)
    axes.set_xlim(-0.8, max(len(names), 1) - 0.2)
    axes.set_ylabel("mentions in train")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return png(figure)


def funnel(numbers: Funnel) -> bytes:
    """Plots the numbers of sentences: in the documents, dropped by reason, and kept."""
    sentences = numbers.sentences
    rows = [("sentences in documents", sentences.in_, _BEFORE)]
    rows += [(f"dropped: {reason}", count, _AFTER) for reason, count in sentences.dropped.items()]
    rows += [(f"{split} examples", count, _MUTED) for split, count in sentences.out.items()]
    rows.append(("train after balancing", numbers.train_after_balancing.examples, _MUTED))
    figure = Figure(figsize=(8, 0.6 + 0.34 * len(rows)), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    places = list(range(len(rows)))[::-1]
    axes.barh(places, [count for _, count, _ in rows], color=[color for *_, color in rows])
    axes.set_yticks(places, [label for label, *_ in rows])
    for place, (_, count, _) in zip(places, rows, strict=True):
        axes.text(count, place, f" {count:,}", va="center", fontsize=8)
    axes.margins(x=0.12)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.xaxis.set_visible(False)
    return png(figure)
