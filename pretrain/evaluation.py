"""Entity F1 over the batches of an evaluation, as seqeval counts in strict mode with IOB2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ontology.labels import tags_to_spans
from pretrain.data import IGNORED


class EntityScores:
    """Counts mentions batch by batch; nothing else is kept.

    Passed to the Trainer as `compute_metrics` with `batch_eval_metrics`.
    """

    def __init__(self, tags: Sequence[str]) -> None:
        self._tags = np.array(tags, dtype=object)
        self._reset()

    def _reset(self) -> None:
        self._gold = self._predicted = self._right = self._unlinked = 0

    def __call__(self, evaluation: Any, compute_result: bool = True) -> dict[str, float]:
        """Adds a batch; with `compute_result` returns the scores of all of them, and starts anew.

        Args:
            evaluation: `predictions` label ids (batch, length); `label_ids` a pair of the gold
                label ids, `IGNORED` where no word begins, and whether the word is a name that no
                link marks, both (batch, length).
            compute_result: whether this was the last batch.
        """
        labels, unlinked = evaluation.label_ids
        for row in zip(*map(_numpy, (labels, evaluation.predictions, unlinked)), strict=True):
            self._add(*row)
        if not compute_result:
            return {}
        scores = self._scores()
        self._reset()
        return scores

    def _add(self, labels: npt.NDArray[np.int64], predictions: npt.NDArray[np.int64],
             unlinked: npt.NDArray[np.bool_]) -> None:  # fmt: skip
        words = labels != IGNORED
        gold = set(tags_to_spans(self._tags[labels[words]]))
        predicted = set(tags_to_spans(self._tags[predictions[words]]))
        self._gold += len(gold)
        self._predicted += len(predicted)
        self._right += len(gold & predicted)
        names = unlinked[words] == 1
        self._unlinked += sum(names[start:end].any() for start, end, _ in predicted - gold)

    def _scores(self) -> dict[str, float]:
        precision = self._right / max(self._predicted, 1)
        fair = self._right / max(self._predicted - self._unlinked, 1)
        recall = self._right / max(self._gold, 1)
        return {
            "precision": precision, "recall": recall, "f1": _harmonic(precision, recall),
            "f1_unlinked_ignored": _harmonic(fair, recall),
        }  # fmt: skip


def _numpy(values: Any) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = values.cpu().numpy() if torch.is_tensor(values) else values
    return array


def _harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0


def best_label(logits: torch.Tensor, labels: Any) -> torch.Tensor:
    """Label id of the highest logit, (batch, length); keeps the logits from being gathered."""
    return logits.argmax(-1)
