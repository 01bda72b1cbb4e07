"""Runs `nerbert train`: fine-tunes, scores, writes the tagger's folder and card, sends it."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from finetune.data.registry import expand
from finetune.data.sets import DataSets, are_several
from finetune.data.split_files import SPLITS
from finetune.experiments.runs import made_from, model_fingerprint
from finetune.options import TrainOptions
from finetune.scoring import metrics
from finetune.scoring.calibration import AS_THEY_ARE, Reliability
from finetune.scoring.plots import reliability
from finetune.settings import FitSettings
from finetune.tagger.old_types import OldTypes
from finetune.tagger.tagger import Tagger
from finetune.use.card import model_card
from finetune.use.sending import METRICS, TRAINED, check_token, files_to_send, push
from nerbert.commands.process import only_run, quiet_libraries
from nerbert.errors import UserError
from nerbert.reports import TRAINING, versions
from nerbert.storage.places import Place
from nerbert.storage.records import check_same, seal, sealed
from nerbert.text.columns import Sentence
from nerbert.text.tags import Scores, tags_to_spans

_WORK, _PLOT = ".training", "reliability.png"
_LOGGER = logging.getLogger("nerbert")
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
    sets = DataSets.of_options(options, len(names) > 1 or are_several(names))
    rows = {
        split: [row for name in names for row in sets.sentences(name, split, split == "train")]
        for split in SPLITS
    }
    # It loads torch, which takes seconds: errors in the data are said before.
    from finetune.tagger.fitting import check_reports

    if options.keep_old == options.base_model:
        settings = replace(settings, carry_head=True)
    record = {**made_from(options.base_model, sets, names), "settings": asdict(settings)}
    record["keep_old"] = model_fingerprint(options.keep_old) if options.keep_old else None
    quiet_libraries()
    check_reports(options.report_to)
    if options.push_to_hub:
        check_token(options.push_to_hub)
    with only_run(options.output):
        _check_work(options.output)
        check_same(options.output, TRAINED, record)
        results = sealed(options.output / METRICS)
        if results is None:
            results = _trained(options, settings, rows, record)
        if options.push_to_hub:
            folder = Path(options.output)
            push(folder, files_to_send(folder, METRICS), options.push_to_hub, options.private)
    return _summary(options, results)


def _check_work(output: Place) -> None:
    """Checks that the folder of the checkpoints, which is removed at the end, is of a run.

    Raises:
        UserError: it was there before the first run.
    """
    folder = os.path.join(output, _WORK)
    if os.path.lexists(folder) and not os.path.isfile(os.path.join(output, TRAINED)):
        raise UserError(f"{folder}: not of a run; move it, or choose another --output")


def _trained(
    options: TrainOptions, settings: FitSettings, rows: Rows, record: dict[str, Any]
) -> dict[str, Any]:
    """Trains and scores a tagger, and writes its folder; returns the content of `metrics.json`."""
    # These load torch.
    from finetune.tagger.fitting import Work
    from pretrain.training.logs import FitProgress

    output = options.output
    folder = os.path.join(output, _WORK)
    events = os.path.join(output, "events")
    work = Work(folder, [FitProgress()], events, options.device, options.report_to)
    old = None
    if options.keep_old:
        loaded = Tagger.load(options.keep_old, device=options.device)
        old = OldTypes.of(loaded, [row for split_rows in rows.values() for row in split_rows])
    train, dev = (old.added(rows[split]) if old else rows[split] for split in SPLITS[:2])
    types = {tag[2:] for row in train for tag in row.tags if tag != "O"}
    kept_types = old.kept_types(types, options.base_model == options.keep_old) if old else []
    _LOGGER.info(
        "%s train and %s dev sentences, %d types: %s",
        f"{len(train):,}",
        f"{len(dev):,}",
        len(types),
        ", ".join(sorted(types)),
    )
    tagger = Tagger(options.base_model, settings).fit(train, dev, work=work, more_types=kept_types)
    raw = tagger.mention_scores(rows["test"])
    if dev:
        tagger.calibrate(dev)
    # Apart, so that only what is written is listed in the record, not what lies in the folder.
    saved = Path(folder, "saved")
    tagger.save(saved)
    outputs = {path.name for path in saved.iterdir()}
    for name in outputs:
        os.replace(saved / name, Path(output, name))
    results = {
        "sentences": {split: len(rows[split]) for split in SPLITS},
        **{split: _scores(tagger, rows[split], old) for split in SPLITS[1:] if rows[split]},
        # The test split does not say which mentions of old types are right.
        **({} if old else _reliability(tagger, *raw, rows["test"], output)),
        **({"old_types_without_example": kept_types} if kept_types else {}),
        "steps": int(tagger.history[-1]["step"]),
        "versions": versions(*TRAINING, "numpy"),
    }
    card = model_card(options, record, results, dev or train)
    (output / "README.md").write_bytes(card.encode("utf-8"))
    shutil.rmtree(folder)
    plots = {_PLOT} if "scores" in results else set()
    seal(output / METRICS, results, {*outputs, "README.md", TRAINED, *plots})
    return results


def _scores(tagger: Tagger, rows: Sequence[Sentence], old: OldTypes | None) -> dict[str, Any]:
    gold, predicted = [row.tags for row in rows], tagger.tag([row.tokens for row in rows])
    if old is not None:
        predicted = old.scored(predicted)
    strict, per_type = metrics.seqeval_scores(gold, predicted)
    return {
        "strict": strict.to_json(),
        "intervals": metrics.bootstrap_intervals(gold, predicted),
        "macro_f1": metrics.macro_f1(gold, predicted),
        "per_type": {name: scores.to_json() for name, scores in per_type.items()},
    }


def _reliability(
    tagger: Tagger, raw: list[float], is_right: list[bool], test: Sequence[Sentence], output: Place
) -> dict[str, Any]:
    """Plots scores of mentions of the test split against what is right; returns the errors."""
    if tagger.calibration == AS_THEY_ARE or not raw:
        return {}
    scores = [tagger.calibration(score) for score in raw]
    before, after = (Reliability.of(mention_scores, is_right) for mention_scores in (raw, scores))
    plot = reliability({"as they are": before, "calibrated on dev": after}, Path(output).name)
    (output / _PLOT).write_bytes(plot)
    is_right_above = [
        right for score, right in zip(scores, is_right, strict=True) if score >= tagger.min_score
    ]
    gold = sum(len(tags_to_spans(row.tags)) for row in test)
    return {
        "scores": {
            "calibration_error_before": round(before.error, 4),
            "calibration_error": round(after.error, 4),
            "min_score": tagger.min_score,
            "f1_at_least_min_score": Scores(gold, len(is_right_above), sum(is_right_above)).f1,
        }
    }


def _summary(options: TrainOptions, results: dict[str, Any]) -> str:
    lines = [f"steps       {results['steps']:,}"]
    for split in SPLITS[1:]:
        if split in results:
            strict = results[split]["strict"]
            lines.append(
                f"{split:12}F1 {strict['f1']:.4f} (seqeval strict, IOB2), precision "
                f"{strict['precision']:.4f}, recall {strict['recall']:.4f}, "
                f"{results['sentences'][split]:,} sentences"
            )
    if "scores" in results:
        mention_scores = results["scores"]
        lines.append(
            f"scores      off by {mention_scores['calibration_error_before']:.3f}, calibrated on "
            f"dev by {mention_scores['calibration_error']:.3f}; test F1 of those from "
            f"{mention_scores['min_score']:.2f} "
            f"{mention_scores['f1_at_least_min_score']:.4f}"
        )
    lines.append(f"tagger      {Path(options.output)}")
    tagger = Path(options.output)
    lines.append(f"next        nerbert predict --model {tagger} 'A text.'")
    lines.append(
        f"faster      nerbert export --format onnx --model {tagger}  # then predict starts sooner"
    )
    if options.push_to_hub:
        lines.append(f"hub         {options.push_to_hub}")
    return "\n".join(lines)
