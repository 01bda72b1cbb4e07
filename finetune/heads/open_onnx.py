"""The open head of a tagger that ONNX Runtime computes; without torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from finetune.heads.windows import Floats, Forward
from nerbert.errors import UserError
from pretrain.tagging.open_types import SIZE, TAGS, Numbers, Types, check_names, encoded_names

MIN_SCORE = 0.35
"""Smallest score of a mention that an open head finds; see docs/pretraining.md."""


class ExportedOpenHead:
    """Compares words with the names of types, whose vectors the file computes, too.

    The scores of a sub-word are followed by its vector as a word, and as a word of a name. See
    `finetune.heads.open.OpenHead`.
    """

    takes_types = True
    min_score = MIN_SCORE

    def __init__(self, forward: Forward, tokenizer: Tokenizer, facts: Any) -> None:
        """Takes what computes, and the facts of the tagger.

        Args:
            forward: computes the scores of sub-words.
            tokenizer: splits names into sub-words.
            facts: see `finetune.tagger.onnx.Facts`; those of open heads are given.
        """
        self._forward, self._tokenizer, self._facts = forward, tokenizer, facts
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._vectors: dict[str, Floats] = {}

    def with_types(
        self, tokenizer: None, names: Sequence[str], keeps_others: bool = False
    ) -> Types:
        """What decodes the scores for some types; see `OpenHead.with_types`."""
        vectors = encoded_names(self._encoded, names, self._vectors)
        return Types(names, vectors, Numbers(*self._facts.numbers), keeps_others)

    def trained_types(self, where: str) -> dict[str, str | None]:
        """The types that it was trained on; see `OpenHead.trained_types`."""
        return checked_types(self._facts.open_types, where)

    def _encoded(self, names: Sequence[str]) -> Floats:
        """Vectors of names, the mean over their sub-words; see `open_head.name_vectors`."""
        encodings = self._tokenizer.encode_batch(list(names))
        shape = len(names), max(len(encoding.ids) for encoding in encodings)
        check_names(names, shape[1], self._facts.max_subwords)
        ids, mask, inner = np.full(shape, self._facts.pad), np.zeros(shape, int), np.zeros(shape)
        for row, encoding in enumerate(encodings):
            length = len(encoding.ids)
            ids[row, :length], mask[row, :length] = encoding.ids, 1
            inner[row, :length] = 1 - np.array(encoding.special_tokens_mask)
        cases = [np.zeros_like(ids)] if self._facts.takes_cases else []
        states = self._forward(ids, mask, *cases)[..., TAGS + SIZE :]
        means = (states * inner[..., None]).sum(1)
        vectors: Floats = (means / np.linalg.norm(means, axis=-1, keepdims=True)).astype(np.float32)
        return vectors


def checked_types(value: object, where: str) -> dict[str, str | None]:
    """The types that an open head was trained on -> in words, None for the type of all else.

    Args:
        value: `open_types` of its configuration.
        where: folder of the checkpoint, for errors.

    Raises:
        UserError: they have another form.
    """
    if isinstance(value, dict):
        names = [name for name in value.values() if name is not None]
        if len(value) <= len(names) + 1 and all(isinstance(n, str) and n.strip() for n in names):
            return value
    raise UserError("open_types in its config.json are no names of types", where)
