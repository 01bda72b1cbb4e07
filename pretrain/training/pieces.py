"""Pieces: sentences, and parts of long sentences, that fit into the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, Features, Value
from transformers import PreTrainedTokenizerFast

from nerbert.errors import UserError

Ints = npt.NDArray[np.int64]

_VERSION = 1
"""Raised if a change of the code changes the pieces, so that `datasets` does not use its cache."""

_FEATURES = Features(
    {
        "row": Value("int64"),  # row of the corpus
        "first": Value("int32"),  # first token; `end` is one after the last
        "end": Value("int32"),
        "subwords": Value("int32"),  # including special ones
        "unseen": Value("int32"),  # number of words without sub-words
    }
)


@dataclass(frozen=True)
class Piece:
    """Tokens `first` to `end` (half-open) of a sentence, and their number of sub-words."""

    first: int
    end: int
    subwords: int


def cut(subwords: Sequence[int], tags: Sequence[int], limit: int) -> list[Piece]:
    """Cuts a sentence into pieces of at most `limit` sub-words, but never inside a mention.

    A word or a mention that is longer than the limit is in no piece.

    Args:
        subwords: number of sub-words of each token.
        tags: label ids of the tokens; even ones above 0 continue a mention.
        limit: largest number of sub-words of a piece, without special ones.
    """
    pieces: list[Piece] = []
    first = end = size = 0
    index = 0
    while index < len(tags):
        after = index + 1
        while after < len(tags) and tags[after] > 0 and tags[after] % 2 == 0:
            after += 1
        length = sum(subwords[index:after])
        if size + length > limit:
            if end > first:
                pieces.append(Piece(first, end, size))
            first, size = index, 0
        if length > limit:
            first = after
        else:
            size += length
        end = index = after
    if end > first:
        pieces.append(Piece(first, end, size))
    return pieces


def misplaced_tag(tags: Ints, lengths: Ints, n_tags: int) -> tuple[int, int] | None:
    """Row and token of the first wrong label id; None if there is none.

    A label id is wrong if it is unknown, or continues no mention of its category.

    Args:
        tags: label ids of all tokens, shape (tokens,).
        lengths: number of tokens of each row, shape (rows,).
        n_tags: number of known label ids.
    """
    previous = np.concatenate([[0], tags[:-1]])
    starts = np.cumsum(lengths) - lengths
    previous[starts[lengths > 0]] = 0
    continues = (tags > 0) & (tags % 2 == 0)
    orphan = continues & (previous != tags) & (previous != tags - 1)
    bad = np.flatnonzero(orphan | (tags < 0) | (tags >= n_tags))
    if not len(bad):
        return None
    row = int(np.searchsorted(starts, bad[0], "right")) - 1
    return row, int(bad[0] - starts[row])


class Measure:
    """Makes the pieces of a batch of examples, and checks their tags. It can be pickled."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, max_subwords: int, n_tags: int, where: str
    ) -> None:
        self._tokenizer = tokenizer
        self._special = tokenizer.num_special_tokens_to_add()
        self._limit = max_subwords - self._special
        self._n_tags = n_tags
        self._where = where

    def __call__(self, table: pa.Table, rows: list[int]) -> dict[str, list[int]]:
        """Makes the columns `_FEATURES` of the pieces."""
        tokens, tags = table.column("tokens").to_pylist(), self._tags(table)
        encodings = self._tokenizer(
            tokens, is_split_into_words=True, add_special_tokens=False, return_attention_mask=False
        ).encodings
        columns: dict[str, list[int]] = {name: [] for name in _FEATURES}
        for row, words, row_tags, encoding in zip(rows, tokens, tags, encodings, strict=True):
            counts = np.bincount(encoding.word_ids, minlength=len(words))
            if len(encoding.ids) <= self._limit:
                pieces = [Piece(0, len(words), len(encoding.ids))]
            else:
                pieces = cut(counts.tolist(), row_tags, self._limit)
            for piece in pieces:
                unseen = int((counts[piece.first : piece.end] == 0).sum())
                columns["row"].append(row)
                columns["first"].append(piece.first)
                columns["end"].append(piece.end)
                columns["subwords"].append(piece.subwords + self._special)
                columns["unseen"].append(unseen)
        return columns

    def _tags(self, table: pa.Table) -> list[list[int]]:
        """The checked label ids of each example."""
        column = table.column("ner_tags").combine_chunks()
        lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
        words = pc.list_value_length(table.column("tokens")).to_numpy(zero_copy_only=False)
        flat = column.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        uneven = np.flatnonzero(lengths != words)
        if len(uneven):
            row = int(uneven[0])
            raise self._error(table, row, f"{words[row]} tokens, but {lengths[row]} tags")
        if misplaced := misplaced_tag(flat, lengths, self._n_tags):
            row, token = misplaced
            tag = column[row][token]
            reason = f"label id {tag} of token {token} is unknown or continues no mention"
            raise self._error(table, row, reason)
        result: list[list[int]] = column.to_pylist()
        return result

    def _error(self, table: pa.Table, row: int, reason: str) -> UserError:
        example = table.column("id")[row]
        return UserError(
            f"{self._where}: example {example}: {reason} (tags must be strict IOB2 ids of "
            "labels.json); make the corpus again"
        )


