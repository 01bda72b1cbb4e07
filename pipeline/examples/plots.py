"""The two plots of a corpus; equal numbers give equal bytes."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from nerbert.reports import png
from pipeline.examples.report import Funnel

_BEFORE, _AFTER, _MUTED = "#9aa5b1", "#d1495b", "#52606d"
_END = 30  # categories at each end of a long list that are plotted


def categories(before: Mapping[str, int], after: Mapping[str, int], title: str) -> bytes:
    """Plots the train mentions of each category before and after balancing, on a log scale.

    Of many categories it shows the most and the least frequent ones. Source: Liu et al. 2021,
    figures 1 and 8.
    """
    names = sorted(before, key=lambda name: (-before[name], name))
    rows: list[str] = names
    if len(names) > 2 * _END:
        between = f"({len(names) - 2 * _END:,} between)"
        rows = [*names[:_END], between, *names[-_END:]]
    height = 1.3 + 0.18 * len(rows)
    figure = Figure(figsize=(8, height), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    places = range(len(rows))
    axes.barh(
        places, [before.get(name, 0) for name in rows], color=_BEFORE, label="before balancing"
    )
    axes.plot(
        [after.get(name, 0) or float("nan") for name in rows],
        places,
        "o",
        color=_AFTER,
        markersize=3.5,
        label="after balancing",
    )
    if any(before.values()):
        axes.set_xscale("log")
    axes.set_yticks(list(places), rows, fontsize=8)
    axes.set_ylim(max(len(rows), 1) - 0.3, -0.7)
    axes.set_xlabel("mentions in train")
    figure.suptitle(title, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    return png(figure)


def funnel(numbers: Funnel, title: str) -> bytes:
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
    figure.suptitle(title, fontsize=9)
    return png(figure)
