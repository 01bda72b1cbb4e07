import random
from itertools import pairwise

import numpy as np
import pytest

from tests.helpers.lazy import lazy

windows_module = lazy("finetune.heads.windows")


@pytest.mark.parametrize(
    ("subwords", "limit", "overlap", "expected"),
    [
        ([1] * 4, 4, 2, [(0, 4)]),
        ([1] * 5, 4, 2, [(0, 4), (2, 5)]),
        ([1] * 8, 4, 2, [(0, 4), (2, 6), (4, 8)]),
        ([1, 9, 1], 4, 2, [(0, 1), (1, 2), (2, 3)]),
        ([3, 3, 3], 4, 2, [(0, 1), (1, 2), (2, 3)]),
        ([], 4, 2, []),
    ],
    ids=["fits", "two", "three", "long-word", "no-room", "empty"],
)
def test_windows(subwords, limit, overlap, expected):
    assert windows_module.windows(subwords, limit, overlap) == expected


def test_windows_cover_every_word_and_fit():
    draw = random.Random(0)
    for _ in range(2000):
        subwords = [draw.choice([0, 1, 1, 1, 2, 5, 12]) for _ in range(draw.randrange(1, 40))]
        limit, overlap = draw.randrange(4, 12), draw.randrange(4)
        found = windows_module.windows(subwords, limit, overlap)
        assert found[0][0] == 0
        assert found[-1][1] == len(subwords)
        for first, end in found:
            assert first < end
            assert sum(subwords[first:end]) <= limit or end == first + 1
        for (first, end), (following, after) in pairwise(found):
            assert first < following <= end < after


def _scores(ids, mask):
    """The score of tag 1 says how many sub-words stand before, or after if these are fewer."""
    place = np.arange(ids.shape[1])
    nearest = np.minimum(place, mask.sum(1, keepdims=True) - 1 - place).astype(np.float32)
    return np.stack([-nearest, nearest, nearest - 1], -1)


class _Encoding:
    def __init__(self, words):
        inner = [w for w, word in enumerate(words) for _ in word.strip(".")]
        self.word_ids = [None, *inner, None]
        self.ids = [1] * len(self.word_ids)


class _Tokenizer:
    """A sub-word a letter; none of a dot."""

    def num_special_tokens_to_add(self, is_pair):
        return 2

    def no_padding(self):
        pass

    no_truncation = no_padding

    def enable_truncation(self, length):
        pass

    def encode_batch(self, texts, is_pretokenized):
        return [_Encoding(words) for words in texts]


def _tagger(batch_size=32):
    return windows_module.WordTagger(_scores, _Tokenizer(), 0, 3, 42, batch_size)


def test_a_word_is_taken_from_the_window_with_most_context():
    tagger = _tagger()
    words = ["x"] * 100
    (rows,) = tagger.logits([words])
    # Windows of 40 that share 32: inside, a word has at least 16 others on both sides.
    assert rows.shape == (100, 3)
    assert np.all(rows[20:80, 1] >= 16)


def test_order_and_empty_texts_and_words_without_subwords():
    tagger = _tagger(2)
    texts = [["ab", ".", "c"], [], ["x"] * 50, ["d"]]
    found = tagger.logits(texts)
    assert [len(rows) for rows in found] == [3, 0, 50, 1]
    assert found[0][1].argmax() == 0
    assert np.ptp(found[0][1]) > 50
    alone = [tagger.logits([text])[0] for text in texts]
    assert all(np.allclose(a, b) for a, b in zip(alone, found, strict=True))
