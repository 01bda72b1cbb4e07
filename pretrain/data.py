"""From a corpus folder to batches: memory-mapped examples, sub-words made by the loader."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import datasets
import numpy as np
import numpy.typing as npt
import torch
import transformers
from datasets import Dataset, Features, Value, load_dataset
from datasets import Sequence as ListOf
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedTokenizerFast

from pretrain.corpus import Corpus

IGNORED = -100
"""Label of sub-words that the loss leaves out."""

PIECES = "pieces"
"""Key of a batch under which the numbers of its pieces stand, shape (batch,)."""

UNLINKED = "unlinked"
"""Key of a batch: first sub-words of names that no link marks, shape (batch, length)."""

_KINDS = {"id": Value("string"), "tokens": ListOf(Value("string")),
          "ner_tags": ListOf(Value("int32")), "unlinked": ListOf(Value("bool"))}  # fmt: skip


def quiet_libraries() -> None:
    """Leaves out what transformers and datasets say of every load."""
    transformers.utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    datasets.utils.logging.set_verbosity_error()
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()


def load(corpus: Corpus, split: str, examples: int = 0, cache_dir: str | None = None) -> Dataset:
    """A corpus split, memory-mapped.

    Args:
        corpus: that is read.
        split: "train" or "validation".
        examples: that are wanted, from the first; 0 for all. Parts that lie behind are not read.
        cache_dir: where `datasets` keeps the mapped files.
    """
    ends = np.cumsum(corpus.rows[split])
    needed = len(ends) if not examples else int(np.searchsorted(ends, examples)) + 1
    features = Features({name: _KINDS[name] for name in corpus.columns})
    files = {split: [str(part) for part in corpus.parts(split)[:needed]]}
    rows = load_dataset("parquet", data_files=files, split=split, features=features,
                        columns=list(features), cache_dir=cache_dir)  # fmt: skip
    return rows.select(range(examples)) if 0 < examples < len(rows) else rows


@dataclass(frozen=True)
class Feature:
    """One piece as the model takes it.

    Attributes:
        piece: its number.
        input_ids: sub-words, shape (length,).
        labels: label id at the first sub-word of each word, else `IGNORED`, shape (length,).
        unlinked: whether the first sub-word's word is a name that no link marks, shape (length,).
    """

    piece: int
    input_ids: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    unlinked: npt.NDArray[np.bool_]


class PieceFeatures(TorchDataset[Feature]):
    """The pieces of a corpus split, tokenised when they are asked for."""

    def __init__(
        self, corpus: Dataset, pieces: Dataset, tokenizer: PreTrainedTokenizerFast,
        new_labels: npt.NDArray[np.int64], mask_unlinked: bool = False,
    ) -> None:  # fmt: skip
        """Puts the parts together.

        Args:
            corpus: examples.
            pieces: of `pretrain.pieces.measured`.
            tokenizer: of the model.
            new_labels: label id of the view for each label id of the corpus, shape (old tags,).
            mask_unlinked: whether names that no link marks are left out of the loss.
        """
        self._corpus = corpus.with_format("arrow")
        self._pieces = pieces
        self.tokenizer = tokenizer
        self._new_labels = new_labels
        self._mask_unlinked = mask_unlinked

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Sub-words of each piece, the special ones included, shape (pieces,)."""
        lengths: npt.NDArray[np.int32] = self._pieces[:].column("subwords").to_numpy()
        return lengths

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Row of the corpus that each piece is of, shape (pieces,)."""
        rows: npt.NDArray[np.int64] = self._pieces[:].column("row").to_numpy().astype(np.int64)
        return rows

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, index: int) -> Feature:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Feature]:
        """The features of a batch, made at once."""
        pieces = self._pieces[list(indices)].to_pydict()
        table = self._corpus[pieces["row"]]
        spans = [slice(*span) for span in zip(pieces["first"], pieces["end"], strict=True)]
        words = [
            row[span] for row, span in zip(table.column("tokens").to_pylist(), spans, strict=True)
        ]
        encodings = self.tokenizer(words, is_split_into_words=True).encodings
        tags = table.column("ner_tags").to_pylist()
        unlinked = (table.column(UNLINKED).to_pylist() if UNLINKED in table.column_names
                    else [[False] * len(row) for row in tags])  # fmt: skip
        return [
            self._feature(piece, encoding, row[span], names[span])
            for piece, encoding, row, names, span in zip(
                indices, encodings, tags, unlinked, spans, strict=True
            )
        ]

    def _feature(self, piece: int, encoding: Any, tags: list[int], unlinked: list[bool]) -> Feature:
        words = np.array([-1 if word is None else word for word in encoding.word_ids], np.int64)
        first = words >= 0
        first[1:] &= words[1:] != words[:-1]
        labels = np.full(len(words), IGNORED)
        names = np.zeros(len(words), bool)
        labels[first] = self._new_labels[np.array(tags, np.int64)[words[first]]]
        names[first] = np.array(unlinked, bool)[words[first]]
        if self._mask_unlinked:
            labels[names] = IGNORED
        return Feature(piece, np.array(encoding.ids), labels, names)

    def example_ids(self, pieces: Sequence[int]) -> list[str]:
        """Ids of the examples that pieces belong to."""
        rows = self._pieces[list(pieces)].column("row").to_pylist()
        ids: list[str] = self._corpus[rows].column("id").to_pylist()
        return ids


class Collator:
    """Pads a batch to its longest piece."""

    def __init__(self, pad_id: int, multiple_of: int = 1) -> None:
        self._pad_id = pad_id
        self._multiple_of = multiple_of

    def __call__(self, features: Sequence[Feature]) -> dict[str, torch.Tensor]:
        """Ids, mask, labels and unlinked names (batch, length); numbers of the pieces (batch,)."""
        longest = max(len(feature.input_ids) for feature in features)
        shape = (len(features), -(-longest // self._multiple_of) * self._multiple_of)
        input_ids = np.full(shape, self._pad_id)
        labels = np.full(shape, IGNORED)
        mask = np.zeros(shape, np.int64)
        unlinked = np.zeros(shape, np.int64)  # bool would change its type when ranks pad it
        for row, feature in enumerate(features):
            length = len(feature.input_ids)
            input_ids[row, :length] = feature.input_ids
            labels[row, :length] = feature.labels
            mask[row, :length] = 1
            unlinked[row, :length] = feature.unlinked
        batch = {"input_ids": input_ids, "attention_mask": mask, "labels": labels,
                 UNLINKED: unlinked, PIECES: np.array([f.piece for f in features])}  # fmt: skip
        return {name: torch.from_numpy(values) for name, values in batch.items()}
