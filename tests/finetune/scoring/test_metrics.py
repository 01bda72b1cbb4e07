"""Scores against seqeval, and against a plain conlleval."""

import random

import numpy as np
import pytest
from seqeval.scheme import IOB2

from finetune.scoring import metrics
from nerbert.errors import RunError
from nerbert.text.tags import Scores, tags_to_spans
from tests.helpers.lazy import lazy

metrics_module = lazy("seqeval.metrics")
v1 = lazy("seqeval.metrics.v1")

TAGS = ["O", "O", "B-A", "I-A", "B-B", "I-B", "I-C"]
STRICT = {"mode": "strict", "scheme": IOB2, "zero_division": 0}


def random_pairs(count, seed=0, tags=TAGS):
    """Sets of gold and predicted tags that agree in part."""
    draw = random.Random(seed)
    for _ in range(count):
        gold, predicted = [], []
        for _ in range(draw.randrange(1, 4)):
            one = [draw.choice(tags) for _ in range(draw.randrange(1, 9))]
            gold.append(one)
            predicted.append([tag if draw.random() < 0.7 else draw.choice(tags) for tag in one])
        yield gold, predicted


def conlleval(gold, predicted):
    """Mentions gold, predicted and right, one tag after the other, as conlleval.pl counts."""
    counts = [0, 0, 0]
    for one, other in zip(gold, predicted, strict=True):
        before = ["O", "O"]
        right = False
        for pair in [*zip(one, other, strict=True), ("O", "O")]:
            ends, starts = [], []
            for last, tag in zip(before, pair, strict=True):
                same = last[2:] == tag[2:]
                ends.append(last != "O" and (tag[0] in "OB" or not same))
                starts.append(tag != "O" and (tag[0] == "B" or last == "O" or not same))
            if right:
                if all(ends):
                    counts[2] += 1
                    right = False
                elif any(ends) or pair[0][2:] != pair[1][2:]:
                    right = False
            if all(starts) and pair[0][2:] == pair[1][2:]:
                right = True
            counts[0] += starts[0]
            counts[1] += starts[1]
            before = list(pair)
    return counts


@pytest.mark.filterwarnings("ignore:.*seems not to be NE tag")
def test_scores_of_2000_random_sets():
    for gold, predicted in random_pairs(2000):
        strict = metrics.strict_scores(gold, predicted)
        assert strict.f1 == pytest.approx(metrics_module.f1_score(gold, predicted, **STRICT))
        assert strict.precision == pytest.approx(
            metrics_module.precision_score(gold, predicted, **STRICT)
        )
        assert strict.recall == pytest.approx(
            metrics_module.recall_score(gold, predicted, **STRICT)
        )
        loose = metrics.conlleval_scores(gold, predicted)
        assert [loose.gold, loose.predicted, loose.right] == conlleval(gold, predicted)
        assert loose.f1 == pytest.approx(metrics_module.f1_score(gold, predicted, zero_division=0))


@pytest.mark.filterwarnings("ignore:.*seems not to be NE tag")
def test_reported_scores_are_checked_by_seqeval(monkeypatch):
    for gold, predicted in random_pairs(100, seed=2):
        strict, types = metrics.seqeval_scores(gold, predicted)
        assert strict == metrics.strict_scores(gold, predicted)
        assert types == metrics.per_type(gold, predicted)
    monkeypatch.setattr(metrics, "strict_scores", lambda gold, predicted: Scores(3, 3, 1))
    with pytest.raises(RunError, match=r"seqeval computes .* please report this"):
        metrics.seqeval_scores([["B-a", "O"]], [["B-a", "O"]])


def test_types_and_macro_are_those_of_seqeval():
    for gold, predicted in random_pairs(300, seed=1):
        found = metrics.per_type(gold, predicted)
        if not found:
            continue
        report = v1.classification_report(
            gold, predicted, scheme=IOB2, output_dict=True, zero_division=0
        )
        assert {name: (score.f1, score.gold) for name, score in found.items()} == {
            name: (pytest.approx(row["f1-score"]), row["support"])
            for name, row in report.items()
            if not name.endswith("avg")
        }
        assert metrics.macro_f1(gold, predicted) == pytest.approx(report["macro avg"]["f1-score"])


