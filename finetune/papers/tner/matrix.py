"""Cross-domain matrices: fine-tunes a tagger on each set, and scores each tagger on all sets."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from finetune.data.registry import expand
from finetune.data.sets import DataSets
from finetune.experiments.evaluate import results_of
from finetune.experiments.report import file_name
from finetune.experiments.runs import Predictions, ResultStore, Run
from finetune.papers.tner.options import MatrixOptions
from finetune.scoring import plots
from finetune.scoring.results import Results, average_by_seed
from finetune.scoring.tables import (
    markdown,
    shown_names,
    sizes_table,
    tner_in_domain,
    tner_models,
    tner_row,
)
from finetune.settings import FitSettings, seeds
from nerbert.digests import short_key
from nerbert.errors import UserError
from nerbert.storage.folders import made_whole
from nerbert.storage.places import Place
from nerbert.storage.records import seal, sealed

if TYPE_CHECKING:
    from finetune.tagger.tagger import Tagger

SCORES: dict[str, tuple[str, Callable[[dict[str, Any]], float]]] = {
    "strict": ("F1 (seqeval strict, IOB2)", lambda row: row["strict"]["f1"]),
    "span": ("F1 of spans, types ignored", lambda row: row["span_f1"]),
    "shared-label-span": (
        "F1 of spans of types that both sides have, types ignored",
        lambda row: row["shared_label_span_f1"],
    ),
    "tner-span": (
        "F1 of spans as T-NER 0.0.3 computes it, types ignored",
        lambda row: row["tner_span_f1"],
    ),
}
"""Name of a score -> its title, and the function that gets it from a result."""


_MARK = "row.json"


class Rows:
    """The taggers of the rows. Each is fine-tuned once, and loaded for its missing cells."""

    def __init__(self, folder: Path, options: MatrixOptions, store: ResultStore) -> None:
        self._folder, self._options, self._store = folder, options, store
        self._loaded: tuple[Path, Tagger] | None = None

    def _path(self, run: Run) -> Path:
        row = replace(run, data=run.source[0])
        return self._folder / short_key(self._store.key(row))

    def score(self, run: Run) -> tuple[dict[str, Any], Predictions]:
        """Scores and predictions of the row's tagger on a test set."""
        # These load torch, which is not needed if all cells are there.
        from finetune.experiments.execution import fit_run, score_run
        from finetune.tagger.tagger import Tagger

        path = self._path(run)
        if sealed(Place(path / _MARK)) is None:
            tagger, *_ = fit_run(run, self._store.sets, self._options)
            with made_whole(path, _MARK) as folder:
                tagger.save(folder)
                seal(Place(folder / _MARK), run.to_json())
        if self._loaded is None or self._loaded[0] != path:
            if self._loaded is not None:
                self._forget(self._loaded[0])  # the plan goes row by row
            device, half = self._options.device, self._options.half
            self._loaded = path, Tagger.load(str(path), run.settings, device, half)
        return score_run(self._loaded[1], run, self._store.sets)

    def end(self, plan: Sequence[Run]) -> None:
        """Removes the checkpoints of all rows, unless they are to be kept."""
        for run in plan:
            self._forget(self._path(run))

    def _forget(self, path: Path) -> None:
        if not self._options.keep_models:
            shutil.rmtree(path, ignore_errors=True)


def fill_matrix(options: MatrixOptions, settings: FitSettings) -> str:
    """Fills the missing cells and writes the matrices; returns those of strict F1.

    Raises:
        UserError: a model or data is missing.
    """
    sets = DataSets.of_options(options, are_several=True)
    output = Path(options.output)
    store = ResultStore(output / "cells", sets)
    rows = Rows(output / "rows", options, store)
    plan = planned(options, settings, store)
    results = results_of(plan, store, rows.score, lambda run: f"{run.source[0]} -> ")
    rows.end(plan)
    return written(results, output, sets)


