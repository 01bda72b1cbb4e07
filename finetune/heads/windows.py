"""Scores the words of texts of any length, in overlapping windows, and tags them; without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding, Tokenizer

from nerbert.errors import RunError
from pretrain.training.letter_cases import cases_of
from pretrain.training.subwords import first_subwords, softmax

Floats = npt.NDArray[np.float32]
Forward = Callable[..., Floats]
"""Takes sub-words, their mask, and the case of their words if the model is told (texts, length);
returns scores (texts, length, scores)."""

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""Names of what `Forward` takes, of models of transformers."""

OVERLAP = 32
"""Number of sub-words that neighbouring windows share."""

BATCH = 32
"""Number of windows of a batch."""

_SURE = 100.0


@dataclass(frozen=True)
class Window:
    """Words `first` to `end` (half-open) of a text."""

    text: int
    first: int
    end: int


def windows(subwords: Sequence[int], limit: int, overlap: int = OVERLAP) -> list[tuple[int, int]]:
    """Cuts a text into overlapping windows (first, end) of words, half-open, that cover all words.

    Args:
        subwords: number of sub-words of each word; a word with more than `limit` is a window.
        limit: largest number of sub-words of a window.
        overlap: number of sub-words that neighbours share, if possible.
    """
    ends = np.concatenate([[0], np.cumsum(subwords, dtype=np.int64)])
    runs: list[tuple[int, int]] = []
    first = end = 0
    while end < len(subwords):
        after = int(np.searchsorted(ends, ends[first] + limit, "right")) - 1
        if after <= end:  # the shared words leave no room for another word
            first = end
            after = max(int(np.searchsorted(ends, ends[first] + limit, "right")) - 1, first + 1)
        end = after
        runs.append((first, end))
        first = max(first + 1, int(np.searchsorted(ends, ends[end] - overlap, "left")))
        first = min(first, end)
    return runs


class WordTagger:
    """Scores the tags of each word, at its first sub-word."""

    def __init__(
        self,
        forward: Forward,
        tokenizer: Tokenizer,
        pad: int,
        scores: int,
        max_subwords: int,
        batch_size: int = BATCH,
        are_states: bool = False,
        attend: bool = False,
        takes_cases: bool = False,
    ) -> None:
        """Takes a function that computes scores of sub-words, and a tokenizer.

        Args:
            forward: computes the scores of sub-words.
            tokenizer: splits words into sub-words.
            pad: id of the sub-word that fills batches.
            scores: number of scores of a word.
            max_subwords: largest number of sub-words of a window, including special ones.
            batch_size: number of windows of a batch.
            are_states: whether the scores are states, of which a word without sub-words has none.
            attend: whether words attend to the padding of batches in the given order, as in the
                released code of CrossNER.
            takes_cases: whether the model is told the case of words.
        """
        self._forward, self._tokenizer = forward, tokenizer
        self._pad, self._scores = pad, scores
        self._special = tokenizer.num_special_tokens_to_add(False)
        self._limit = max_subwords - self._special
        self._batch_size = batch_size
        self._are_states, self._attend = are_states, attend
        self._takes_cases = takes_cases

    def logits(self, texts: Sequence[Sequence[str]]) -> list[Floats]:
        """Scores of the tags of each word: one array (words, scores) for each text.

        A word in two windows has the scores of the window in which it has more context. A word
        without sub-words has the first tag, O; its state is NaN.
        """
        results = [np.full((len(words), self._scores), -_SURE, np.float32) for words in texts]
        context = [np.full(len(words), -1) for words in texts]
        for rows in results:
            rows[:, 0] = _SURE
            if self._are_states:
                rows[:] = np.nan
        # Longest first: batches need less padding, and too little memory shows at once.
        windows = list(self._windows(texts))
        windows.sort(key=lambda pair: pair[0].text if self._attend else -len(pair[1].ids))
        for start in range(0, len(windows), self._batch_size):
            batch = windows[start : start + self._batch_size]
            parts = [texts[window.text][window.first : window.end] for window, _ in batch]
            values = self._run(parts, [encoding for _, encoding in batch])
            for (window, _), (words, rows) in zip(batch, values, strict=True):
                length = len(texts[window.text])
                # The edge of a text is no lack of context.
                left_context = words if window.first else np.full(len(words), length)
                right = window.end - window.first - 1 - words
                if window.end == length:
                    right = np.full(len(words), length)
                room = np.minimum(left_context, right)
                places = window.first + words
                better = room > context[window.text][places]
                results[window.text][places[better]] = rows[better]
                context[window.text][places[better]] = room[better]
        return results

    def _windows(self, texts: Sequence[Sequence[str]]) -> Iterator[tuple[Window, Encoding]]:
        """The windows of all texts, each with its sub-words."""
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        numbers = [number for number, words in enumerate(texts) if words]
        encodings = self._encoded([texts[number] for number in numbers])
        cut = []
        for number, encoding in zip(numbers, encodings, strict=True):
            words = len(texts[number])
            if len(encoding.ids) <= self._limit + self._special:
                yield Window(number, 0, words), encoding
                continue
            places = [word for word in encoding.word_ids if word is not None]
            subwords = np.bincount(places, minlength=words).tolist()
            cut += [Window(number, *span) for span in windows(subwords, self._limit)]
        # Only a single word that is longer than a window is truncated.
        self._tokenizer.enable_truncation(self._limit + self._special)
        yield from zip(
            cut, self._encoded([texts[w.text][w.first : w.end] for w in cut]), strict=True
        )

    def _encoded(self, texts: Sequence[Sequence[str]]) -> list[Encoding]:
        """The sub-words of texts."""
        return self._tokenizer.encode_batch([list(words) for words in texts], is_pretokenized=True)

    def _run(
        self, parts: Sequence[Sequence[str]], batch: Sequence[Encoding]
    ) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
        """The words of each window that have sub-words, and the scores of their tags.

        Args:
            parts: words of each window.
            batch: their sub-words.
        """
        shape = len(batch), max(len(encoding.ids) for encoding in batch)
        ids = np.full(shape, self._pad)
        mask = np.full(shape, int(self._attend))
        for row, encoding in enumerate(batch):
            ids[row, : len(encoding.ids)] = encoding.ids
            mask[row, : len(encoding.ids)] = 1
        inputs = [ids, mask]
        if self._takes_cases:
            inputs.append(np.zeros(shape, np.int64))
            for row, (part, encoding) in enumerate(zip(parts, batch, strict=True)):
                inputs[-1][row, : len(encoding.ids)] = cases_of(part, encoding.word_ids)
        scores = self._forward(*inputs)
        if not np.isfinite(scores).all():
            raise RunError(
                "the model gives scores that are not finite; use 32 bits (without --half), or "
                "train it again"
            )
        for row, encoding in zip(scores, batch, strict=True):
            words, first = first_subwords(encoding.word_ids)
            yield words, row[: len(first)][first]


class LinearHead:
    """Tags each word by itself."""

    def decode(self, logits: Floats) -> tuple[list[int], list[float]]:
        """Best tag of each word, and its probability.

        Args:
            logits: shape (words, tags).
        """
        chances = self.probabilities(logits)
        tags = logits.argmax(-1)
        return tags.tolist(), chances[np.arange(len(tags)), tags].tolist()

    def probabilities(self, logits: Floats) -> Floats:
        """Probabilities of the tags of each word (words, tags)."""
        return softmax(logits)
