"""Scores of predicted tags. Every function takes gold and predicted tags, a list per sentence.

The main score is seqeval's with `mode="strict", scheme=IOB2`: an I- tag that continues no mention
is outside. In conlleval's score, which is also reported, such a tag begins a mention.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nerbert.errors import RunError
from nerbert.text.schemes import to_iob2
from nerbert.text.tags import Scores, TypedSpan, tags_to_spans

TagLists = Sequence[Sequence[str]]
Spans = list[set[TypedSpan]]

UNTYPED = "entity"
"""Type of all mentions if types are ignored."""


def _checked(gold: TagLists, predicted: TagLists) -> None:
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold sentences, but {len(predicted)} predicted")
    for number, (gold_tags, predicted_tags) in enumerate(zip(gold, predicted, strict=True)):
        if len(gold_tags) != len(predicted_tags):
            raise ValueError(
                f"sentence {number}: {len(gold_tags)} gold tags, but "
                f"{len(predicted_tags)} predicted"
            )


def _spans(sentences: TagLists) -> Spans:
    return [set(tags_to_spans(tags)) for tags in sentences]


def _untyped(spans: Spans) -> Spans:
    return [{(start, end, UNTYPED) for start, end, _ in of_sentence} for of_sentence in spans]


def _count(gold: Iterable[set[TypedSpan]], predicted: Iterable[set[TypedSpan]]) -> Scores:
    pairs = list(zip(gold, predicted, strict=True))
    right = sum(len(gold_spans & predicted_spans) for gold_spans, predicted_spans in pairs)
    return Scores(
        sum(len(gold_spans) for gold_spans, _ in pairs),
        sum(len(predicted_spans) for _, predicted_spans in pairs),
        right,
    )


def strict_scores(gold: TagLists, predicted: TagLists) -> Scores:
    """Micro scores over mentions, equal to seqeval's in strict mode with IOB2.

    Raises:
        ValueError: the lists have different lengths. All functions here check this.
    """
    _checked(gold, predicted)
    return _count(_spans(gold), _spans(predicted))


def seqeval_scores(gold: TagLists, predicted: TagLists) -> tuple[Scores, dict[str, Scores]]:
    """The strict scores, and those of each type, for reports: seqeval computes them, too.

    Raises:
        RunError: our counts give other scores than seqeval.
    """
    # These load scikit-learn, which a tagger that only predicts does not need.
    from seqeval.metrics.v1 import precision_recall_fscore_support
    from seqeval.scheme import IOB2

    our_scores, of_types = strict_scores(gold, predicted), per_type(gold, predicted)
    if not gold:
        return our_scores, of_types
    sides = [list(map(list, gold)), list(map(list, predicted))]
    keywords = {"scheme": IOB2, "zero_division": 0}
    micro = precision_recall_fscore_support(*sides, average="micro", **keywords)[:3]
    each = np.transpose(precision_recall_fscore_support(*sides, average=None, **keywords)[:3])
    rows = [(our_scores, micro), *zip(of_types.values(), each, strict=True)]
    for scores, seqevals in rows:
        if not np.allclose((scores.precision, scores.recall, scores.f1), seqevals, atol=1e-9):
            raise RunError(f"seqeval computes {seqevals}, and we {scores}: please report this")
    return our_scores, of_types


def conlleval_scores(gold: TagLists, predicted: TagLists) -> Scores:
    """Micro scores over mentions, equal to conlleval.pl's: a stray I- begins a mention."""
    return strict_scores([to_iob2(tags) for tags in gold], [to_iob2(tags) for tags in predicted])


def crossner_scores(gold: TagLists, predicted: TagLists) -> Scores:
    """Scores as the released code of CrossNER computes them: conlleval over all texts as one.

    A mention may go on from the last word of a sentence to the first of the next one.
    """
    gold_tags, predicted_tags = (
        [tag for tags in side for tag in tags] for side in (gold, predicted)
    )
    return strict_scores([to_iob2(gold_tags)], [to_iob2(predicted_tags)])


