import random
from types import SimpleNamespace

import numpy as np
import pytest
from seqeval.scheme import IOB2

from nerbert.text.tags import LabelSet
from tests.helpers.lazy import lazy

features = lazy("pretrain.training.features")
metrics = lazy("seqeval.metrics")
scores_module = lazy("pretrain.training.scores")

TAGS = LabelSet(("A", "B")).tags


def batch(gold, predicted, unlinked=None):
    """Word tags with ignored sub-words strewn in, padded."""
    draw = random.Random(1)
    width = 2 * max(map(len, gold)) + 2
    labels = np.full((len(gold), width), features.IGNORED)
    predictions = np.array([[draw.randrange(5) for _ in range(width)] for _ in gold])
    marks = np.zeros((len(gold), width), int)
    for row, tags in enumerate(gold):
        places = sorted(draw.sample(range(1, width), len(tags)))
        labels[row, places] = [TAGS.index(tag) for tag in tags]
        predictions[row, places] = [TAGS.index(tag) for tag in predicted[row]]
        if unlinked:
            marks[row, places] = unlinked[row]
    return SimpleNamespace(predictions=predictions, label_ids=(labels, marks))


def test_scores_are_those_of_seqeval_in_strict_mode():
    draw = random.Random(2)
    for _ in range(100):
        lengths = [draw.randrange(1, 9) for _ in range(9)]
        gold, predicted = ([[draw.choice(TAGS) for _ in range(n)] for n in lengths] for _ in "gp")
        scores = scores_module.EntityScores(TAGS)
        assert scores(batch(gold[:4], predicted[:4]), compute_result=False) == {}
        found = scores(batch(gold[4:], predicted[4:]), compute_result=True)
        strict = {"mode": "strict", "scheme": IOB2, "zero_division": 0}
        assert found["f1"] == pytest.approx(metrics.f1_score(gold, predicted, **strict))
        assert found["precision"] == pytest.approx(
            metrics.precision_score(gold, predicted, **strict)
        )
        assert found["recall"] == pytest.approx(metrics.recall_score(gold, predicted, **strict))
        assert found["f1_unlinked_ignored"] == pytest.approx(found["f1"])


def test_predictions_on_unlinked_names_can_be_ignored():
    gold = [["B-A", "O", "O", "O"]]
    predicted = [["B-A", "O", "B-B", "I-B"]]
    scores = scores_module.EntityScores(TAGS)
    linked = scores(batch(gold, predicted, [[0, 1, 0, 0]]))
    unlinked = scores(batch(gold, predicted, [[0, 0, 0, 1]]))
    assert linked["f1"] == unlinked["f1"] == linked["f1_unlinked_ignored"] == pytest.approx(2 / 3)
    assert unlinked["f1_unlinked_ignored"] == 1
