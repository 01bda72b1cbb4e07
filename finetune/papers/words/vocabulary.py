"""What models without pre-training know: words, characters, n-grams, and given vectors of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerFast

from finetune.papers.words.words import GRAMS, WordVectors, digests
from nerbert.errors import UserError
from nerbert.storage.places import Place

BOUNDARY, PAD, UNKNOWN = "▁", "[PAD]", "[UNK]"
BEGIN_MARK, END_MARK = "#BEGIN#", "#END#"
"""How files of n-gram vectors write the edges of a word."""

_GRAM = "gram-"

Vector = npt.NDArray[np.float32]


@dataclass
class VectorFiles:
    """Vectors by word in lower case, and by n-gram, of the files of --vectors."""

    words: dict[str, Vector] = field(default_factory=dict)
    grams: dict[str, Vector] = field(default_factory=dict)

    @classmethod
    def read(cls, paths: Iterable[Place]) -> VectorFiles:
        """Reads files of lines `word number number ...`; n-grams are written `3gram-abc`.

        Raises:
            UserError: a file cannot be read, or has lines of another form.
        """
        vectors = cls()
        for path in paths:
            try:
                with path.open_decompressed() as file:
                    for name, vector in _vectors(line.decode("utf-8") for line in file):
                        if name[1:].startswith(_GRAM) and name[0].isdigit():
                            vectors.grams[name[1 + len(_GRAM) :]] = vector
                        else:
                            vectors.words[name.lower()] = vector
            except (OSError, EOFError, ValueError) as error:
                raise UserError(
                    f"--vectors {path}: {error}; lines of `word number number ...`"
                ) from error
        return vectors


def _vectors(lines: Iterable[str]) -> Iterator[tuple[str, Vector]]:
    size = 0
    for number, line in enumerate(lines, start=1):
        word, _, numbers = line.rstrip().partition(" ")
        values = np.array(numbers.split(), np.float32)
        if number == 1 and len(values) == 1:
            continue  # first line of word2vec's format: number of words, and size
        if size and len(values) != size:
            raise ValueError(f"line {number}: {len(values)} numbers instead of {size}")
        size = len(values)
        yield word, values


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
    def of(
        cls, words: Iterable[str], files: VectorFiles, grams: bool, letters: Iterable[str] = ()
    ) -> Vocabulary:
        """The vocabulary of train words and given vectors.

        Args:
            words: train words.
            files: given vectors.
            grams: whether n-grams are known: those of the files, or without any those of `words`.
            letters: more characters.
        """
        word_counts = Counter(words)
        counts: Counter[str] = Counter()
        for word, count in word_counts.items():
            counts[word.lower()] += count
        known_grams: set[tuple[str, ...]] = set()
        if grams:
            known_grams = {gram_of(text) for text in files.grams} or {
                gram for word in word_counts for gram in grams_of(word)
            }
        known_letters = {*letters, *(character for word in word_counts for character in word)}
        known_letters |= {mark for gram in known_grams for mark in gram} - {BEGIN_MARK, END_MARK}
        joined = "".join(sorted(known_letters))
        known_letters |= {*joined.lower(), *joined.upper()}
        names = [PAD, UNKNOWN, BOUNDARY, *sorted(known_letters - {BOUNDARY})]
        return cls(
            counts,
            files,
            {name: place for place, name in enumerate(names)},
            sorted({*counts, *files.words}),
            sorted(known_grams),
        )

    @torch.no_grad()
    def fill(self, vectors: WordVectors, forgets: bool = True) -> None:
        """Sets the tables of a new model, and the vectors that are given.

        Args:
            vectors: the vectors of the model.
            forgets: whether words that occur once are rare.
        """
        ids, unknown = self.ids, self.ids[UNKNOWN]
        lower = [ids.get(name.lower(), place) for name, place in ids.items()]
        vectors.lower.copy_(torch.tensor(lower))
        letters = [
            torch.tensor([ids[BOUNDARY], *(ids.get(c, unknown) for c in word)])
            for word in self.words
        ]
        sorted_digests, order = digests(pad_sequence(letters, batch_first=True)).sort()
        vectors.digests.copy_(sorted_digests)
        for row, index in enumerate(order.tolist(), start=1):
            word = self.words[index]
            vectors.seen[row] = self.counts[word] > 0
            is_rare = self.counts[word] == 1 and word not in self.files.words
            vectors.rare[row] = forgets and is_rare
            if word in self.files.words:
                vectors.word_embeddings.weight[row] = torch.from_numpy(self.files.words[word])
        if self.grams:
            self._fill_grams(vectors)

    def _fill_grams(self, vectors: WordVectors) -> None:
        marks = {**self.ids, BEGIN_MARK: self.ids[BOUNDARY], END_MARK: len(self.ids)}
        rows = [torch.tensor([marks[mark] for mark in gram]) for gram in self.grams]
        sorted_digests, order = digests(pad_sequence(rows, batch_first=True)).sort()
        vectors.gram_digests.copy_(sorted_digests)
        for row, index in enumerate(order.tolist(), start=1):
            vector = self.files.grams.get("".join(self.grams[index]))
            if vector is not None:
                vectors.gram_embeddings.weight[row] = torch.from_numpy(vector)


def grams_of(word: str) -> list[tuple[str, ...]]:
    """The n-grams of a word with its edges, of 2, 3 and 4 marks, in order, with repetitions."""
    marks = (BEGIN_MARK, *word, END_MARK)
    return [marks[place : place + size] for size in GRAMS for place in range(len(marks) - size + 1)]


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
