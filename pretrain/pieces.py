"""Pieces: sentences, or parts of long ones, that fit into the model; measured once."""

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

from pipeline.errors import UserError

Ints = npt.NDArray[np.int64]

_VERSION = 1
"""Raised when other pieces are made; those that `datasets` kept are then measured anew."""

_FEATURES = Features(
    {
        "row": Value("int64"),  # of the corpus
        "first": Value("int32"),  # token, half-open with `end`
        "end": Value("int32"),
        "subwords": Value("int32"),  # the special ones included
        "unseen": Value("int32"),  # words without any
    }
)


@dataclass(frozen=True)
class Piece:
    """Tokens `first` to `end` (half-open) of a sentence, and how many sub-words they are."""

    first: int
    end: int
    subwords: int


def cut(subwords: Sequence[int], tags: Sequence[int], limit: int) -> list[Piece]:
    """Cuts a sentence into pieces of at most `limit` sub-words, never inside a mention.

    A word or a mention that alone is longer stands in no piece.

    Args:
        subwords: of each token.
        tags: label ids of the tokens; even ones above 0 continue a mention.
        limit: sub-words of a piece, without special ones.
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
    """Row and token of the first label id that is unknown, or continues no mention of its kind.

    Args:
        tags: label ids of all tokens, shape (tokens,).
        lengths: tokens of each row, shape (rows,).
        n_tags: known label ids are below.
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
    """Makes the pieces of a batch of examples; checks their tags. Works in other processes too."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, max_subwords: int, n_tags: int, where: str
    ) -> None:
        self._tokenizer = tokenizer
        self._special = tokenizer.num_special_tokens_to_add()
        self._limit = max_subwords - self._special
        self._n_tags = n_tags
        self._where = where

    def __call__(self, table: pa.Table, rows: list[int]) -> dict[str, list[int]]:
        """Columns of the pieces, as in `_FEATURES`."""
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
        """Label ids of each example, checked."""
        column = table.column("ner_tags").combine_chunks()
        lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
        words = pc.list_value_length(table.column("tokens")).to_numpy(zero_copy_only=False)
        flat = column.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        uneven = np.flatnonzero(lengths != words)
        if len(uneven):
            row = int(uneven[0])
            raise self._error(table, row, f"{words[row]} tokens, but {lengths[row]} tags")
        if found := misplaced_tag(flat, lengths, self._n_tags):
            row, token = found
            tag = column[row][token]
            reason = f"label id {tag} of token {token} is unknown or continues no mention"
            raise self._error(table, row, reason)
        result: list[list[int]] = column.to_pylist()
        return result

    def _error(self, table: pa.Table, row: int, reason: str) -> UserError:
        example = table.column("id")[row]
        return UserError(
            f"{self._where}: example {example}: {reason} (tags must be strict IOB2 ids of "
            "labels.json); make the corpus anew"
        )


def measured(
    corpus: Dataset, tokenizer: PreTrainedTokenizerFast, max_subwords: int, n_tags: int,
    where: str, processes: int = 1,
) -> Dataset:  # fmt: skip
    """The pieces of a corpus split, memory-mapped; measured only once for a tokenizer.

    Args:
        corpus: examples, columns of `pretrain.corpus.COLUMNS`.
        tokenizer: of the model.
        max_subwords: of a piece, the special ones included.
        n_tags: of the corpus.
        where: the split's folder, for messages.
        processes: that measure.

    Raises:
        UserError: tags are not strict IOB2.
    """
    facts = (corpus._fingerprint, tokenizer.backend_tokenizer.to_str(), max_subwords, n_tags)
    digest = blake2b(repr((_VERSION, *facts)).encode("utf-8", "surrogatepass"), digest_size=8)
    return corpus.with_format("arrow").map(
        Measure(tokenizer, max_subwords, n_tags, where),
        batched=True, with_indices=True, remove_columns=corpus.column_names, features=_FEATURES,
        num_proc=processes if processes > 1 and len(corpus) > 10_000 else None,
        new_fingerprint=digest.hexdigest(), desc=f"Sub-words of {where}",
    ).with_format("arrow")  # fmt: skip


@dataclass(frozen=True)
class PieceCounts:
    """What became of the sentences.

    Attributes:
        sentences: of the corpus split; `split` those that became several pieces.
        pieces: that the model sees; `subwords` theirs, the special ones included.
        words_left_out: longer than a piece, alone or with the mention they belong to.
        words_unseen: of which the tokenizer makes no sub-word; they have no label.
    """

    sentences: int
    pieces: int
    split: int
    subwords: int
    words_left_out: int
    words_unseen: int

    @classmethod
    def of(cls, corpus: Dataset, pieces: Dataset) -> PieceCounts:
        """Counts of a corpus split and its pieces."""
        table = pieces[:]
        words = pc.sum(pc.list_value_length(corpus.with_format("arrow")[:].column("tokens")))
        kept = pc.sum(pc.subtract(table.column("end"), table.column("first")))
        per_row = pc.value_counts(table.column("row")).field("counts")
        return cls(
            sentences=len(corpus), pieces=len(pieces),
            split=pc.sum(pc.greater(per_row, 1)).as_py() or 0,
            subwords=pc.sum(table.column("subwords")).as_py() or 0,
            words_left_out=(words.as_py() or 0) - (kept.as_py() or 0),
            words_unseen=pc.sum(table.column("unseen")).as_py() or 0,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))
