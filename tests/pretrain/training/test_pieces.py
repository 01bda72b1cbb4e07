import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.scheme import IOB2, Entities

from nerbert.errors import UserError
from tests.helpers.corpora import LABELS, example
from tests.helpers.lazy import lazy

pieces_module = lazy("pretrain.training.pieces")

TAGS = ["O", "B-A", "I-A", "B-B", "I-B"]


@pytest.mark.parametrize(
    ("subwords", "tags", "limit", "expected"),
    [
        ([1, 1, 1], [0, 0, 0], 2, [(0, 2, 2), (2, 3, 1)]),
        ([1, 1, 1], [0, 1, 2], 2, [(0, 1, 1), (1, 3, 2)]),
        ([1, 2, 2, 1], [0, 1, 2, 0], 3, [(0, 1, 1), (3, 4, 1)]),
        ([1, 9, 1], [0, 0, 0], 3, [(0, 1, 1), (2, 3, 1)]),
        ([9, 1], [0, 0], 3, [(1, 2, 1)]),
        ([9], [1], 3, []),
        ([1, 1, 1, 1], [1, 1, 1, 1], 2, [(0, 2, 2), (2, 4, 2)]),
        ([], [], 3, []),
    ],
    ids=[
        "plain",
        "mention",
        "long-mention",
        "long-word",
        "long-first",
        "only-long",
        "adjacent",
        "empty",
    ],
)
def test_cut(subwords, tags, limit, expected):
    assert pieces_module.cut(subwords, tags, limit) == [
        pieces_module.Piece(*piece) for piece in expected
    ]


@given(st.integers(0, 2**32 - 1))
def test_cut_keeps_every_mention_that_fits(seed):
    draw = random.Random(seed)
    tags = []
    for _ in range(draw.randrange(12)):
        tags += draw.choice([[0], [1], [1, 2], [3, 4, 4], [1] + [2] * 6])
    subwords = [draw.choice([0, 1, 1, 2, 5]) for _ in tags]
    limit = draw.randrange(1, 9)
    pieces = pieces_module.cut(subwords, tags, limit)
    assert all(a.end <= b.first for a, b in pairwise(pieces))
    covered = set()
    for piece in pieces:
        assert sum(subwords[piece.first : piece.end]) == piece.subwords <= limit
        assert tags[piece.first] in (0, 1, 3)
        covered.update(range(piece.first, piece.end))
    mentions = Entities([[TAGS[tag] for tag in tags]], IOB2).entities[0] if tags else []
    units = [(m.start, m.end) for m in mentions]
    units += [(i, i + 1) for i, tag in enumerate(tags) if tag == 0]
    for start, end in units:
        fits = sum(subwords[start:end]) <= limit
        assert covered.issuperset(range(start, end)) == fits
        assert fits or covered.isdisjoint(range(start, end))


def test_misplaced_tag_finds_what_is_not_strict_iob2():
    draw = random.Random(5)
    found = 0
    for _ in range(2000):
        rows = [[draw.randrange(5) for _ in range(draw.randrange(4))] for _ in range(3)]
        bad = [
            (r, t)
            for r, row in enumerate(rows)
            for t, tag in enumerate(row)
            if tag in (2, 4) and not (t and row[t - 1] in (tag, tag - 1))
        ]
        lengths = np.array([len(row) for row in rows])
        flat = np.array([tag for row in rows for tag in row], np.int64)
        assert pieces_module.misplaced_tag(flat, lengths, 5) == (bad[0] if bad else None)
        found += bool(bad)
    assert 200 < found < 1900


class _Tokenizer:
    """Sub-words of four letters; none of a dot."""

    def num_special_tokens_to_add(self):
        return 2

    def __call__(self, rows, **_):
        def encode(words):
            ids = [w for w, word in enumerate(words) for _ in range(0, len(word.strip(".")), 4)]
            return type("Encoding", (), {"ids": ids, "word_ids": ids})

        return type("Encodings", (), {"encodings": [encode(words) for words in rows]})


def measure(rows, limit=6):
    table = pa.Table.from_pylist(rows)
    return pieces_module.Measure(_Tokenizer(), limit, len(LABELS.tags), "train")(
        table, [7, 8, 9][: len(rows)]
    )


def test_measure_counts_subwords_and_splits_long_sentences():
    rows = [
        example(0, "a bb . ccc"),
        example(1, "aaaaa/B-City bbbbb/I-City ccccc d"),
        example(2, "a"),
    ]
    assert measure(rows) == {
        "row": [7, 8, 8, 9],
        "first": [0, 0, 2, 0],
        "end": [4, 2, 4, 1],
        "subwords": [5, 6, 5, 3],
        "unseen": [1, 0, 0, 0],
    }


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ([0, 4], "label id 4 of token 1 is unknown or continues no mention"),
        ([2, 0], "label id 2 of token 0"),
        ([0, 7], "label id 7 of token 1"),
        ([-1, 0], "label id -1 of token 0"),
        ([0], "2 tokens, but 1 tags"),
    ],
    ids=["inside-outside", "inside-first", "unknown", "negative", "length"],
)
def test_a_bad_example_between_good_ones_is_named(tags, reason):
    rows = [example(0, "a b"), {**example(1, "a b"), "ner_tags": tags}, example(2, "a b")]
    with pytest.raises(UserError, match=f"train: example 1:1:0: {reason}"):
        measure(rows)
