"""Whether what a paper claims holds in the results of a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from finetune.papers.reproduce.plan import Claim
from nerbert.storage import files

Row = dict[str, Any]
_REPORTS = {"report.json": ("runs", "cells", "results"), "matrix.json": ("cells",)}
_SAME = ("data", "domain", "seed", "shots", "setting", "share", "source", "train", "language")
"""Facts in which two runs must be equal to be compared, unless a claim speaks of them."""


def rows_of(*folders: Path) -> list[Row]:
    """The runs in the reports of steps: facts and F1 in per cent, a row for each language."""
    rows: list[Row] = []
    for folder, (name, keys) in product(folders, _REPORTS.items()):
        content = files.read_json_or_none(str(folder / name)) or {}
        rows += [row for key in keys for entry in content.get(key, ()) for row in _rows(entry)]
    return rows


def _rows(entry: Mapping[str, Any]) -> list[Row]:
    if "languages" not in entry:
        return [_row(entry)]
    scores = entry["test"].items()
    return [_row({**entry, "language": name, "strict": score}) for name, score in scores]


def _row(entry: Mapping[str, Any]) -> Row:
    settings = entry.get("settings") or {}
    row: Row = {k: value for k, value in entry.items() if isinstance(value, str | int | float)}
    row["source"] = "+".join(entry.get("source") or ())
    row.setdefault("seed", settings.get("seed"))
    row["lowercase"] = (entry.get("view") or {}).get("lowercase", False)
    row["in_domain"] = row["source"] == row.get("data")
    row["f1"] = 100 * (entry["strict"]["f1"] if "strict" in entry else entry["mean_f1"])
    return row


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim, by the results of the runs.

    Attributes:
        claim: the claim.
        pairs: number of comparisons.
        gain: mean difference of F1, in points; of the gains, if the claim speaks of these.
        error: standard error of the mean; 0 for a single pair.
    """

    claim: Claim
    pairs: int
    gain: float
    error: float

    @property
    def says(self) -> str:
        """Holds, does not hold, or not clear: the difference is at most two errors."""
        if not self.pairs:
            return "not run"
        if self.pairs > 1 and abs(self.gain) <= 2 * self.error:
            return "not clear"
        alone = " (one pair)" if self.pairs == 1 else ""
        return f"{'holds' if self.gain > 0 else 'does not hold'}{alone}"


def judge_claim(claim: Claim, rows: Iterable[Row]) -> Verdict:
    """Compares the two sides of a claim over all pairs of runs that are equal otherwise.

    Runs of a side with the same facts are averaged first.
    """
    rows = list(rows)
    gains = _gains(claim, rows, claim.large)
    if claim.small:
        little = _gains(claim, rows, claim.small)
        gains = {key: gains[key] - little[key] for key in gains.keys() & little.keys()}
    values = list(gains.values())
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return Verdict(claim, len(values), mean(values) if values else 0.0, error)


def _gains(claim: Claim, rows: list[Row], where: Mapping[str, Any]) -> dict[Any, float]:
    spoken = {*claim.better, *claim.than, *claim.large, *claim.small, *claim.over}
    sides = [
        _cells(rows, {**side, **where}, [name for name in _SAME if name not in spoken])
        for side in (claim.better, claim.than)
    ]
    return {key: sides[0][key] - sides[1][key] for key in sides[0].keys() & sides[1].keys()}


def _cells(rows: list[Row], facts: Mapping[str, Any], key_names: list[str]) -> dict[Any, float]:
    cells: dict[Any, list[float]] = {}
    for row in rows:
        if all(row.get(name) == value for name, value in facts.items()):
            cells.setdefault(tuple(row.get(name) for name in key_names), []).append(row["f1"])
    return {key: mean(scores) for key, scores in cells.items()}