def per_type(gold: TagLists, predicted: TagLists) -> dict[str, Scores]:
    """Strict scores of each type in the gold or predicted tags, by name."""
    _checked(gold, predicted)
    gold_spans, predicted_spans = _spans(gold), _spans(predicted)
    names = sorted({name for spans in (*gold_spans, *predicted_spans) for _, _, name in spans})

    def only(spans: Spans, name: str) -> Spans:
        return [{span for span in of_sentence if span[2] == name} for of_sentence in spans]

    return {name: _count(only(gold_spans, name), only(predicted_spans, name)) for name in names}


def macro_f1(gold: TagLists, predicted: TagLists) -> float:
    """Mean strict F1 of the types, equal to seqeval's `average="macro"`; 0 without types."""
    scores = per_type(gold, predicted).values()
    return sum(score.f1 for score in scores) / len(scores) if scores else 0.0


def span_f1(gold: TagLists, predicted: TagLists) -> float:
    """Strict F1 if all types are ignored."""
    _checked(gold, predicted)
    return _count(_untyped(_spans(gold)), _untyped(_spans(predicted))).f1


def tner_span_f1(
    gold: TagLists,
    predicted: TagLists,
    tagger_tags: Collection[str],
    other_tags: Collection[str] = (),
) -> float:
    """F1 of spans as T-NER computes it if types are ignored.

    Gold tags that the tagger does not have become O. So do predicted tags that then are nowhere in
    the gold tags, of this split and of the other ones. The types of the others are collapsed, and
    mentions are decoded leniently, as by seqeval's default: a stray I- begins a mention.

    Source: T-NER 0.0.3, get_dataset_ner (labels that the model lacks, `unseen_entity_set`) and the
    evaluation with `entity_span_prediction`.

    Args:
        gold: gold tags.
        predicted: predicted tags.
        tagger_tags: the tags that the tagger has, with the names of types of both.
        other_tags: gold tags of the other splits of the set.
    """
    _checked(gold, predicted)
    known_tags = [[tag if tag in tagger_tags else "O" for tag in tags] for tags in gold]
    common_tags = {tag for tags in known_tags for tag in tags} | {*other_tags} & {*tagger_tags}
    seen_tags = [[tag if tag in common_tags else "O" for tag in tags] for tags in predicted]
    return conlleval_scores(_collapsed(known_tags), _collapsed(seen_tags)).f1


def _collapsed(sentences: TagLists) -> list[list[str]]:
    return [[tag if tag == "O" else f"{tag[0]}-{UNTYPED}" for tag in tags] for tags in sentences]


def shared_label_span_f1(gold: TagLists, predicted: TagLists) -> float:
    """Strict F1 of spans, after mentions of types that the other side lacks are dropped.

    Sets without a common type have the score 0. This is our own score; `tner_span_f1` is that of
    T-NER's published matrices.
    """
    _checked(gold, predicted)
    sides = [_spans(gold), _spans(predicted)]
    types = [{name for of_sentence in spans for _, _, name in of_sentence} for spans in sides]
    shared = types[0] & types[1]
    shared_spans = [
        [{span for span in of_sentence if span[2] in shared} for of_sentence in spans]
        for spans in sides
    ]
    return _count(_untyped(shared_spans[0]), _untyped(shared_spans[1])).f1


@dataclass(frozen=True)
class Errors:
    """Numbers of mentions by kind of error; each mention is counted once.

    Attributes:
        right: mentions with the right boundaries and type.
        type: mentions with the right boundaries and the wrong type.
        boundary: gold mentions that overlap a predicted one of their type with other boundaries.
        type_and_boundary: gold mentions that only overlap predicted ones of other types and
            boundaries.
        missed: gold mentions that overlap no predicted one.
        spurious: predicted mentions that overlap no gold one.
    """

    right: int
    type: int
    boundary: int
    type_and_boundary: int
    missed: int
    spurious: int


