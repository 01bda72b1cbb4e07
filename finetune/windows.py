"""Scores the words of texts of any length, in overlapping windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from finetune.models.span_head import scores_of
from pretrain.tagging.pieces import first_subwords

OVERLAP = 32
"""Number of sub-words that neighbouring windows share."""

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
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        max_subwords: int,
        batch_size: int = 32,
        hidden: bool = False,
    ) -> None:
        """Takes a model and its tokenizer.

        Args:
            model: tagger; with `hidden`, any encoder.
            tokenizer: tokenizer of the model.
            max_subwords: largest number of sub-words of a window, including special ones.
            batch_size: number of windows of a batch.
            hidden: whether `logits` returns last hidden states (words, hidden size) instead.
        """
        self._model = model
        self._tokenizer = tokenizer
        self._limit = max_subwords - tokenizer.num_special_tokens_to_add()
        self._batch_size = batch_size
        self._hidden = hidden

    def logits(self, texts: Sequence[Sequence[str]]) -> list[npt.NDArray[np.float32]]:
        """Scores of the tags of each word: one array (words, tags) for each text.

        With span heads, the scores of starts and ends follow those of the tags. A word in two
        windows has the scores of the window in which it has more context. A word without sub-words
        has the first tag, O.
        """
        size = self._model.config.hidden_size if self._hidden else scores_of(self._model)
        results = [np.full((len(words), size), -_SURE, np.float32) for words in texts]
        context = [np.full(len(words), -1) for words in texts]
        for rows in results:
            rows[:, 0] = _SURE
        # Longest first: batches need less padding, and too little memory shows at once.
        found = sorted(self._windows(texts), key=lambda w: w.first - w.end)
        for start in range(0, len(found), self._batch_size):
            batch = found[start : start + self._batch_size]
            for window, (words, rows) in zip(batch, self._run(texts, batch), strict=True):
                length = len(texts[window.text])
                # The edge of a text is no lack of context.
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
        """The words of each window that have sub-words, and the scores of their tags."""
        words = [list(texts[window.text][window.first : window.end]) for window in batch]
        # Truncation only affects single words that are longer than a window.
        encodings = self._tokenizer(
            words,
            is_split_into_words=True,
            padding=True,
            truncation=True,
            max_length=self._limit + self._tokenizer.num_special_tokens_to_add(),
            return_tensors="pt",
            return_token_type_ids=False,
        )
        self._model.eval()  # type: ignore[no-untyped-call]
        outputs = self._model(**encodings.to(self._model.device))
        values = outputs.last_hidden_state if self._hidden else outputs.logits
        for row, encoding in zip(values.float().cpu().numpy(), encodings.encodings, strict=True):
            found, first = first_subwords(encoding.word_ids)
            yield found, row[first]
