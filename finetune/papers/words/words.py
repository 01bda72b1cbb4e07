"""Words as vectors: of the word itself, and of its spelling, for models without pre-training.

The tokenizer turns a word into a boundary and its characters. The boundary has the tag, like the
first sub-word in an encoder, so all other code is the same for both.

Source of the spelling: Lample et al. 2016, arXiv:1603.01360, section 4.1 (an LSTM over characters);
Hashimoto et al. 2017, arXiv:1611.01587, section 2.1 (mean of the vectors of character n-grams);
Ma and Hovy 2016, arXiv:1603.01354, section 2.1 (a convolution over characters).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

_PRIME = 1_000_003
GRAMS = (2, 3, 4)
"""Sizes of the n-grams, in marks."""

_CHARACTER, _FEATURES, _WIDTH = 30, 50, 3
"""Sizes of the convolution over characters, in the released code of CDLM (NCRF++)."""


class WordVectors(nn.Module):
    """The vector of each word: its own, and that of its spelling."""

    digests: Tensor
    rare: Tensor
    seen: Tensor
    lower: Tensor
    gram_digests: Tensor

    def __init__(self, config: Any) -> None:
        """Initialises all vectors at random.

        Args:
            config: sizes, as in `finetune.papers.words.bilstm.BiLstmConfig`.
        """
        super().__init__()
        self._end = config.characters  # one more than all ids: the end of a word, in n-grams
        self._spelling = config.spelling
        self.word_embeddings = nn.Embedding(config.words, config.word_size)
        self.size = config.word_size
        # Row r > 0 of the word embeddings belongs to the r-th digest, row 0 to all other words.
        self.register_buffer("digests", torch.zeros(config.words - 1, dtype=torch.int64))
        self.register_buffer("rare", torch.zeros(config.words, dtype=torch.bool))
        # Whether a word is in the train sentences, and not only among given vectors.
        self.register_buffer("seen", torch.zeros(config.words, dtype=torch.bool), persistent=False)
        self.register_buffer("lower", torch.arange(config.characters))
        self.register_buffer("gram_digests", torch.zeros(config.grams, dtype=torch.int64))
        if config.spelling == "lstm":
            size = config.character_size
            self.character_embeddings = nn.Embedding(config.characters, size)
            self.character_lstm = nn.LSTM(size, size, batch_first=True, bidirectional=True)
            self.size += 2 * size
        elif config.spelling == "cnn":
            self.character_embeddings = nn.Embedding(config.characters, _CHARACTER)
            self.convolution = nn.Conv1d(_CHARACTER, _FEATURES, _WIDTH, padding=_WIDTH // 2)
            self.size += _FEATURES
        elif config.spelling == "ngrams":
            self.gram_embeddings = nn.Embedding(config.grams + 1, config.gram_size, padding_idx=0)
            self.size += config.gram_size

    def forward(self, words: Tensor) -> Tensor:
        """Vectors of words (words, size).

        Args:
            words: boundary and characters of each word (words, longest), padded with 0.
        """
        rows = self.rows(words)
        if self.training:  # half of the rare words are unknown
            forget = self.rare[rows] & (torch.rand(rows.shape, device=rows.device) < 0.5)
            rows = rows.masked_fill(forget, 0)
        parts = [self.word_embeddings(rows)]
        if self._spelling == "lstm":
            parts.append(self._by_lstm(words))
        elif self._spelling == "cnn":
            parts.append(self._by_cnn(words))
        elif self._spelling == "ngrams":
            parts.append(self._by_grams(words))
        return torch.cat(parts, 1)

    def rows(self, words: Tensor) -> Tensor:
        """Row of each word among the words' vectors, found in lower case; 0 for unknown ones."""
        return _places(self.digests, digests(self.lower[words]))

    def _by_lstm(self, words: Tensor) -> Tensor:
        """Last states of the LSTM over the characters of each word (words, 2 * size)."""
        lengths = words.ne(0).sum(1).cpu()
        packed = pack_padded_sequence(
            self.character_embeddings(words), lengths, True, enforce_sorted=False
        )
        _, (states, _) = self.character_lstm(packed)
        return torch.cat([states[0], states[1]], 1)

    def _by_cnn(self, words: Tensor) -> Tensor:
        """Largest of each feature over the characters of each word (words, features)."""
        inside = words.ne(0).unsqueeze(1)
        vectors = self.character_embeddings(words).mT.masked_fill(~inside, 0.0)
        features: Tensor = self.convolution(vectors).masked_fill(~inside, float("-inf"))
        return features.max(-1).values

    def _by_grams(self, words: Tensor) -> Tensor:
        """Mean of the vectors of the known n-grams of each word, its edges included."""
        total = self.gram_embeddings.weight.new_zeros(
            len(words), self.gram_embeddings.weight.shape[1]
        )
        count = total.new_zeros(len(words), 1)
        for rows in self._gram_rows(words):
            total = total + self.gram_embeddings(rows).sum(1)
            count = count + rows.ne(0).sum(1, keepdim=True)
        return total / count.clamp(min=1)

    def _gram_rows(self, words: Tensor) -> Iterator[Tensor]:
        """Rows of the n-grams of each word (words, n-grams), by size; 0 for unknown ones."""
        lengths = words.ne(0).sum(1, keepdim=True)
        marked = torch.cat([words, words.new_zeros(len(words), 1)], 1)
        marked = marked.scatter(1, lengths, self._end)
        for size in GRAMS:
            if marked.shape[1] >= size:
                windows = marked.unfold(1, size, 1)
                inside = torch.arange(size - 1, marked.shape[1], device=words.device) <= lengths
                rows = _places(self.gram_digests, digests(windows.flatten(0, 1)))
                yield rows.view(inside.shape) * inside

    def used(self, words: Tensor) -> dict[str, Tensor]:
        """Rows of the tables, by their names in this module, that training on words may change."""
        rows = self.rows(words)
        rows_of_tables = {
            "word_embeddings": torch.cat([rows, rows.new_zeros(1)])
        }  # of forgotten words
        if self._spelling == "ngrams":
            grams = torch.cat([words.new_zeros(0), *(g.flatten() for g in self._gram_rows(words))])
            rows_of_tables["gram_embeddings"] = grams[
                grams > 0
            ]  # the row of unknown ones stays zero
        return rows_of_tables