def error_split(gold: TagLists, predicted: TagLists) -> Errors:
    """Counts the kinds of errors of predictions."""
    _checked(gold, predicted)
    counts: Counter[str] = Counter()
    for gold_spans, predicted_spans in zip(_spans(gold), _spans(predicted), strict=True):
        at = {(start, end): name for start, end, name in predicted_spans}
        for start, end, name in gold_spans:
            if (predicted_type := at.get((start, end))) is not None:
                counts["right" if predicted_type == name else "type"] += 1
                continue
            touching = {
                kind for first, right, kind in predicted_spans if first < end and start < right
            }
            overlap = "boundary" if name in touching else "type_and_boundary"
            counts[overlap if touching else "missed"] += 1
        counts["spurious"] += sum(
            not any(first < end and start < right for first, right, _ in gold_spans)
            for start, end, _ in predicted_spans
        )
    return Errors(**{name: counts[name] for name in Errors.__dataclass_fields__})


def type_confusion(gold: TagLists, predicted: TagLists) -> dict[str, dict[str, int]]:
    """Gold type -> predicted type -> number of mentions with equal boundaries; "O" for none."""
    _checked(gold, predicted)
    table: dict[str, Counter[str]] = {}
    for gold_spans, predicted_spans in zip(_spans(gold), _spans(predicted), strict=True):
        gold_at = {(start, end): name for start, end, name in gold_spans}
        found_at = {(start, end): name for start, end, name in predicted_spans}
        for place in gold_at.keys() | found_at.keys():
            row = table.setdefault(gold_at.get(place, "O"), Counter())
            row[found_at.get(place, "O")] += 1
    return {name: dict(sorted(row.items())) for name, row in sorted(table.items())}


def bootstrap_intervals(
    gold: TagLists,
    predicted: TagLists,
    draws: int = 1000,
    seed: int = 0,
    spans_of: Callable[[Sequence[str]], list[TypedSpan]] = tags_to_spans,
) -> dict[str, list[float]]:
    """Intervals of the strict F1, by percentiles of sets of sentences drawn with replacement.

    Source: Efron and Tibshirani 1993, chapter 13; the kinds are those of T-NER (2021).

    Args:
        gold: gold tags.
        predicted: predicted tags.
        draws: number of sets.
        seed: seed of the draws.
        spans_of: decodes the tags of a sentence.

    Returns:
        "micro_90", "micro_95", "macro_90", "macro_95" -> lower and upper end. The macro F1 of a set
        is the mean over the types that it has.
    """
    _checked(gold, predicted)
    sides = [[spans_of(tags) for tags in side] for side in (gold, predicted)]
    names = sorted({name for side in sides for spans in side for _, _, name in spans})
    number = {name: place for place, name in enumerate(names)}
    # Right mentions, and gold and predicted ones together, of each sentence and type.
    counts = np.zeros((2, len(gold), max(len(names), 1)))
    for row, (gold_spans, predicted_spans) in enumerate(zip(*map(list, sides), strict=True)):
        for _, _, name in {*gold_spans} & {*predicted_spans}:
            counts[0, row, number[name]] += 1
        for _, _, name in [*set(gold_spans), *set(predicted_spans)]:
            counts[1, row, number[name]] += 1
    draw = np.random.default_rng(seed)
    size = max(len(gold), 1)
    picks = draw.multinomial(len(gold), np.full(size, 1 / size), size=draws)[:, : len(gold)]
    right, total = picks @ counts
    micro = 2 * right.sum(-1) / np.maximum(total.sum(-1), 1)
    macro = (2 * right / np.maximum(total, 1)).sum(-1) / np.maximum((total > 0).sum(-1), 1)
    return {
        f"{name}_{share}": np.quantile(scores, (0.5 - share / 200, 0.5 + share / 200)).tolist()
        for name, scores in (("micro", micro), ("macro", macro))
        for share in (90, 95)
    }
