"""Tags of words in texts of any length: windows that overlap, so that nothing is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from pretrain.tagging import tag_names

OVERLAP = 32
"""Sub-words that neighbouring windows share."""


@dataclass(frozen=True)
class Window:
    """Words `first` to `end` (half-open) of a text."""

    text: int
    first: int
    end: int


def windows(subwords: Sequence[int], limit: int, overlap: int = OVERLAP) -> list[tuple[int, int]]:
    """Cuts a text into overlapping runs of words, (first, end) half-open, that cover all words.

    Args:
        subwords: of each word; one that alone is longer than `limit` gets a window of its own.
        limit: sub-words of a window.
        overlap: sub-words that neighbours share, where they fit.
    """
    ends = np.concatenate([[0], np.cumsum(subwords, dtype=np.int64)])
    runs: list[tuple[int, int]] = []
    first = end = 0
    while end < len(subwords):
        after = int(np.searchsorted(ends, ends[first] + limit, "right")) - 1
        if after <= end:  # the shared words leave no room for the next
            first = end
            after = max(int(np.searchsorted(ends, ends[first] + limit, "right")) - 1, first + 1)
        end = after
        runs.append((first, end))
        first = max(first + 1, int(np.searchsorted(ends, ends[end] - overlap, "left")))
        first = min(first, end)
    return runs


class WordTagger:
    """Predicts the tag of each word, at its first sub-word."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, max_subwords: int,
        batch_size: int = 32,
    ) -> None:  # fmt: skip
        self._model = model
        self._tokenizer = tokenizer
        self._limit = max_subwords - tokenizer.num_special_tokens_to_add()
        self._batch_size = batch_size

    def probabilities(self, texts: Sequence[Sequence[str]]) -> list[npt.NDArray[np.float32]]:
        """Probability of each tag for each word, (words, tags), one array a text.

        A word in two windows is taken from the one in which it has more context. A word without
        sub-words has probability 1 for the first tag, O.
        """
        size = len(tag_names(self._model))
        results = [np.zeros((len(words), size), np.float32) for words in texts]
        context = [np.full(len(words), -1) for words in texts]
        for rows in results:
            rows[:, 0] = 1
        found = sorted(self._windows(texts), key=lambda w: w.first - w.end)
        for start in range(0, len(found), self._batch_size):
            batch = found[start : start + self._batch_size]
            for window, (words, rows) in zip(batch, self._run(texts, batch), strict=True):
                length = len(texts[window.text])
                left = words if window.first else np.full(len(words), length)
                right = window.end - window.first - 1 - words
                if window.end == length:
                    right = np.full(len(words), length)
                room = np.minimum(left, right)
                places = window.first + words
                better = room > context[window.text][places]
                results[window.text][places[better]] = rows[better]
                context[window.text][places[better]] = room[better]
        return results

    def _windows(self, texts: Sequence[Sequence[str]]) -> Iterator[Window]:
        for number, words in enumerate(texts):
            if not words:
                continue
            encoding = self._tokenizer(
                list(words), is_split_into_words=True, add_special_tokens=False
            ).encodings[0]
            subwords = np.bincount(encoding.word_ids, minlength=len(words))
            for first, end in windows(subwords.tolist(), self._limit):
                yield Window(number, first, end)

    @torch.inference_mode()
    def _run(
        self, texts: Sequence[Sequence[str]], batch: Sequence[Window]
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
        """Words of each window that have sub-words, and the probabilities of their tags."""
        words = [list(texts[window.text][window.first : window.end]) for window in batch]
        # Only a word that is longer than a window by itself is ever truncated.
        encodings = self._tokenizer(
            words, is_split_into_words=True, padding=True, truncation=True,
            max_length=self._limit + self._tokenizer.num_special_tokens_to_add(),
            return_tensors="pt", return_token_type_ids=False,
        )  # fmt: skip
        self._model.eval()  # type: ignore[no-untyped-call]
        logits = self._model(**encodings.to(self._model.device)).logits
        probabilities = logits.float().softmax(-1).cpu().numpy()
        for row, encoding in zip(probabilities, encodings.encodings, strict=True):
            ids = np.array([-1 if word is None else word for word in encoding.word_ids])
            first = ids >= 0
            first[1:] &= ids[1:] != ids[:-1]
            yield ids[first], row[first]