GOLD = [["B-A", "I-A", "O", "B-B", "O", "B-C"]]


def test_span_f1_ignores_types_on_both_sides():
    predicted = [["B-X", "I-X", "O", "B-Y", "O", "O"]]
    assert metrics.strict_scores(GOLD, predicted).f1 == 0
    assert metrics.span_f1(GOLD, predicted) == pytest.approx(2 * 2 / 5)
    assert metrics.shared_label_span_f1(GOLD, predicted) == 0


def test_shared_labels_only():
    predicted = [["B-B", "I-B", "O", "B-B", "O", "B-X"]]
    # Gold keeps its B; predicted its two B; one of them is at gold's.
    assert metrics.shared_label_span_f1(GOLD, predicted) == pytest.approx(2 * 1 / 3)
    assert metrics.span_f1(GOLD, predicted) == 1


def tner_by_its_steps(gold, predicted, known, others=()):
    """T-NER's rule, tag by tag: labels that the model lacks, then the unseen ones, then spans.

    `unseen_entity_set` is of the labels that no split has: get_dataset.py makes it in the loop
    over the splits.
    """
    labels = {tag: number for number, tag in enumerate(sorted(known | {"O"}))}
    true = [[labels.get(tag, labels["O"]) for tag in tags] for tags in gold]
    names = {number: tag for tag, number in labels.items()}
    seen = [names[number] for tags in true for number in tags]
    unseen = set(labels) - {*seen, *(tag for tag in others if tag in labels)}
    pairs = []
    for ones, others in zip(true, predicted, strict=True):
        one, other = [], []
        for number, tag in zip(ones, others, strict=True):
            name = names[number]
            one.append(name if name == "O" else "-".join([name.split("-")[0], "entity"]))
            found = "O" if tag in unseen else tag
            other.append(found if found == "O" else "-".join([found.split("-")[0], "entity"]))
        pairs.append((one, other))
    return metrics_module.f1_score([a for a, _ in pairs], [b for _, b in pairs], zero_division=0)


def test_tner_rule_on_random_sets():
    draw = random.Random(3)
    for gold, predicted in random_pairs(2000, seed=3):
        own = {tag for tags in predicted for tag in tags}
        every = sorted({tag for tags in gold for tag in tags} | own)
        known = own | set(draw.sample(every, draw.randrange(len(every) + 1)))
        others = draw.sample(every, draw.randrange(len(every) + 1))
        for more in ((), others):
            expected = tner_by_its_steps(gold, predicted, known, more)
            found = metrics.tner_span_f1(gold, predicted, known, more)
            assert found == pytest.approx(expected)


def test_tner_rule_by_hand():
    gold = [["B-LOC", "I-LOC", "O", "B-PER", "O", "B-MISC"]]
    predicted = [["B-LOC", "I-LOC", "O", "B-LOC", "B-DISEASE", "O"]]
    known = {"O", "B-LOC", "I-LOC", "B-DISEASE", "I-DISEASE"}
    # PER and MISC are unknown to the tagger, DISEASE to the set: LOC is left, and a spurious LOC.
    assert metrics.tner_span_f1(gold, predicted, known) == pytest.approx(2 / 3)
    assert metrics.span_f1(gold, predicted) == pytest.approx(4 / 6)
    assert metrics.tner_span_f1(gold, [["O"] * 6], {"O", "B-DISEASE"}) == 0


def test_error_split():
    gold = [["B-A", "I-A", "O", "B-B", "O", "B-C", "I-C", "O", "B-A", "O", "B-A", "I-A"]]
    predicted = [["B-A", "I-A", "O", "B-C", "O", "B-C", "O", "O", "O", "B-B", "B-B", "O"]]
    found = metrics.error_split(gold, predicted)
    assert found == metrics.Errors(
        right=1, type=1, boundary=1, type_and_boundary=1, missed=1, spurious=1
    )


def test_errors_add_up():
    for gold, predicted in random_pairs(500, seed=2):
        errors, scores = (
            metrics.error_split(gold, predicted),
            metrics.strict_scores(gold, predicted),
        )
        kinds = errors.type + errors.boundary + errors.type_and_boundary + errors.missed
        assert errors.right == scores.right
        assert errors.right + kinds == scores.gold
        assert errors.right + errors.type + errors.spurious <= scores.predicted


