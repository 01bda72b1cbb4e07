"""Scores the words of texts of any length, in overlapping windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Encoding
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from finetune.heads.sequence import MODULE
from finetune.heads.spans import scores_of
from nerbert.errors import RunError
from pretrain.training.subwords import first_subwords

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
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        max_subwords: int,
        batch_size: int = BATCH,
        hidden: bool = False,
        forward: Any = None,
        attend: bool = False,
    ) -> None:
        """Takes a model and its tokenizer.

        Args:
            model: tagger; with `hidden`, any encoder.
            tokenizer: tokenizer of the model.
            max_subwords: largest number of sub-words of a window, including special ones.
            batch_size: number of windows of a batch.
            hidden: whether `logits` returns last hidden states (words, hidden size) instead.
            forward: computes instead of the model; see `finetune.tagger.onnx.OnnxModel`.
            attend: whether words attend to the padding of batches in the given order, as in the
                released code of CrossNER.
        """
        self._model = model
        self._tokenizer = tokenizer
        self._special = tokenizer.num_special_tokens_to_add()
        self._limit = max_subwords - self._special
        self._batch_size = batch_size
        self._hidden, self._attend = hidden, attend
        self._forward = forward or model

    def logits(self, texts: Sequence[Sequence[str]]) -> list[npt.NDArray[np.float32]]:
        """Scores of the tags of each word: one array (words, tags) for each text.

        With span heads, the scores of starts and ends follow those of the tags. A word in two
        windows has the scores of the window in which it has more context. A word without sub-words
        has the first tag, O; with a head over states, its state is NaN.
        """
        size = self._model.config.hidden_size if self._hidden else scores_of(self._model)
        results = [np.full((len(words), size), -_SURE, np.float32) for words in texts]
        context = [np.full(len(words), -1) for words in texts]
        for rows in results:
            rows[:, 0] = _SURE
            if hasattr(self._model, MODULE):
                rows[:] = np.nan
        # Longest first: batches need less padding, and too little memory shows at once.
        windows = list(self._windows(texts))
        windows.sort(key=lambda pair: pair[0].text if self._attend else -len(pair[1].ids))
        for start in range(0, len(windows), self._batch_size):
            batch = windows[start : start + self._batch_size]
            values = self._run([encoding for _, encoding in batch])
            for (window, _), (words, rows) in zip(batch, values, strict=True):
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

    def _windows(self, texts: Sequence[Sequence[str]]) -> Iterator[tuple[Window, Encoding]]:
        """The windows of all texts, each with its sub-words."""
        numbers = [number for number, words in enumerate(texts) if words]
        whole = self._encoded([texts[number] for number in numbers])
        cut = []
        for number, encoding in zip(numbers, whole, strict=True):
            words = len(texts[number])
            if len(encoding.ids) <= self._limit + self._special:
                yield Window(number, 0, words), encoding
                continue
            places = [word for word in encoding.word_ids if word is not None]
            subwords = np.bincount(places, minlength=words).tolist()
            cut += [Window(number, *span) for span in windows(subwords, self._limit)]
        yield from zip(
            cut, self._encoded([texts[w.text][w.first : w.end] for w in cut], True), strict=True
        )

    def _encoded(self, texts: Sequence[Sequence[str]], truncated: bool = False) -> list[Encoding]:
        """The sub-words of texts; truncation only affects single words longer than a window."""
        if not texts:
            return []
        longest = {"truncation": True, "max_length": self._limit + self._special}
        encoded = self._tokenizer(
            [list(words) for words in texts],
            is_split_into_words=True,
            verbose=False,  # longer texts than the model takes are cut by us
            **(longest if truncated else {}),
        )
        encodings: list[Encoding] = encoded.encodings
        return encodings

    @torch.inference_mode()
    def _run(
        self, batch: Sequence[Encoding]
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
        """The words of each window that have sub-words, and the scores of their tags."""
        shape = len(batch), max(len(encoding.ids) for encoding in batch)
        ids = np.full(shape, self._tokenizer.pad_token_id or 0)
        mask = np.full(shape, int(self._attend))
        for row, encoding in enumerate(batch):
            ids[row, : len(encoding.ids)] = encoding.ids
            mask[row, : len(encoding.ids)] = 1
        self._forward.eval()
        device = self._forward.device
        outputs = self._forward(
            input_ids=torch.from_numpy(ids).to(device),
            attention_mask=torch.from_numpy(mask).to(device),
        )
        values = outputs.last_hidden_state if self._hidden else outputs.logits
        scores = values.float().cpu().numpy()
        if not np.isfinite(scores).all():
            raise RunError(
                "the model gives scores that are not finite; use 32 bits (without --half), or "
                "train it again"
            )
        for row, encoding in zip(scores, batch, strict=True):
            words, first = first_subwords(encoding.word_ids)
            yield words, row[: len(first)][first]
