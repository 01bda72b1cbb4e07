"""CrossNER's experiments as its tables and figures, the published numbers beside ours."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from finetune import plots
from finetune.crossner import DOMAINS, Cell
from finetune.runs import ALL, write_json
from finetune.tables import cent, markdown, spread

Result = dict[str, Any]
Pair = tuple[Cell, Result]

SPECIAL_PERSON = {"politics": "politician", "science": "scientist", "music": "musicalartist",
                  "literature": "writer", "ai": "researcher"}  # fmt: skip
"""The type of each domain that is a kind of person."""

NOTES = """\
The released data differ from the paper: music has 465 test sentences, not 456; the types
`literarygenre` (literature), `programlang` and `conference` (AI) stand in the data but not in the
paper's table 1; errors of annotation were mended after publication. These numbers are on the data
as released, by seqeval in strict mode (IOB2)."""


@cache
def published() -> dict[str, Any]:
    """Scores that the paper states, in per cent."""
    text = (files("finetune") / "published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def published_f1(setting: str, name: str, domain: str) -> float | None:
    """F1 of table 2 in per cent, None where it has no such row."""
    scores = published()["crossner"].get(setting, {}).get(name)
    return None if scores is None else float(scores[DOMAINS.index(domain)])


def published_type(setting: str, name: str, domain: str, kind: str) -> float | None:
    """F1 of a type of table 4 in per cent, None where it has none."""
    if domain != "music":
        return None
    table = published()["music"]
    scores = table.get(setting, {}).get(name)
    if scores is None or kind not in table["types"]:
        return None
    return float(scores[table["types"].index(kind)])


def person_share(confusion: Mapping[str, Mapping[str, int]], domain: str) -> float | None:
    """Share of the gold `person` mentions predicted as the domain's kind of person.

    Args:
        confusion: gold type -> predicted type -> mentions.
        domain: of `DOMAINS`.

    Returns:
        None where there is no such mention.
    """
    row = confusion.get("person", {})
    total = sum(row.values())
    return row.get(SPECIAL_PERSON[domain], 0) / total if total else None


class Grid:
    """Results of a plan, and what is written of them."""

    def __init__(self, plan: Sequence[Cell], results: Sequence[Result]) -> None:
        """Takes each cell's result, in the same order."""
        self._pairs: list[Pair] = list(zip(plan, results, strict=True))
        self._settings = list(dict.fromkeys(cell.run.setting for cell in plan))
        self._domains = [name for name in DOMAINS if any(c.domain == name for c in plan)]
        self._shots = list(dict.fromkeys(cell.run.shots for cell in plan))
        self._full = ALL if ALL in self._shots else self._shots[-1]
        self._names = list(dict.fromkeys(cell.variant.name for cell in plan))

    def _of(self, setting: str, name: str, domain: str, shots: str | None = None) -> list[Result]:
        """Results of all seeds."""
        wanted = setting, name, domain, shots or self._full
        return [
            row for cell, row in self._pairs
            if (cell.run.setting, cell.variant.name, cell.domain, cell.run.shots) == wanted
        ]  # fmt: skip

    def table_2(self) -> str:
        """F1 by setting, pre-training and domain, the published score in brackets."""
        lines = ["F1 (seqeval strict, IOB2) in per cent, in brackets as published.", ""]
        for setting in self._settings:
            rows = [[setting, *self._domains, *(["average"] if len(self._domains) > 1 else [])]]
            rows += [self._row_2(setting, name) for name in self._names]
            lines += [*markdown(rows), ""]
        return "\n".join(lines)

    def _row_2(self, setting: str, name: str) -> list[str]:
        cells, ours, theirs = [], [], []
        for domain in self._domains:
            found = [row["strict"]["f1"] for row in self._of(setting, name, domain)]
            stated = published_f1(setting, name, domain)
            cells.append(_beside(spread(found), stated))
            ours += [mean(found)] if found else []
            theirs += [stated] if stated is not None else []
        if len(self._domains) == 1:
            return [name, *cells]
        whole = len(ours) == len(self._domains)
        average = _beside(cent(mean(ours)), mean(theirs) if theirs else None) if whole else "-"
        return [name, *cells, average]

    def table_4(self, domain: str) -> list[str]:
        """F1 of each type."""
        lines = []
        for setting in self._settings:
            names = [name for name in self._names if self._of(setting, name, domain)]
            kinds = sorted({kind for name in names for row in self._of(setting, name, domain)
                            for kind in row["per_type"]})  # fmt: skip
            rows = [[setting, *kinds]]
            for name in names:
                found = self._of(setting, name, domain)
                cells = [
                    _beside(spread([row["per_type"].get(kind, {}).get("f1", 0.0) for row in found]),
                            published_type(setting, name, domain, kind))
                    for kind in kinds
                ]  # fmt: skip
                rows.append([name, *cells])
            lines += [*markdown(rows), ""]
        return lines

    def persons(self) -> list[str]:
        """Share of `person` predicted as the specialised type."""
        rows = [["setting", "pre-training", *self._domains]]
        for setting in self._settings:
            for name in self._names:
                cells = []
                for domain in self._domains:
                    shares = [person_share(row["confusion"], domain)
                              for row in self._of(setting, name, domain)]  # fmt: skip
                    cells.append(spread([share for share in shares if share is not None]))
                rows.append([setting, name, *cells])
        return markdown(rows)

    def write(self, output: Path) -> None:
        """Writes `report.json`, `report.md` and the figures."""
        lines = ["# CrossNER", "", NOTES, "", "## By setting and pre-training (table 2)", "",
                 self.table_2()]  # fmt: skip
        for domain in self._domains:
            lines += [f"## {domain}: by type (table 4)", "", *self.table_4(domain)]
        lines += [
            "## Persons taken for the specialised type", "",
            "Gold `person` mentions predicted as politician, scientist, musicalartist, writer or "
            "researcher, in per cent. The paper names 84.81 for its best model on music.", "",
            *self.persons(), "",
        ]  # fmt: skip
        (output / "report.md").write_text("\n".join(lines), encoding="utf-8")
        write_json(output / "report.json", {
            "notes": NOTES, "published": published(),
            "cells": [{"domain": cell.domain, "pre-training": cell.variant.name,
                       "fraction": cell.variant.fraction, **row} for cell, row in self._pairs],
        })  # fmt: skip
        for domain in self._domains:
            for number, name, picture in (
                (2, "corpus-size", self._sizes(domain)), (3, "shots", self._few(domain)),
            ):  # fmt: skip
                if picture is not None:
                    path = output / f"figure-{number}-{name}-{domain}.png"
                    path.write_bytes(picture)

    def _sizes(self, domain: str) -> bytes | None:
        """Figure 2: F1 by share of the corpus; None with fewer than two shares."""

        def place(cell: Cell) -> tuple[str, float] | None:
            variant = cell.variant
            if variant.domain is None or cell.run.shots != self._full:
                return None
            return f"{variant.masking} {variant.level}", 100 * variant.fraction

        return self._curves(domain, "share of the corpus, %", place)

    def _few(self, domain: str) -> bytes | None:
        """Figure 3: F1 by train sentences; None with fewer than two numbers of them."""
        rows = {id(cell): row["train_sentences"] for cell, row in self._pairs}
        return self._curves(
            domain, "train sentences", lambda cell: (cell.variant.name, rows[id(cell)])
        )

    def _curves(
        self, domain: str, label: str, place: Callable[[Cell], tuple[str, float] | None]
    ) -> bytes | None:
        points: dict[str, dict[float, list[float]]] = {}
        for cell, row in self._pairs:
            if cell.domain == domain and (found := place(cell)) is not None:
                line = points.setdefault(f"{cell.run.setting}, {found[0]}", {})
                line.setdefault(found[1], []).append(100 * row["strict"]["f1"])
        if len({x for line in points.values() for x in line}) < 2:
            return None
        lines = {
            name: [(x, mean(scores), stdev(scores) if len(scores) > 1 else 0.0)
                   for x, scores in sorted(line.items())]
            for name, line in points.items()
        }  # fmt: skip
        return plots.curves(lines, domain, label, "F1 (seqeval strict), %")


def _beside(ours: str, stated: float | None) -> str:
    return ours if stated is None or ours == "-" else f"{ours} ({stated:.2f})"