def test_type_confusion():
    predicted = [["B-A", "I-A", "O", "B-C", "B-B", "O"]]
    assert metrics.type_confusion(GOLD, predicted) == {
        "A": {"A": 1},
        "B": {"C": 1},
        "C": {"O": 1},
        "O": {"B": 1},
    }


def test_bootstrap_interval_covers_and_repeats():
    gold, predicted = zip(*(pair for pair in random_pairs(150, seed=3)), strict=True)
    gold = [tags for found in gold for tags in found]
    predicted = [tags for found in predicted for tags in found]
    found = metrics.bootstrap_intervals(gold, predicted)
    low, high = found["micro_95"]
    f1 = metrics.strict_scores(gold, predicted).f1
    assert low < f1 < high
    assert 0.02 < high - low < 0.25
    assert found["micro_90"][0] > low
    assert found["micro_90"][1] < high
    assert found == metrics.bootstrap_intervals(gold, predicted)
    assert set(map(tuple, metrics.bootstrap_intervals(gold, gold).values())) == {(1.0, 1.0)}
    assert set(map(tuple, metrics.bootstrap_intervals([], []).values())) == {(0.0, 0.0)}
    assert metrics.macro_f1([["O"]], [["O"]]) == 0.0


def test_uneven_lists_are_refused():
    with pytest.raises(ValueError, match="1 gold sentences, but 2 predicted"):
        metrics.strict_scores([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="sentence 1: 1 gold tags, but 2 predicted"):
        metrics.span_f1([["O"], ["O"]], [["O"], ["O", "O"]])


def test_bootstrap_by_loops():
    """Each set of sentences is drawn and scored by seqeval."""
    gold, predicted = zip(*random_pairs(25, seed=4), strict=True)
    gold = [tags for found in gold for tags in found][:30]
    predicted = [tags for found in predicted for tags in found][:30]
    draws = 40
    found = metrics.bootstrap_intervals(gold, predicted, draws)
    picks = np.random.default_rng(0).multinomial(30, np.full(30, 1 / 30), size=draws)
    scores = {"micro": [], "macro": []}
    for times in picks:
        one, other = (
            [side[n] for n, count in enumerate(times) for _ in range(count)]
            for side in (gold, predicted)
        )
        for kind, values in scores.items():
            values.append(metrics_module.f1_score(one, other, average=kind, **STRICT))
    for kind, values in scores.items():
        for share, ends in ((90, (0.05, 0.95)), (95, (0.025, 0.975))):
            assert found[f"{kind}_{share}"] == pytest.approx(np.quantile(values, ends).tolist())


def test_errors_beside_nervaluate():
    """nervaluate's counts: right, type, boundary; the others where no two mentions overlap one."""
    evaluator = pytest.importorskip("nervaluate").Evaluator
    draw = random.Random(5)
    simple = 0
    for _ in range(1500):
        length = draw.randint(1, 9)
        gold, found = random_tags(draw, length), random_tags(draw, length)
        ours = metrics.error_split([gold], [found])
        judge = evaluator([gold], [found], tags=["A", "B"], loader="list").evaluate()["overall"]
        assert ours.right == judge["strict"].correct
        assert ours.type == judge["exact"].correct - judge["strict"].correct
        pairs = [
            (one, other)
            for one in tags_to_spans(gold)
            for other in tags_to_spans(found)
            if one[0] < other[1] and other[0] < one[1]
        ]
        if len({one for one, _ in pairs}) == len(pairs) == len({other for _, other in pairs}):
            simple += 1
            assert ours.missed == judge["strict"].missed
            assert ours.spurious == judge["strict"].spurious
            assert ours.boundary == judge["ent_type"].correct - judge["strict"].correct
    assert simple > 300


def random_tags(draw, length):
    tags = []
    while len(tags) < length:
        name = draw.choice("AB")
        more = draw.randint(0, 2)
        tags += ["O"] if draw.random() < 0.5 else [f"B-{name}", *[f"I-{name}"] * more]
    return tags[:length]
