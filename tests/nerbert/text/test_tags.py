import random

import pytest
from seqeval.scheme import IOB2, Entities

from nerbert.text.tags import LabelSet, spans_to_tags, tags_to_spans


def test_label_ids_are_positions():
    labels = LabelSet(("ENTITY", "City"))
    assert labels.tags == ["O", "B-ENTITY", "I-ENTITY", "B-City", "I-City"]
    assert labels.tags[labels.begin(1)] == "B-City"


def test_random_tags_decode_as_seqeval_does_in_strict_mode():
    draw = random.Random(5)
    for _ in range(2000):
        tags = [draw.choice(["O", "B-x", "I-x", "B-y", "I-y"]) for _ in range(draw.randint(1, 9))]
        expected = [(e.start, e.end, e.tag) for e in Entities([tags], IOB2).entities[0]]
        assert tags_to_spans(tags) == expected


def test_round_trip_of_random_spans():
    draw = random.Random(6)
    for _ in range(500):
        cuts = sorted(draw.sample(range(21), 8))
        pairs = zip(cuts[::2], cuts[1::2], strict=True)
        spans = [(start, end, draw.choice("xy")) for start, end in pairs]
        assert tags_to_spans(spans_to_tags(spans, 20)) == spans


@pytest.mark.parametrize("spans", [[(0, 0, "x")], [(2, 4, "x")], [(0, 2, "x"), (1, 3, "y")]])
def test_impossible_spans(spans):
    with pytest.raises(ValueError, match="span"):
        spans_to_tags(spans, 3)
