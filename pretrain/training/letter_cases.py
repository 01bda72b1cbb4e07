"""Tells an uncased encoder the case of words: most names have a capital, which it does not see.

The case of a word is the type of its sub-words (`token_type_ids`), which BERT has for pairs of
texts. Whoever gives no types gets a tagger that takes all words for words in lower case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_FLAG = "letter_cases"
"""Key of the configuration of a tokenizer."""
_CASES = 3
_PROBE = "Name"


def cases_of(words: Sequence[str], word_ids: Sequence[int | None]) -> npt.NDArray[np.int64]:
    """Case of the word of each sub-word, shape (length,).

    It is 0 for words in lower case and for special sub-words, 1 if the first letter is a capital,
    2 if all letters of several are.

    Args:
        words: the words.
        word_ids: word of each sub-word, None for special ones.
    """
    cases = [2 if len(word) > 1 and word.isupper() else int(word[:1].isupper()) for word in words]
    return np.array([0 if word is None else cases[word] for word in word_ids], np.int64)


def takes_cases(tokenizer: Any) -> bool:
    """Whether the model of a tokenizer is told the case of words."""
    return bool(tokenizer.init_kwargs.get(_FLAG))


def tell_cases(model: Any, tokenizer: Any) -> None:
    """Lets an encoder know the case of words, if its tokenizer hides it and it has types.

    The vectors of the cases are alike at first: that of the first text of a pair.
    """
    # To predict by ONNX Runtime, torch is not needed.
    import torch

    backend = tokenizer.backend_tokenizer.normalizer
    hides_cases = backend is not None and backend.normalize_str(_PROBE) == _PROBE.lower()
    embeddings: Any = getattr(model.base_model, "embeddings", None)
    types = getattr(embeddings, "token_type_embeddings", None)
    if takes_cases(tokenizer) or not hides_cases or types is None:
        return
    first = types.weight.data[:1]
    embeddings.token_type_embeddings = torch.nn.Embedding(_CASES, first.shape[1])
    embeddings.token_type_embeddings.weight.data.copy_(first.repeat(_CASES, 1))
    model.config.type_vocab_size = _CASES
    tokenizer.init_kwargs[_FLAG] = True
