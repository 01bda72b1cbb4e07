r"""Fine-tunes on each of several sets and scores each tagger on all of them: train x test.

    python -m finetune.matrix --model xlm-roberta-base --data btc re3d wikigold sec_filings
    python -m finetune.matrix --model xlm-roberta-base --data wikiann/en wikiann/es wikiann/ru \
        --train wikiann/en wikiann/en+wikiann/es --output wikiann

Every cell is kept in --output; the same command goes on with those that are missing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from finetune import flags, plots
from finetune.report import file_name
from finetune.runs import Kept, Predictions, Run, set_fingerprint, write_json
from finetune.sets import differ, expand, sentences
from finetune.tables import markdown, spread
from pipeline.errors import UserError
from pretrain import commandline

if TYPE_CHECKING:
    from finetune.tagger import Tagger

SCORES: dict[str, tuple[str, Callable[[dict[str, Any]], float]]] = {
    "strict": ("F1 (seqeval strict, IOB2)", lambda row: row["strict"]["f1"]),
    "span": ("F1 of spans, types ignored", lambda row: row["span_f1"]),
    "shared-label-span": ("F1 of spans of types that both sides have, types ignored",
                          lambda row: row["shared_label_span_f1"]),
}  # fmt: skip
"""Name -> what it is, and its place in a result."""

FLAGS: dict[str, dict[str, Any]] = {
    **flags.MODELS,
    "--data": {"nargs": "+", "required": True, "metavar": "SET",
               "help": "sets to test on: names, patterns, hf:NAME, folders"},
    "--train": {"nargs": "+", "default": [], "metavar": "SET",
                "help": "sets to learn, A+B for both together (default: those of --data that have "
                        "a train split)"},
    **flags.TRAINING,
    **flags.DATA,
    "--keep-models": {"action": "store_true", "help": "keep each row's checkpoint"},
    **flags.OUTPUT,
}  # fmt: skip


class Rows:
    """Taggers of the rows: fine-tuned once, then loaded for each missing cell."""

    def __init__(self, folder: Path, keep: bool) -> None:
        self._folder, self._keep = folder, keep
        self._loaded: tuple[Path, Tagger] | None = None

    def _path(self, run: Run) -> Path:
        row = replace(run, data=run.source[0])
        return self._folder / blake2b(row.key.encode(), digest_size=8).hexdigest()

    def tagger(self, run: Run) -> Tagger:
        """The tagger of a cell's row."""
        from finetune.scoring import fit
        from finetune.tagger import Tagger

        path = self._path(run)
        if not path.is_dir():
            half = path.with_name(path.name + ".tmp")
            fit(run)[0].save(str(half))
            half.rename(path)
        if self._loaded is None or self._loaded[0] != path:
            self._loaded = path, Tagger.load(str(path), run.settings)
        return self._loaded[1]

    def done(self, run: Run) -> None:
        """Lets go of a row's checkpoint."""
        if not self._keep:
            shutil.rmtree(self._path(run), ignore_errors=True)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    return commandline.parser("finetune.matrix", __doc__, FLAGS)


def planned(options: argparse.Namespace) -> list[list[Run]]:
    """The cells, row by row; their data has been read once.

    Raises:
        UserError: a value is out of range, or data is missing.
    """
    settings = flags.fit_settings(options)
    view = flags.view(options, several=True)
    test = expand(options.data)
    for name in test:
        sentences(name, "test")
    train = expand(options.train) or [name for name in test if "train" in set_fingerprint(name)]
    for name in train:
        sentences(name, "train")
        if not differ(name):
            raise UserError(f"{name}: train and test are the same; give a folder with both")
    if not train:
        raise UserError("--data: none of these sets has a train split; name one with --train")
    return [
        [Run(model, name, replace(settings, seed=seed), "zero-shot", (source,), view=view)
         for name in test]
        for model in options.models for source in train for seed in flags.seeds(options)
    ]  # fmt: skip


def cell(run: Run, rows: Rows) -> tuple[dict[str, Any], Predictions]:
    """Scores and predictions of a row's tagger on a test set."""
    from finetune.scoring import measured

    return measured(rows.tagger(run), run)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    commandline.begin()
    options = parser().parse_args(argv)
    flags.use_data_root(options)
    return commandline.run(lambda: _fill(options), options.output)


def _fill(options: argparse.Namespace) -> None:
    output = Path(options.output)
    kept = Kept(output / "cells")
    rows = Rows(output / "rows", options.keep_models)
    plan = planned(options)
    results = []
    for number, row in enumerate(plan, start=1):
        where = f"row {number} of {len(plan)}: {row[0].source[0]} -> "
        results += [kept.result(run, lambda run: cell(run, rows), where) for run in row]
        rows.done(row[0])
    print(written(results, output))


def written(results: Sequence[dict[str, Any]], output: Path) -> str:
    """Writes `matrix.json`, `matrix.md` and heat maps; returns the table of strict F1."""
    train = list(dict.fromkeys(row["source"][0] for row in results))
    test = list(dict.fromkeys(row["data"] for row in results))
    texts = []
    matrices: dict[str, dict[str, Any]] = {}
    for number, model in enumerate(dict.fromkeys(row["model"] for row in results), start=1):
        for name, (what, value) in SCORES.items():
            found = [[_values(results, value, model, source, data) for data in test]
                     for source in train]  # fmt: skip
            table = [[source, *map(spread, cells)]
                     for source, cells in zip(train, found, strict=True)]  # fmt: skip
            texts.append("\n".join([f"{model}: {what}, in per cent; rows train, columns test.", "",
                                    *markdown([["train", *test], *table])]))  # fmt: skip
            means = [[100 * mean(cell) for cell in cells] for cells in found]
            matrices.setdefault(model, {})[name] = means
            picture = plots.heat_map(np.array(means), train, test, f"{plots.short(model)}: {what}")
            (output / f"matrix-{file_name(name)}-{number}.png").write_bytes(picture)
    write_json(output / "matrix.json", {"train": train, "test": test, "per_cent": matrices,
                                        "cells": list(results)})  # fmt: skip
    (output / "matrix.md").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return "\n\n".join(texts[:: len(SCORES)]) + "\n"


def _values(
    results: Sequence[dict[str, Any]], value: Callable[[dict[str, Any]], float], model: str,
    source: str, data: str,
) -> list[float]:  # fmt: skip
    """A score of each seed."""
    place = (model, source, data)
    return [value(row) for row in results if (row["model"], row["source"][0], row["data"]) == place]


if __name__ == "__main__":
    sys.exit(main())
