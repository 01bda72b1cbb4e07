"""Runs `nerbert train`: reads the data, fine-tunes, scores, and writes the tagger's folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from finetune.data.registry import expand
from finetune.data.sets import SPLITS, DataSets, are_several
from finetune.evaluation import metrics
from finetune.evaluation.runs import made_from
from finetune.fitting import Work
from finetune.keeping.card import model_card
from finetune.keeping.hub import check_token, push
from finetune.options import TrainOptions
from finetune.progress import FitProgress
from finetune.settings import FitSettings
from finetune.tagger import Tagger
from nerbert import files
from nerbert.command import only_run
from nerbert.errors import UserError
from nerbert.folders import check_same, seal, sealed
from nerbert.reports import TRAINING, versions
from nerbert.text.columns import Sentence
from pretrain.logs import quiet_libraries

RECORD, METRICS = "training.json", "metrics.json"
"""Files that say what a tagger is made from, and how well it does; the second is written last."""

_WORK = ".training"
Rows = dict[str, list[Sentence]]


def train(options: TrainOptions, settings: FitSettings) -> str:
    """Trains a tagger, or continues where an earlier run stopped.

    Returns:
        A summary for users.

    Raises:
        UserError: data or model cannot be read, the folder holds something else, or the hub
            refuses the token.
    """
    settings = replace(settings, seed=options.seed)
    names = expand(options.data)
    sets = DataSets.chosen(options, len(names) > 1 or are_several(names))
    rows = {
        split: [row for name in names for row in sets.sentences(name, split, split == "train")]
        for split in SPLITS
    }
    record = {**made_from(options.base_model, sets, names), "settings": asdict(settings)}
    quiet_libraries()
    if options.push_to_hub:
        check_token(options.push_to_hub)
    with only_run(options.output):
        _check_work(options.output)
        check_same(options.output, RECORD, record)
        found = sealed(os.path.join(options.output, METRICS))
        if found is None:
            found = _made(options, settings, rows, record)
        if options.push_to_hub:
            push(options.output, options.push_to_hub, options.private)
    return _summary(options, found)


def _check_work(output: str) -> None:
    """Checks that the folder of the checkpoints, which is removed at the end, is of a run.

    Raises:
        UserError: it was there before the first run.
    """
    folder = os.path.join(output, _WORK)
    if os.path.lexists(folder) and not os.path.isfile(os.path.join(output, RECORD)):
        raise UserError(f"{folder}: not of a run; move it, or choose another --output")


def _made(
    options: TrainOptions, settings: FitSettings, rows: Rows, record: dict[str, Any]
) -> dict[str, Any]:
    """Trains and scores a tagger, and writes its folder; returns the content of `metrics.json`."""
    output = options.output
    folder = os.path.join(output, _WORK)
    events = os.path.join(output, "events") if options.tensorboard else None
    work = Work(folder, [FitProgress()], events, options.device)
    tagger = Tagger(options.base_model, settings).fit(rows["train"], rows["dev"], work=work)
    tagger.save(output)
    found = {
        "sentences": {split: len(rows[split]) for split in SPLITS},
        **{split: _scores(tagger, rows[split]) for split in SPLITS[1:] if rows[split]},
        "steps": int(tagger.history[-1]["step"]),
        "versions": versions(*TRAINING, "numpy"),
    }
    card = model_card(options, record, found)
    files.write_bytes(os.path.join(output, "README.md"), card.encode("utf-8"))
    shutil.rmtree(folder)
    made = [path.name for path in Path(output).iterdir() if path.is_file()]
    seal(os.path.join(output, METRICS), found, {*made} - {METRICS, ".lock"})
    return found


def _scores(tagger: Tagger, rows: Sequence[Sentence]) -> dict[str, Any]:
    gold, found = [row.tags for row in rows], tagger.tag([row.tokens for row in rows])
    return {
        "strict": metrics.strict_scores(gold, found).to_json(),
        "interval_95": metrics.bootstrap_interval(gold, found),
        "macro_f1": metrics.macro_f1(gold, found),
        "per_type": {k: v.to_json() for k, v in metrics.per_type(gold, found).items()},
    }


def _summary(options: TrainOptions, found: dict[str, Any]) -> str:
    lines = [f"steps       {found['steps']:,}"]
    for split in SPLITS[1:]:
        if split in found:
            strict = found[split]["strict"]
            lines.append(
                f"{split:12}F1 {strict['f1']:.4f} (seqeval strict, IOB2), precision "
                f"{strict['precision']:.4f}, recall {strict['recall']:.4f}, "
                f"{found['sentences'][split]:,} sentences"
            )
    lines.append(f"tagger      {Path(options.output)}")
    if options.push_to_hub:
        lines.append(f"hub         {options.push_to_hub}")
    return "\n".join(lines)
