"""Whether what a paper claims holds in the results of a step."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from finetune.papers.reproduce.plan import Claim
from nerbert.storage.places import Place

_REPORTS = {"report.json": ("runs", "cells", "results"), "matrix.json": ("cells",)}
_MEASURED = {
    "key",
    "seconds",
    "train_sentences",
    "dev_sentences",
    "labelled",
    "unlabelled",
    "tested",
}
"""Entries of a result that the run gave. All others say what was run."""
LEAST_SEEDS = 3
"""Fewer seeds give no verdict: with two, the t of 5 % is 12.7."""


@dataclass(frozen=True)
class ScoredRun:
    """A run in a language: what was run, and what it scored.

    Attributes:
        facts: model, set, every setting, and so on.
        scores: name of a score -> its value in per cent; `f1` is that of the report.
    """

    facts: Mapping[str, Any]
    scores: Mapping[str, float]


def read_runs(*folders: Path) -> list[ScoredRun]:
    """Reads the runs in the reports of steps; of several languages, each is one."""
    runs: list[ScoredRun] = []
    for folder, (name, keys) in product(folders, _REPORTS.items()):
        content = Place(folder / name).read_json_or_none() or {}
        runs += [run for key in keys for entry in content.get(key, ()) for run in _of_entry(entry)]
    return runs


def _of_entry(entry: Mapping[str, Any]) -> Iterator[ScoredRun]:
    settings = dict(entry.get("settings") or {})
    facts = {
        name: value
        for name, value in entry.items()
        if isinstance(value, str | int | float)
        and name not in _MEASURED
        and not name.endswith("f1")
    }
    facts["seed"] = entry.get("seed", settings.pop("seed", None))
    # A list of a setting, such as that of vectors, must be hashable.
    facts |= {f"settings.{name}": json.dumps(value) for name, value in settings.items()}
    facts |= entry.get("view") or {}
    sources = entry.get("source") or ()
    facts |= {"source": "+".join(sources), "sources": len(sources)}
    facts["in_domain"] = facts["source"] == entry.get("data")
    if "languages" in entry:
        for language, score in entry["test"].items():
            yield ScoredRun({**facts, "language": language}, {"f1": 100 * score["f1"]})
    else:
        scores = {name: 100 * value for name, value in entry.items() if name.endswith("f1")}
        yield ScoredRun(facts, scores | {"f1": 100 * entry["strict"]["f1"]})


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim, by Student's t over the seeds.

    Languages and sets of one seed share its randomness, so they count as one, by their mean.

    Attributes:
        claim: the claim.
        gains: for each seed the mean difference of the score, in points; of the gains, if the claim
            speaks of these.
    """

    claim: Claim
    gains: tuple[float, ...]

    @property
    def gain(self) -> float:
        """The mean difference, in points; 0 without runs."""
        return mean(self.gains) if self.gains else 0.0

    @property
    def margin(self) -> float | None:
        """Half of the 95 % interval of the mean; None for fewer than two seeds."""
        if len(self.gains) < 2:
            return None
        # It takes a second to load.
        from scipy.stats import t

        factor = float(t.ppf(0.975, len(self.gains) - 1))
        return factor * stdev(self.gains) / math.sqrt(len(self.gains))

    @property
    def says(self) -> str:
        """Whether the claim holds, does not hold, or is not clear; not judged with few seeds."""
        if not self.gains:
            return "not run"
        if len(self.gains) < LEAST_SEEDS:
            return "one seed, says little" if len(self.gains) == 1 else "two seeds, say little"
        if abs(self.gain) <= (self.margin or 0.0):  # without any deviation a gain is clear
            is_so = self.claim.expects != "gain"
            return "no clear difference, as claimed" if is_so else "not clear"
        is_so = self.claim.expects != "no difference" and self.gain > 0
        return "holds" if is_so else "does not hold"


def judge_claim(claim: Claim, runs: Iterable[ScoredRun]) -> Verdict:
    """Compares the two sides of a claim, in runs that are equal in all that it does not speak of.

    Comparisons that not all seeds have are left out: the mean of each seed is over the same.
    """
    runs = list(runs)
    gains = _gains(claim, runs, claim.large)
    if claim.small:
        little = _gains(claim, runs, claim.small)
        gains = {key: gains[key] - little[key] for key in gains.keys() & little.keys()}
    of_seed: dict[Any, dict[Any, float]] = {}
    for (seed, facts), gain in gains.items():
        of_seed.setdefault(seed, {})[facts] = gain
    common = set.intersection(*map(set, of_seed.values())) if of_seed else set()
    seeds = sorted(of_seed, key=str) if common else []
    return Verdict(claim, tuple(mean(of_seed[seed][facts] for facts in common) for seed in seeds))


_Key = tuple[Any, frozenset[tuple[str, Any]]]


def _gains(claim: Claim, runs: list[ScoredRun], also: Mapping[str, Any]) -> dict[_Key, float]:
    spoken = {"seed", *claim.better, *claim.than, *claim.large, *claim.small, *claim.over}
    better, than = (
        _scores(runs, {**claim.where, **side, **also}, spoken, claim.score)
        for side in (claim.better, claim.than)
    )
    return {key: better[key] - than[key] for key in better.keys() & than.keys()}


def _scores(
    runs: list[ScoredRun], where: Mapping[str, Any], spoken: set[str], score: str
) -> dict[_Key, float]:
    """Mean score of the runs with some facts, by seed and the facts that are not spoken of."""
    scores: dict[_Key, list[float]] = {}
    for run in runs:
        if score in run.scores and all(_is(run, name, value) for name, value in where.items()):
            facts = frozenset(item for item in run.facts.items() if item[0] not in spoken)
            scores.setdefault((run.facts["seed"], facts), []).append(run.scores[score])
    return {key: mean(values) for key, values in scores.items()}


def _is(run: ScoredRun, name: str, value: Any) -> bool:
    """Whether a fact has a value, or one of several."""
    fact = run.facts.get(name)
    return fact in value if isinstance(value, tuple) else fact == value