def planned(options: MatrixOptions, settings: FitSettings, store: ResultStore) -> list[Run]:
    """The cells, row by row. Their data is read once, so that errors are found before training.

    Raises:
        UserError: data is missing.
    """
    sets, test = store.sets, expand(options.data)
    for name in test:
        sets.raw_sentences(name, "test")
    train = expand(options.train)
    train = train or [name for name in test if "train" in store.set_fingerprint(name)]
    for name in train:
        sets.check_splits(name)
    if not train:
        raise UserError("--data: none of these sets has a train split; name one with --train")
    return [
        Run(model, name, replace(settings, seed=seed), "zero-shot", (source,), view=sets.view)
        for model in options.models
        for source in train
        for seed in seeds(options.seeds, settings.seed)
        for name in test
    ]


def written(results: Sequence[dict[str, Any]], output: Path, sets: DataSets) -> str:
    """Writes `matrix.json`, `matrix.md` and heat maps; returns the tables of strict F1.

    Args:
        results: results of all cells.
        output: output folder.
        sets: data sets.
    """
    train = list(dict.fromkeys(row["source"][0] for row in results))
    test = list(dict.fromkeys(row["data"] for row in results))
    models = list(dict.fromkeys(row["model"] for row in results))
    named = {**shown_names(models), **shown_names([*train, *test])}
    lines, columns = ([named[name] for name in side] for side in (train, test))
    texts = []
    matrices: dict[str, dict[str, Any]] = {}
    for number, model in enumerate(models, start=1):
        for name, (score_title, value) in SCORES.items():
            title = f"{named[model]}: {score_title}"
            scores = Results(
                {**row, "train": row["source"][0], "value": value(row)} for row in results
            ).where(model=model)
            average = ("mean", average_by_seed)
            table = scores.pivot("train", "data", "train", train, test, named, average)
            head = f"{title}, in per cent; rows train, columns test."
            texts.append("\n".join([head, "", *markdown(table)]))
            means = [
                [100 * mean(cell) for cell in scores.cells("train", "data", test, source)]
                for source in train
            ]
            matrices.setdefault(model, {})[name] = means
            picture = plots.heat_map(np.array(means), lines, columns, title)
            (output / f"matrix-{file_name(name)}-{number}.png").write_bytes(picture)
    Place(output / "matrix.json").write_json(
        {"train": train, "test": test, "per_cent": matrices, "cells": list(results)}
    )
    lowercase = bool(results[0]["view"]["lowercase"])
    rows = ["+".join(map(sets.identity, name.split("+"))) for name in train]
    test_names = [sets.identity(name) for name in test]
    sources = [part for name in train for part in name.split("+")]
    sizes = "\n".join(sizes_table(sets.sizes([*sources, *test])))
    published_tables = [_published(name, rows, test_names, lowercase) for name in SCORES]
    in_domain = "" if lowercase else _published_in_domain(test_names)
    all_texts = [*texts, *filter(None, [in_domain, *published_tables]), sizes]
    (output / "matrix.md").write_text("\n\n".join(all_texts) + "\n", encoding="utf-8")
    return "\n\n".join([*texts[:: len(SCORES)], *published_tables[:1]]).rstrip() + "\n"


def _published_in_domain(test: Sequence[str]) -> str:
    """T-NER's published numbers for taggers of each set alone (table 2); empty without one."""
    rows = []
    for model in tner_models():
        values = [tner_in_domain(model, name) for name in test]
        if any(value is not None for value in values):
            rows.append([model, *("-" if value is None else f"{value:.1f}" for value in values)])
    if not rows:
        return ""
    head = f"Published (T-NER, table 2), trained on the set itself: {SCORES['strict'][0]}."
    return "\n".join([head, "", *markdown([["model", *test], *rows])])


def _published(score: str, train: Sequence[str], test: Sequence[str], lowercase: bool) -> str:
    """T-NER's published numbers for the rows and columns of a matrix; empty without one."""
    rows = []
    for model in tner_models():
        for source in train:
            values = tner_row(score, model, source, test, lowercase)
            if any(value is not None for value in values):
                row_cells = ("-" if value is None else f"{value:.1f}" for value in values)
                rows.append([f"{model}, {source}", *row_cells])
    if not rows:
        return ""
    head = f"Published (T-NER, Ushio and Camacho-Collados 2021): {SCORES[score][0]}, in per cent."
    return "\n".join([head, "", *markdown([["train", *test, "average as stated"], *rows])])
