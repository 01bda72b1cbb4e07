"""Blocks of concatenated sub-words from the sentences of a domain corpus, memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedTokenizerFast

from nerbert import digests
from nerbert.errors import UserError
from nerbert.storage import parts
from nerbert.storage.identity import Identities
from nerbert.storage.places import Place
from nerbert.text.corpus import domain_parts
from nerbert.text.tags import LEVELS, Level
from pretrain.training.features import open_parts

HELD_OUT = 0.01
"""Share of the sentences that perplexity is measured on."""

_COLUMNS = ("text", "entity", "task")

Ints = npt.NDArray[np.int64]


def load(corpus: str, cache_dir: str | None = None) -> Dataset:
    """Opens the sentences of a domain corpus, memory-mapped.

    Args:
        corpus: folder of the corpus.
        cache_dir: folder of the memory-mapped files of `datasets`.

    Raises:
        UserError: the folder holds no domain corpus, or a damaged one.
    """
    paths = domain_parts(corpus)
    if not paths:
        raise UserError(
            f"{corpus}: no sentences/part-*.parquet; give a folder that `nerbert domain` wrote"
        )
    for part in paths:
        parts.check_columns(part, _COLUMNS)
    full = [part for part in paths if parts.n_rows(part)]  # `datasets` reads no empty ones
    if not full:
        raise UserError(f"{corpus}: no sentence in it; make the corpus again")
    return open_parts(full, cache_dir, columns=list(_COLUMNS))


def fingerprint(corpus: str) -> str:
    """Digest of the names and contents of the parts."""
    facts = [(part.name, *Identities().of(Place(part))) for part in domain_parts(corpus)]
    return digests.fingerprint(facts)


def rows_of(corpus: Dataset, level: Level, where: str) -> tuple[Ints, Ints]:
    """Rows of a level for training, some repeated, and held-out rows, shape (rows,).

    The same sentences are held out at every level that has them, and their copies on other pages
    are left out, so that no sentence is both trained on and tested.

    Args:
        corpus: result of `load`.
        level: the level.
        where: folder of the corpus, for messages.

    Raises:
        UserError: the level has fewer than two sentences.
    """
    columns = {"domain": np.ones(len(corpus), bool)}
    for name in set(LEVELS[level]) - set(columns):
        columns[name] = np.array(corpus.with_format("numpy")[name][:], bool)
    is_held_out = np.random.default_rng(0).random(len(corpus)) < HELD_OUT
    rows = np.concatenate([np.flatnonzero(columns[name]) for name in LEVELS[level]])
    if len(np.unique(rows)) < 2:
        raise UserError(
            f"{where}: level {level} has {len(rows)} sentences; take another --level, or make the "
            "corpus with lower thresholds"
        )
    if not is_held_out[rows].any():
        is_held_out[rows[-1]] = True
    elif is_held_out[rows].all():
        is_held_out[rows[0]] = False
    tested = np.unique(rows[is_held_out[rows]])
    held_out_texts = pa.array(corpus.select(tested)["text"][:], pa.string())
    texts = corpus.select_columns(["text"]).with_format("arrow")[:]["text"].cast(pa.string())
    is_copy = pc.is_in(texts, value_set=held_out_texts).to_numpy()
    if is_copy[rows].all():
        raise UserError(f"{where}: level {level} has copies of one sentence only; take another")
    return rows[~is_copy[rows]], tested


def subwords(corpus: Dataset, tokenizer: PreTrainedTokenizerFast, processes: int) -> Dataset:
    """Makes the column `ids`: sub-words of each sentence, without special ones; cached.

    Args:
        corpus: result of `load`.
        tokenizer: tokenizer of the base model.
        processes: number of processes.
    """

    def ids(batch: dict[str, Any]) -> dict[str, Any]:
        return {"ids": tokenizer(batch["text"], add_special_tokens=False, verbose=False).input_ids}

    workers = processes if len(corpus) > 20_000 else None
    return corpus.map(
        ids, batched=True, remove_columns=corpus.column_names, num_proc=workers, desc="sub-words"
    )


@dataclass(frozen=True)
class Block:
    """A block of text.

    Attributes:
        key: key of its random draws: number of the epoch, number of the block.
        input_ids: ids of the sub-words, with special ones at both ends.
    """

    key: tuple[int, int]
    input_ids: npt.NDArray[np.int64]


class Blocks(TorchDataset[Block]):
    """Concatenated sentences, cut into blocks of equal length; the last block may be shorter."""

    def __init__(
        self, ids: Dataset, rows: Ints, tokenizer: PreTrainedTokenizerFast, length: int
    ) -> None:
        """Concatenates the sentences.

        Args:
            ids: result of `subwords`.
            rows: rows of `ids`, in order, shape (rows,).
            tokenizer: tokenizer of the base model, for the special sub-words around a block.
            length: number of sub-words of a block, including special ones.
        """
        column: pa.ChunkedArray = ids.data.column("ids")
        self._ids, self._rows = column, rows
        lengths = np.concatenate(
            [chunk.value_lengths().to_numpy(zero_copy_only=False) for chunk in column.chunks]
        )
        self._ends = np.cumsum(lengths[rows].astype(np.int64))
        empty = np.array(tokenizer("").input_ids, np.int64)
        self._edges = empty[: (len(empty) + 1) // 2], empty[(len(empty) + 1) // 2 :]
        self._inner = length - len(empty)
        self._order = np.arange(-(-self.subwords // self._inner))
        self._epoch = 0

    @property
    def subwords(self) -> int:
        """Number of sub-words of all sentences."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def take(self, fraction: float) -> None:
        """Keeps a random share of the blocks; a smaller share is a subset of a larger one."""
        size = max(1, round(fraction * len(self._order)))
        if size < len(self._order):
            selection = np.random.default_rng(1).permutation(len(self._order))[:size]
            self._order = np.sort(selection)

    def set_epoch(self, epoch: int) -> None:
        """Called by the Trainer: other sub-words are masked in each epoch."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: int) -> Block:
        number = int(self._order[index])
        start = number * self._inner
        end = min(start + self._inner, self.subwords)
        first, last = np.searchsorted(self._ends, (start, end - 1), "right").tolist()
        pieces = [self._ids[row].values.to_numpy() for row in self._rows[first : last + 1].tolist()]
        offset = start - (int(self._ends[first - 1]) if first else 0)
        inner = np.concatenate(pieces)[offset : offset + end - start]
        ids = np.concatenate([self._edges[0], inner, self._edges[1]])
        return Block((self._epoch, number), ids.astype(np.int64))

    def __getitems__(self, indices: Sequence[int]) -> list[Block]:
        return [self[index] for index in indices]
