"""Entity F1 over the batches of an evaluation, equal to seqeval's in strict mode with IOB2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nerbert.text.schemes import to_iob2
from nerbert.text.tags import Scores, tags_to_spans
from pretrain.training.subwords import IGNORED


class EntityScores:
    """Counts mentions batch by batch, so that predictions need not be kept.

    It is the Trainer's `compute_metrics`, with `batch_eval_metrics`.
    """

    def __init__(self, tags: Sequence[str], joined: bool = False) -> None:
        """Takes the tags by label id.

        Args:
            tags: the tags.
            joined: whether all texts are scored as one by conlleval's rules, as the released code
                of CrossNER does.
        """
        self._tags = np.array(tags, dtype=object)
        self._joined = joined
        self._reset()

    def _reset(self) -> None:
        self._gold = self._predicted = self._right = self._unlinked = 0
        self._gold_tags: list[str] = []
        self._predicted_tags: list[str] = []

    def __call__(self, evaluation: Any, compute_result: bool = True) -> dict[str, float]:
        """Adds a batch. After the last one, returns the scores of all batches, and resets itself.

        Args:
            evaluation: `predictions` are label ids (batch, length). `label_ids` are a pair: the
                gold label ids, `IGNORED` where no word begins, and whether the word is a name
                without link, both (batch, length).
            compute_result: whether this is the last batch.
        """
        labels, unlinked = evaluation.label_ids
        for row in zip(*map(_numpy, (labels, evaluation.predictions, unlinked)), strict=True):
            self._add(*row)
        if not compute_result:
            return {}
        scores = self._scores()
        self._reset()
        return scores

    def _add(
        self,
        labels: npt.NDArray[np.int64],
        predictions: npt.NDArray[np.int64],
        unlinked: npt.NDArray[np.bool_],
    ) -> None:
        words = labels != IGNORED
        if self._joined:
            self._gold_tags += self._tags[labels[words]].tolist()
            self._predicted_tags += self._tags[predictions[words]].tolist()
            return
        gold = set(tags_to_spans(self._tags[labels[words]]))
        predicted = set(tags_to_spans(self._tags[predictions[words]]))
        self._gold += len(gold)
        self._predicted += len(predicted)
        self._right += len(gold & predicted)
        names = unlinked[words] == 1
        self._unlinked += sum(names[start:end].any() for start, end, _ in predicted - gold)

    def _count_joined(self) -> None:
        gold = set(tags_to_spans(to_iob2(self._gold_tags)))
        predicted = set(tags_to_spans(to_iob2(self._predicted_tags)))
        self._gold, self._predicted = len(gold), len(predicted)
        self._right = len(gold & predicted)

    def _scores(self) -> dict[str, float]:
        if self._joined:
            self._count_joined()
        scores = Scores(self._gold, self._predicted, self._right)
        fair = Scores(self._gold, self._predicted - self._unlinked, self._right)
        return {
            "precision": scores.precision,
            "recall": scores.recall,
            "f1": scores.f1,
            "f1_unlinked_ignored": fair.f1,
        }


def _numpy(values: Any) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = values.cpu().numpy() if torch.is_tensor(values) else values
    return array


def best_label(logits: torch.Tensor, labels: Any) -> torch.Tensor:
    """Label ids of the highest logits (batch, length); so the Trainer need not gather logits."""
    return logits.argmax(-1)
