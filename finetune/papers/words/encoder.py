"""States of words by an encoder: its last layer, at the first sub-word of each word.

`FrozenEncoder` stands beside the vectors of words in a model, and is not trained.

Source: Jia and Zhang 2020, ACL, with its released code
(github.com/jiachenwestlake/Multi-Cell_LSTM), which joins these states with the vectors of words.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import PreTrainedModel

from finetune.heads.windows import INPUTS, WordTagger
from nerbert.errors import UserError
from pretrain.training.checkpoints import check_vocabulary
from pretrain.training.letter_cases import takes_cases
from pretrain.training.models import load_encoder, longest_input
from pretrain.training.tokenizer import load_tokenizer

_KEPT = 4096  # sentences whose states are kept; they are the same in each epoch


def state_tagger(encoder: PreTrainedModel, tokenizer: Any) -> WordTagger:
    """Gives the states of words (words, hidden size); NaN for words without sub-words.

    Args:
        encoder: any encoder of transformers.
        tokenizer: tokenizer of the encoder.
    """

    @torch.inference_mode()
    def states(*arrays: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        encoder.eval()  # type: ignore[no-untyped-call]
        model_inputs = dict(zip(INPUTS, arrays, strict=False))
        output = encoder(
            **{k: torch.from_numpy(v).to(encoder.device) for k, v in model_inputs.items()}
        )
        values: npt.NDArray[np.float32] = output.last_hidden_state.float().cpu().numpy()
        return values

    return WordTagger(
        states,
        tokenizer.backend_tokenizer,
        int(tokenizer.pad_token_id or 0),
        encoder.config.hidden_size,
        longest_input(encoder),
        are_states=True,
        takes_cases=takes_cases(tokenizer),
    )


class FrozenEncoder:
    """An encoder that is not trained. It is no part of a model's weights: it is loaded by name."""

    def __init__(self, name: str) -> None:
        """Loads an encoder.

        Args:
            name: name or folder.

        Raises:
            UserError: there is no such encoder.
        """
        self._encoder, tokenizer = load_encoder(name), load_tokenizer(name)
        check_vocabulary(self._encoder, tokenizer, name)
        self.size: int = self._encoder.config.hidden_size
        self._tokenizer = tokenizer
        self.digest = _digest(self._encoder)
        self._tagger = state_tagger(self._encoder, tokenizer)
        self._states: dict[tuple[str, ...], Tensor] = {}

    def letters(self) -> tuple[list[str], str]:
        """All characters that the tokenizer can read, and a letter that it cannot; "" for none."""
        inside = {letter for piece in self._tokenizer.get_vocab() for letter in piece}
        assigned = [
            letter for letter in map(chr, range(sys.maxunicode + 1)) if _is_assigned(letter)
        ]
        self._tokenizer.backend_tokenizer.no_padding()
        encodings = self._tokenizer.backend_tokenizer.encode_batch(
            [[letter] for letter in assigned], is_pretokenized=True, add_special_tokens=False
        )
        unknown = self._tokenizer.unk_token_id
        strange = [
            letter
            for letter, encoding in zip(assigned, encodings, strict=True)
            if unknown in encoding.ids and letter not in inside
        ]
        return sorted({*assigned} - {*strange}), next(filter(str.isalpha, strange), "")

    def __call__(self, texts: Sequence[Sequence[str]], device: torch.device) -> Tensor:
        """States of all words of texts (words, size), zero for words without sub-words."""
        keys = [tuple(words) for words in texts]
        new = [key for key in dict.fromkeys(keys) if key not in self._states]
        states = dict(zip(new, self._computed(new, device), strict=True)) if new else {}
        rows = [states[key] if key in states else self._states[key] for key in keys]
        self._states.update(states)
        for key in [*self._states][:-_KEPT]:
            del self._states[key]
        return torch.cat(rows).to(device)

    def _computed(self, texts: Sequence[tuple[str, ...]], device: torch.device) -> list[Tensor]:
        if self._encoder.device != device:
            self._encoder.to(device)  # type: ignore[arg-type]
        return [torch.from_numpy(rows).nan_to_num_() for rows in self._tagger.logits(texts)]


def loaded(name: str, digest: str) -> FrozenEncoder:
    """Loads the encoder of a saved model.

    Raises:
        UserError: there is no such encoder, or it has other weights than in training.
    """
    encoder = FrozenEncoder(name)
    if encoder.digest != digest:
        raise UserError(
            "it has other weights than when the tagger was trained with it (--word-encoder); put "
            "those back, or train again",
            name,
        )
    return encoder


def _is_assigned(letter: str) -> bool:
    return unicodedata.category(letter) not in ("Cn", "Cs", "Co")


def _digest(encoder: PreTrainedModel) -> str:
    digest = blake2b(digest_size=16)
    for weight in encoder.state_dict().values():
        digest.update(weight.cpu().float().numpy().tobytes())
    return digest.hexdigest()
