import random

import pytest
from seqeval.scheme import IOB2, IOBES, Entities

from nerbert.text.schemes import scheme_of, to_iob2
from nerbert.text.tags import tags_to_spans
from tests.helpers.lazy import lazy

sequence_labeling = lazy("seqeval.metrics.sequence_labeling")

TAGS = ["O", "B-A", "I-A", "B-B", "I-B"]
ALL = [*TAGS, "E-A", "S-A", "E-B", "S-B"]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("I-A I-A O I-A", "B-A I-A O B-A"),
        ("I-A B-A I-A", "B-A B-A I-A"),
        ("B-A I-B", "B-A B-B"),
        ("S-A S-A", "B-A B-A"),
        ("B-A I-A E-A E-A", "B-A I-A I-A B-A"),
        ("B-A L-A U-B", "B-A I-A B-B"),
        ("O -", "O O"),
        ("B-a-b I-a-b", "B-a-b I-a-b"),
    ],
)
def test_to_iob2(tags, expected):
    assert to_iob2(tags.split()) == expected.split()


@pytest.mark.parametrize("alphabet", [TAGS, ALL], ids=["IOB", "IOBES"])
def test_mentions_are_those_of_conlleval_as_seqeval_has_it(alphabet):
    draw = random.Random(4)
    for _ in range(2000):
        tags = [draw.choice(alphabet) for _ in range(draw.randrange(1, 12))]
        # Its ends are inclusive, its default mode is conlleval's.
        expected = [
            (start, end + 1, name) for name, start, end in sequence_labeling.get_entities(tags)
        ]
        found = to_iob2(tags)
        assert tags_to_spans(found) == expected, tags
        strict = Entities([found], IOB2).entities[0]
        assert [(e.start, e.end, e.tag) for e in strict] == expected


def test_well_formed_iobes_keeps_its_mentions():
    tags = "S-A B-A E-A O B-B I-B E-B S-B".split()
    expected = [(e.start, e.end, e.tag) for e in Entities([tags], IOBES).entities[0]]
    assert tags_to_spans(to_iob2(tags)) == expected


@pytest.mark.parametrize(
    ("sentences", "name", "opened"),
    [
        (["B-A I-A O", "B-B"], "IOB2", 0),
        (["I-A I-A O", "I-B B-B"], "IOB1", 2),
        (["B-A I-A O", "I-B"], "IOB2", 1),
        (["O O"], "IOB2", 0),
        (["S-A B-A E-A"], "IOBES", 0),
        (["B-A E-A E-A"], "IOBES", 1),
        ([], "IOB2", 0),
    ],
)
def test_scheme_of(sentences, name, opened):
    scheme = scheme_of(sentence.split() for sentence in sentences)
    assert (scheme.name, scheme.opened) == (name, opened)
    assert scheme.strict == (name == "IOB2" and not opened)
