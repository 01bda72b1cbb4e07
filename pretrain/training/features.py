"""Reads a corpus split in a view of its categories; makes features and batches of its pieces."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from datasets import Dataset, Features, Value, load_dataset
from datasets import Sequence as ListOf
from datasets.exceptions import DatasetsError
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedTokenizerFast

from nerbert.errors import UserError
from nerbert.text.corpus import Corpus
from nerbert.text.tags import LabelSet
from ontology.categories import ENTITY, CategorySet
from ontology.classes import ClassTree
from pretrain.settings import AS_IN_CORPUS
from pretrain.training.letter_cases import cases_of, takes_cases
from pretrain.training.phrase_sets import PHRASES, PhraseSets
from pretrain.training.subwords import IGNORED, first_subwords


def category_view(labels: LabelSet, name: str) -> tuple[LabelSet, npt.NDArray[np.int64]]:
    """The labels of a view, and the new label id of each old label id, shape (old tags,).

    The categories of a corpus are classes of the ontology, or names of the set that it was made
    with. A user's table may also map the corpus's categories themselves.

    Args:
        labels: labels of the corpus.
        name: name of the view: `AS_IN_CORPUS`, a shipped category set, or a user's table.

    Raises:
        UserError: there is no such view, or it lacks a category of the corpus.
    """
    if name == AS_IN_CORPUS:
        return labels, np.arange(len(labels.tags))
    try:
        categories = CategorySet.load(name).coarsening(labels.categories, ClassTree.shipped())
    except ValueError as error:
        raise UserError(f"--categories {name}: {error}") from error
    new = LabelSet((ENTITY, *sorted(set(categories) - {ENTITY})))
    position = {category: index for index, category in enumerate(new.categories)}
    begins = np.array([new.begin(position[category]) for category in categories])
    return new, np.concatenate([[0], np.stack([begins, begins + 1], axis=1).ravel()])


PIECES = "pieces"
"""Key of a batch: numbers of its pieces, shape (batch,)."""

UNLINKED = "unlinked"
"""Key of a batch: whether a sub-word begins a word of a name without link, (batch, length)."""

_ENDINGS = ("'s", "’s")
"""Words that other tokenisers cut: "'", "s"."""

_KINDS = {
    "id": Value("string"),
    "tokens": ListOf(Value("string")),
    "ner_tags": ListOf(Value("int32")),
    "unlinked": ListOf(Value("bool")),
    PHRASES: ListOf(ListOf(Value("string"))),
}


def load_split(
    corpus: Corpus, split: str, examples: int = 0, cache_dir: str | None = None
) -> Dataset:
    """Opens a corpus split, memory-mapped.

    Args:
        corpus: the corpus.
        split: "train" or "validation".
        examples: number of examples from the start; 0 for all. Only the needed parts are read.
        cache_dir: folder of the memory-mapped files of `datasets`.
    """
    ends = np.cumsum(corpus.rows[split])
    needed = len(ends) if not examples else int(np.searchsorted(ends, examples)) + 1
    features = Features({name: _KINDS[name] for name in corpus.columns})
    paths = corpus.parts(split)[:needed]
    rows = open_parts(paths, cache_dir, features=features, columns=list(features))
    return rows.select(range(examples)) if 0 < examples < len(rows) else rows


@dataclass(frozen=True)
class Feature:
    """The input of the model for one piece.

    Attributes:
        piece: number of the piece.
        input_ids: ids of the sub-words, shape (length,).
        labels: label id at the first sub-word of each word, else `IGNORED`, shape (length,).
        unlinked: whether a sub-word begins a word of a name without link, shape (length,).
        cases: case of the word of each sub-word, shape (length,), if the model is told.
    """

    piece: int
    input_ids: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    unlinked: npt.NDArray[np.bool_]
    cases: npt.NDArray[np.int64] | None = None


class PieceFeatures(TorchDataset[Feature]):
    """The pieces of a corpus split, which are tokenised on access."""

    def __init__(
        self,
        corpus: Dataset,
        pieces: Dataset,
        tokenizer: PreTrainedTokenizerFast,
        new_labels: npt.NDArray[np.int64],
        mask_unlinked: bool = False,
        phrase_sets: PhraseSets | None = None,
        tells_endings: bool = False,
    ) -> None:
        """Combines examples and pieces.

        Args:
            corpus: examples.
            pieces: result of `pretrain.training.pieces.count_subwords`.
            tokenizer: tokenizer of the model.
            new_labels: label id of the view for each label id of the corpus, shape (old tags,).
            mask_unlinked: whether names without link are ignored in the loss.
            phrase_sets: adds what a mention is to its labels.
            tells_endings: whether all sub-words of "'s" outside of mentions have its label, for
                texts whose words were cut between them.
        """
        self._corpus = corpus.with_format("arrow")
        self._pieces = pieces
        self.tokenizer = tokenizer
        self._new_labels = new_labels
        self._mask_unlinked = mask_unlinked
        self._phrase_sets, self._tells_endings = phrase_sets, tells_endings

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Number of sub-words of each piece, including special ones, shape (pieces,)."""
        lengths: npt.NDArray[np.int32] = self._pieces[:].column("subwords").to_numpy()
        return lengths

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Row of the corpus of each piece, shape (pieces,)."""
        rows: npt.NDArray[np.int64] = self._pieces[:].column("row").to_numpy().astype(np.int64)
        return rows

    def __len__(self) -> int:
        return len(self._pieces)

    def by_length(self) -> PieceFeatures:
        """The same pieces, the shortest first, so that batches in order need little padding."""
        pieces = self._pieces.select(np.argsort(self.lengths, kind="stable"))
        settings = self._new_labels, self._mask_unlinked, self._phrase_sets, self._tells_endings
        return PieceFeatures(self._corpus, pieces, self.tokenizer, *settings)

    def __getitem__(self, index: int) -> Feature:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Feature]:
        """Makes the features of a batch together, which is faster than one by one."""
        pieces = self._pieces[list(indices)].to_pydict()
        table = self._corpus[pieces["row"]]
        spans = [slice(*span) for span in zip(pieces["first"], pieces["end"], strict=True)]
        words = [
            row[span] for row, span in zip(table.column("tokens").to_pylist(), spans, strict=True)
        ]
        encodings = self.tokenizer(words, is_split_into_words=True).encodings
        tags = table.column("ner_tags").to_pylist()
        unlinked = (
            table.column(UNLINKED).to_pylist()
            if UNLINKED in table.column_names
            else [[False] * len(row) for row in tags]
        )
        labels = [self._new_labels[np.array(row, np.int64)] for row in tags]
        if self._phrase_sets and PHRASES in table.column_names:
            columns = labels, table.column(PHRASES).to_pylist()
            labels = [self._phrase_sets.added(*row) for row in zip(*columns, strict=True)]
        features = [
            self._feature(piece, encoding, of_words, row[span], names[span])
            for piece, encoding, of_words, row, names, span in zip(
                indices, encodings, words, labels, unlinked, spans, strict=True
            )
        ]
        if not takes_cases(self.tokenizer):
            return features
        return [
            replace(feature, cases=cases_of(row, encoding.word_ids))
            for feature, row, encoding in zip(features, words, encodings, strict=True)
        ]

    def _feature(
        self,
        piece: int,
        encoding: Any,
        tokens: Sequence[str],
        of_words: npt.NDArray[np.int64],
        unlinked: list[bool],
    ) -> Feature:
        words, first = first_subwords(encoding.word_ids)
        labels = np.full(len(first), IGNORED)
        names = np.zeros(len(first), bool)
        labels[first] = of_words[words]
        names[first] = np.array(unlinked, bool)[words]
        if self._mask_unlinked:
            labels[names] = IGNORED
        if self._tells_endings:
            for place in np.flatnonzero(~first).tolist():
                word = encoding.word_ids[place]
                if word is not None and tokens[word] in _ENDINGS and labels[place - 1] == 0:
                    labels[place] = 0
        return Feature(piece, np.array(encoding.ids), labels, names)

    def example_ids(self, pieces: Sequence[int]) -> list[str]:
        """Ids of the examples of some pieces."""
        rows = self._pieces[list(pieces)].column("row").to_pylist()
        ids: list[str] = self._corpus[rows].column("id").to_pylist()
        return ids


class Collator:
    """Makes a batch, padded to its longest piece."""

    def __init__(self, pad_id: int, attend: bool = False) -> None:
        """Takes the id of padding, and whether padding is attended.

        Only the released code of CrossNER lets words attend to padding.
        """
        self._pad_id, self._attend = pad_id, attend

    def __call__(self, features: Sequence[Feature]) -> dict[str, torch.Tensor]:
        """Makes a batch: ids, mask, labels, unlinked (batch, length); piece numbers (batch,).

        If the model is told the case of words, it is the type of the sub-words.
        """
        longest = max(len(feature.input_ids) for feature in features)
        shape = (len(features), longest)
        input_ids = np.full(shape, self._pad_id)
        labels = np.full(shape, IGNORED)
        mask = np.full(shape, int(self._attend))
        unlinked = np.zeros(
            shape, np.int64
        )  # padding between devices would change the type of bool
        types = np.zeros(shape, np.int64)
        for row, feature in enumerate(features):
            length = len(feature.input_ids)
            input_ids[row, :length] = feature.input_ids
            labels[row, :length] = feature.labels
            mask[row, :length] = 1
            unlinked[row, :length] = feature.unlinked
            if feature.cases is not None:
                types[row, :length] = feature.cases
        batch = {
            "input_ids": input_ids,
            "attention_mask": mask,
            "labels": labels,
            UNLINKED: unlinked,
            PIECES: np.array([f.piece for f in features]),
        }
        if features[0].cases is not None:
            batch["token_type_ids"] = types
        return {name: torch.from_numpy(values) for name, values in batch.items()}


def open_parts(parts: Sequence[Path], cache_dir: str | None = None, **options: Any) -> Dataset:
    """Opens parts, memory-mapped.

    Args:
        parts: paths of the parts, in order.
        cache_dir: folder of the memory-mapped files of `datasets`.
        options: options of `load_dataset`, such as columns and features.

    Raises:
        UserError: a part is damaged, or `datasets` cannot take such a path.
    """
    folder = parts[0].parent
    if "::" in str(folder.absolute()):
        raise UserError(f"{folder}: `datasets` reads no path with '::'; rename the folder")
    names = [glob.escape(str(path)) for path in parts]
    try:
        return load_dataset(
            "parquet", data_files={"rows": names}, split="rows", cache_dir=cache_dir, **options
        )
    except (DatasetsError, OSError) as error:
        if getattr(error, "errno", None):  # of the disk, not of the part
            raise
        reason = " ".join(str(error.__cause__ or error).split())
        raise UserError(
            f"{folder}: a part cannot be read ({reason}); make the corpus again"
        ) from error
