"""One run: fine-tunes, predicts the test split, and scores it in every way."""

from __future__ import annotations

import time
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np

from finetune import metrics
from finetune.conll import Sentence
from finetune.labelmaps import LabelMap, onto, renamed
from finetune.runs import Predictions, Run, read_view, shots_of
from finetune.settings import fitted
from finetune.tagger import Tagger
from pretrain.data import quiet_libraries

_LIBRARIES = ("nerbert", "torch", "transformers", "tokenizers", "datasets", "numpy")


def shots(rows: list[Sentence], count: int, seed: int) -> list[Sentence]:
    """`count` sentences, drawn at random; a smaller draw of a seed is part of a larger one.

    Args:
        rows: to draw from.
        count: that are wanted.
        seed: of the draw.
    """
    if count >= len(rows):
        return rows
    order = np.random.default_rng(seed).permutation(len(rows))[:count]
    return [rows[index] for index in sorted(order.tolist())]


def fit(run: Run) -> tuple[Tagger, int]:
    """The tagger of a run, and the number of target sentences that it learnt."""
    quiet_libraries()
    source = read_view(run.view, run.source, "train") if run.source else []
    if run.setting == "zero-shot":
        dev = read_view(run.view, run.source, "dev", needed=False) if run.source else []
        return fitted(run.model, run.setting, [], dev, source, run.settings), 0
    train = read_view(run.view, run.data, "train")
    train = shots(train, shots_of(run.shots, len(train)), run.settings.seed)
    dev = read_view(run.view, run.data, "dev", needed=False)
    return fitted(run.model, run.setting, train, dev, source, run.settings), len(train)


def scored(run: Run) -> tuple[dict[str, Any], Predictions]:
    """Scores of a run, with how long it took and the versions that it ran with; predictions."""
    start = time.monotonic()
    tagger, learnt = fit(run)
    history = [
        {"step": line["step"], "dev_f1": line["eval_f1"]}
        for line in tagger.history if "eval_f1" in line
    ]  # fmt: skip
    found, predictions = measured(tagger, run)
    found |= {"train_sentences": learnt, "history": history,
              "seconds": round(time.monotonic() - start, 1)}  # fmt: skip
    return found, predictions


def measured(tagger: Tagger, run: Run) -> tuple[dict[str, Any], Predictions]:
    """Scores and predictions of a tagger on the test split of a run's set."""
    start = time.monotonic()
    predictions, raw = predicted(tagger, run)
    found = scores(predictions.gold, predictions.predicted, raw)
    seconds = round(time.monotonic() - start, 1)
    return {**found, "seconds": seconds, "versions": versions()}, predictions


def predicted(tagger: Tagger, run: Run) -> tuple[Predictions, metrics.TagLists]:
    """A tagger's predictions on the test split, and its tags under its own types.

    In zero-shot its types are put onto those of the set (`finetune.labelmaps.onto`).
    """
    test = read_view(run.view, run.data, "test")
    tokens, gold = [row.tokens for row in test], [row.tags for row in test]
    raw = tagger.tag(tokens)
    if run.setting != "zero-shot":
        return Predictions(tokens, gold, raw), raw
    names = LabelMap.load(run.view.label_map)
    new_name = onto({tag[2:] for tags in gold for tag in tags if tag != "O"}, names)
    found = [renamed(tags, new_name) for tags in raw]
    return Predictions(tokens, gold, found), [names.tags(tags) for tags in raw]


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    return {name: version(name) for name in _LIBRARIES}


def scores(
    gold: metrics.TagLists, found: metrics.TagLists, raw: metrics.TagLists
) -> dict[str, Any]:
    """All scores of a test set; `strict` is the main one.

    Args:
        gold: tags.
        found: predicted tags, their types put onto those of the set.
        raw: predicted tags under the tagger's own types, for the scores that ignore types.
    """
    return {
        "strict": metrics.strict_scores(gold, found).to_json(),
        "interval_95": metrics.bootstrap_interval(gold, found),
        "conlleval": metrics.conlleval_scores(gold, found).to_json(),
        "macro_f1": metrics.macro_f1(gold, found),
        "span_f1": metrics.span_f1(gold, raw),
        "shared_label_span_f1": metrics.shared_label_span_f1(gold, raw),
        "per_type": {k: v.to_json() for k, v in metrics.per_type(gold, found).items()},
        "errors": asdict(metrics.error_split(gold, found)),
        "confusion": metrics.type_confusion(gold, found),
    }