def _places(sorted_digests: Tensor, ordered: Tensor) -> Tensor:
    """1 + the place of each digest among the known ones, which are sorted; 0 for others."""
    if not len(sorted_digests):
        return torch.zeros_like(ordered)
    places = torch.searchsorted(sorted_digests, ordered).clamp(max=len(sorted_digests) - 1)
    return torch.where(sorted_digests[places] == ordered, places + 1, 0)


def digests(words: Tensor) -> Tensor:
    """A digest of each row of character ids (words,), which does not depend on padding."""
    powers = torch.ones(words.shape[1], dtype=torch.int64, device=words.device)
    for place in range(1, len(powers)):
        powers[place] = powers[place - 1] * _PRIME  # modulo 2**64
    return (words * powers).sum(1)


def spelled(input_ids: Tensor, attention_mask: Tensor, starts: Tensor) -> Tensor:
    """Boundary and characters of each word of a batch (words, longest), padded with 0."""
    ids = input_ids[attention_mask.bool()]
    first = starts[attention_mask.bool()]
    ids, first = ids[first.cumsum(0) > 0], first[first.cumsum(0) > 0]
    number = first.cumsum(0) - 1
    begins = first.nonzero().squeeze(1)
    place = torch.arange(len(ids), device=ids.device) - begins[number]
    words = ids.new_zeros(len(begins), int(place.max()) + 1)
    words[number, place] = ids
    return words


_WORD = re.compile(r"[^\W\d_][^\W\d_]*?(?=[A-Z][a-z]|[\W\d_]|$)")


@cache
def _descriptions() -> dict[str, str]:
    text = (files("finetune.papers.words") / "descriptions.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def description(name: str) -> list[str]:
    """The words that describe a type, in lower case: `politicalparty` is "political party"."""
    if name.lower() in _descriptions():
        return _descriptions()[name.lower()].split()
    return [word.lower() for word in _WORD.findall(name)] or [name.lower()]
