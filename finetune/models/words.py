"""Words as vectors: of the word itself, and of its spelling, for models without pre-training.

The tokenizer turns a word into a boundary and its characters. The boundary has the tag, like the
first sub-word in an encoder, so all other code is the same for both.

Source of the spelling: Lample et al. 2016, arXiv:1603.01360, section 4.1 (an LSTM over characters);
Hashimoto et al. 2017, arXiv:1611.01587, section 2.1 (mean of the vectors of character n-grams).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from transformers import PreTrainedTokenizerFast

from nerbert.errors import UserError
from nerbert.files import open_decompressed

BOUNDARY, PAD, UNKNOWN = "▁", "[PAD]", "[UNK]"
BEGIN_MARK, END_MARK = "#BEGIN#", "#END#"
"""How files of n-gram vectors write the edges of a word."""

_PRIME = 1_000_003
_GRAMS = (2, 3, 4)
_GRAM = "gram-"

Vector = npt.NDArray[np.float32]


@dataclass
class VectorFiles:
    """Vectors by word in lower case, and by n-gram, of the files of --vectors."""

    words: dict[str, Vector] = field(default_factory=dict)
    grams: dict[str, Vector] = field(default_factory=dict)

    @classmethod
    def read(cls, paths: Iterable[str]) -> VectorFiles:
        """Reads files of lines `word number number ...`; n-grams are written `3gram-abc`.

        Raises:
            UserError: a file cannot be read, or has lines of another form.
        """
        found = cls()
        for path in paths:
            try:
                with open_decompressed(path) as file:
                    for name, vector in _vectors(line.decode("utf-8") for line in file):
                        if name[1:].startswith(_GRAM) and name[0].isdigit():
                            found.grams[name[1 + len(_GRAM) :]] = vector
                        else:
                            found.words[name.lower()] = vector
            except (OSError, EOFError, ValueError) as error:
                raise UserError(
                    f"--vectors {path}: {error}; lines of `word number number ...`"
                ) from error
        return found


def _vectors(lines: Iterable[str]) -> Iterator[tuple[str, Vector]]:
    size = 0
    for number, line in enumerate(lines, start=1):
        word, _, rest = line.rstrip().partition(" ")
        values = np.array(rest.split(), np.float32)
        if number == 1 and len(values) == 1:
            continue  # first line of word2vec's format: number of words, and size
        if size and len(values) != size:
            raise ValueError(f"line {number}: {len(values)} numbers instead of {size}")
        size = len(values)
        yield word, values


class WordVectors(nn.Module):
    """The vector of each word: its own, and that of its spelling."""

    digests: Tensor
    rare: Tensor
    lower: Tensor
    gram_digests: Tensor

    def __init__(self, config: Any) -> None:
        """Initialises all vectors at random.

        Args:
            config: sizes, as in `finetune.models.bilstm.BiLstmConfig`.
        """
        super().__init__()
        self._end = config.characters  # one more than all ids: the end of a word, in n-grams
        self._spelling = config.spelling
        self.word_embeddings = nn.Embedding(config.words, config.word_size)
        self.size = config.word_size
        # Row r > 0 of the word embeddings belongs to the r-th digest, row 0 to all other words.
        self.register_buffer("digests", torch.zeros(config.words - 1, dtype=torch.int64))
        self.register_buffer("rare", torch.zeros(config.words, dtype=torch.bool))
        self.register_buffer("lower", torch.arange(config.characters))
        self.register_buffer("gram_digests", torch.zeros(config.grams, dtype=torch.int64))
        if config.spelling == "lstm":
            size = config.character_size
            self.character_embeddings = nn.Embedding(config.characters, size)
            self.character_lstm = nn.LSTM(size, size, batch_first=True, bidirectional=True)
            self.size += 2 * size
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

    def _by_grams(self, words: Tensor) -> Tensor:
        """Mean of the vectors of the known n-grams of each word, its edges included."""
        lengths = words.ne(0).sum(1, keepdim=True)
        marked = torch.cat([words, words.new_zeros(len(words), 1)], 1)
        marked = marked.scatter(1, lengths, self._end)
        total = self.gram_embeddings.weight.new_zeros(
            len(words), self.gram_embeddings.embedding_dim
        )
        count = total.new_zeros(len(words), 1)
        for size in _GRAMS:
            if marked.shape[1] < size:
                continue
            windows = marked.unfold(1, size, 1)
            inside = torch.arange(size - 1, marked.shape[1], device=words.device) <= lengths
            rows = _places(self.gram_digests, digests(windows.flatten(0, 1))).view(inside.shape)
            rows = rows * inside
            total = total + self.gram_embeddings(rows).sum(1)
            count = count + rows.ne(0).sum(1, keepdim=True)
        return total / count.clamp(min=1)


def _places(known: Tensor, found: Tensor) -> Tensor:
    """1 + the place of each digest among the known ones, which are sorted; 0 for others."""
    if not len(known):
        return torch.zeros_like(found)
    places = torch.searchsorted(known, found).clamp(max=len(known) - 1)
    return torch.where(known[places] == found, places + 1, 0)


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


@dataclass(frozen=True)
class Vocabulary:
    """The words, characters and n-grams that a model knows.

    Attributes:
        counts: words in lower case, with their frequency in the train sentences.
        files: given vectors.
        ids: id of each character.
        words: all words in lower case, sorted.
        grams: all n-grams, as tuples of marks and characters, sorted.
    """

    counts: Counter[str]
    files: VectorFiles
    ids: Mapping[str, int]
    words: Sequence[str]
    grams: Sequence[tuple[str, ...]]

    @classmethod
    def of(cls, words: Iterable[str], files: VectorFiles, grams: bool) -> Vocabulary:
        """The vocabulary of train words and given vectors.

        Args:
            words: train words.
            files: given vectors.
            grams: whether n-grams are known: those of the files, or without any those of `words`.
        """
        seen = Counter(words)
        counts: Counter[str] = Counter()
        for word, count in seen.items():
            counts[word.lower()] += count
        known: set[tuple[str, ...]] = set()
        if grams:
            known = {gram_of(text) for text in files.grams} or {
                gram for word in seen for gram in grams_of(word)
            }
        letters = {character for word in seen for character in word}
        letters |= {mark for gram in known for mark in gram} - {BEGIN_MARK, END_MARK}
        joined = "".join(sorted(letters))
        letters |= {*joined.lower(), *joined.upper()}
        names = [PAD, UNKNOWN, BOUNDARY, *sorted(letters - {BOUNDARY})]
        return cls(
            counts,
            files,
            {name: place for place, name in enumerate(names)},
            sorted({*counts, *files.words}),
            sorted(known),
        )

    @torch.no_grad()
    def fill(self, vectors: WordVectors) -> None:
        """Sets the tables of a new model, and the vectors that are given."""
        ids, unknown = self.ids, self.ids[UNKNOWN]
        lower = [ids.get(name.lower(), place) for name, place in ids.items()]
        vectors.lower.copy_(torch.tensor(lower))
        letters = [
            torch.tensor([ids[BOUNDARY], *(ids.get(c, unknown) for c in word)])
            for word in self.words
        ]
        found, order = digests(pad_sequence(letters, batch_first=True)).sort()
        vectors.digests.copy_(found)
        for row, index in enumerate(order.tolist(), start=1):
            word = self.words[index]
            vectors.rare[row] = self.counts[word] == 1 and word not in self.files.words
            if word in self.files.words:
                vectors.word_embeddings.weight[row] = torch.from_numpy(self.files.words[word])
        if self.grams:
            self._fill_grams(vectors)

    def _fill_grams(self, vectors: WordVectors) -> None:
        marks = {**self.ids, BEGIN_MARK: self.ids[BOUNDARY], END_MARK: len(self.ids)}
        rows = [torch.tensor([marks[mark] for mark in gram]) for gram in self.grams]
        found, order = digests(pad_sequence(rows, batch_first=True)).sort()
        vectors.gram_digests.copy_(found)
        for row, index in enumerate(order.tolist(), start=1):
            given = self.files.grams.get("".join(self.grams[index]))
            if given is not None:
                vectors.gram_embeddings.weight[row] = torch.from_numpy(given)


def grams_of(word: str) -> list[tuple[str, ...]]:
    """The n-grams of a word with its edges, of 2, 3 and 4 marks, in order, with repetitions."""
    marks = (BEGIN_MARK, *word, END_MARK)
    return [
        marks[place : place + size] for size in _GRAMS for place in range(len(marks) - size + 1)
    ]


def gram_of(text: str) -> tuple[str, ...]:
    """The marks of an n-gram as a file writes it, such as `#BEGIN#ab`."""
    begin = text.startswith(BEGIN_MARK)
    end = text.endswith(END_MARK)
    inner = text[len(BEGIN_MARK) * begin : len(text) - len(END_MARK) * end]
    return (*([BEGIN_MARK] if begin else []), *inner, *([END_MARK] if end else []))


def tokenizer_of(ids: Mapping[str, int]) -> PreTrainedTokenizerFast:
    """The tokenizer of words into boundaries and characters."""
    tokenizer = Tokenizer(models.WordLevel(dict(ids), unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(BOUNDARY, prepend_scheme="always", split=False),
            pre_tokenizers.Split("", "isolated"),
        ]
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, pad_token=PAD, unk_token=UNKNOWN, model_max_length=1 << 20
    )