def count_subwords(
    corpus: Dataset,
    tokenizer: PreTrainedTokenizerFast,
    max_subwords: int,
    n_tags: int,
    where: str,
    processes: int = 1,
) -> Dataset:
    """Makes the pieces of a corpus split, memory-mapped and cached for each tokenizer.

    Args:
        corpus: examples, with the columns `nerbert.text.corpus.COLUMNS`.
        tokenizer: tokenizer of the model.
        max_subwords: largest number of sub-words of a piece, including special ones.
        n_tags: number of tags of the corpus.
        where: folder of the split, for messages.
        processes: number of processes.

    Raises:
        UserError: tags are not strict IOB2.
    """
    facts = (corpus._fingerprint, tokenizer.backend_tokenizer.to_str(), max_subwords, n_tags)
    digest = blake2b(repr((_VERSION, *facts)).encode("utf-8", "surrogatepass"), digest_size=8)
    return (
        corpus.with_format("arrow")
        .map(
            Measure(tokenizer, max_subwords, n_tags, where),
            batched=True,
            with_indices=True,
            remove_columns=corpus.column_names,
            features=_FEATURES,
            num_proc=processes if processes > 1 and len(corpus) > 10_000 else None,
            new_fingerprint=digest.hexdigest(),
            desc=f"Sub-words of {where}",
        )
        .with_format("arrow")
    )


@dataclass(frozen=True)
class PieceCounts:
    """Counts of the sentences of a split and of their pieces.

    Attributes:
        sentences: number of sentences.
        pieces: number of pieces.
        split: number of sentences that became several pieces.
        subwords: number of sub-words of the pieces, including special ones.
        words_left_out: number of words in no piece, because they, or their mention, are too long.
        words_unseen: number of words without sub-words; they have no label.
    """

    sentences: int
    pieces: int
    split: int
    subwords: int
    words_left_out: int
    words_unseen: int

    @classmethod
    def of(cls, corpus: Dataset, pieces: Dataset) -> PieceCounts:
        """Counts a corpus split and its pieces."""
        table = pieces[:]
        words = pc.sum(pc.list_value_length(corpus.with_format("arrow")[:].column("tokens")))
        words_in_pieces = pc.sum(pc.subtract(table.column("end"), table.column("first")))
        per_row = pc.value_counts(table.column("row")).field("counts")
        return cls(
            sentences=len(corpus),
            pieces=len(pieces),
            split=pc.sum(pc.greater(per_row, 1)).as_py() or 0,
            subwords=pc.sum(table.column("subwords")).as_py() or 0,
            words_left_out=(words.as_py() or 0) - (words_in_pieces.as_py() or 0),
            words_unseen=pc.sum(table.column("unseen")).as_py() or 0,
        )

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))
