"""One run: fine-tunes, predicts the test split, and scores it in every way."""

from __future__ import annotations

import time
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from finetune import metrics
from finetune.sets import sentences
from finetune.settings import fitted
from pretrain.data import quiet_libraries

if TYPE_CHECKING:
    from finetune.conll import Sentence
    from finetune.evaluate import Run

_LIBRARIES = ("nerbert", "torch", "transformers", "tokenizers")


def shots(rows: list[Sentence], count: int, seed: int) -> list[Sentence]:
    """`count` sentences, drawn at random; a smaller draw of a seed is part of a larger one.

    Args:
        rows: to draw from.
        count: that are wanted; 0 for all.
        seed: of the draw.
    """
    if not count or count >= len(rows):
        return rows
    order = np.random.default_rng(seed).permutation(len(rows))[:count]
    return [rows[index] for index in sorted(order.tolist())]


def scored(run: Run) -> dict[str, Any]:
    """Scores of a run, with how long it took and the versions that it ran with."""
    quiet_libraries()
    start = time.monotonic()
    train = shots(sentences(run.data, "train"), run.shots, run.settings.seed)
    source = sentences(run.source, "train") if run.source else []
    tagger = fitted(run.model, run.setting, train, sentences(run.data, "dev", needed=False),
                    source, run.settings)  # fmt: skip
    test = sentences(run.data, "test")
    gold = [row.tags for row in test]
    predicted = tagger.tag([row.tokens for row in test])
    epochs = max((line.get("epoch", 0) for line in tagger.history), default=0)
    return {
        **scores(gold, predicted), "train_sentences": len(train), "epochs": epochs,
        "seconds": round(time.monotonic() - start, 1),
        "versions": {name: version(name) for name in _LIBRARIES},
    }  # fmt: skip


def scores(gold: metrics.TagLists, predicted: metrics.TagLists) -> dict[str, Any]:
    """All scores of a test set; `strict` is the main one."""
    return {
        "strict": metrics.strict_scores(gold, predicted).to_json(),
        "interval_95": metrics.bootstrap_interval(gold, predicted),
        "conlleval": metrics.conlleval_scores(gold, predicted).to_json(),
        "macro_f1": metrics.macro_f1(gold, predicted),
        "span_f1": metrics.span_f1(gold, predicted),
        "shared_label_span_f1": metrics.shared_label_span_f1(gold, predicted),
        "per_type": {k: v.to_json() for k, v in metrics.per_type(gold, predicted).items()},
        "errors": asdict(metrics.error_split(gold, predicted)),
        "confusion": metrics.type_confusion(gold, predicted),
    }
