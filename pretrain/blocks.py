"""Blocks of concatenated sub-words from the sentences of a domain corpus, memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, load_dataset
from torch.utils.data import Dataset as TorchDataset
from transformers import PreTrainedTokenizerFast

from pipeline.domains import LEVELS
from pipeline.errors import UserError

HELD_OUT = 0.01
"""Share of the sentences that perplexity is measured on."""

_COLUMNS = ("text", "entity", "task")

Ints = npt.NDArray[np.int64]


def load(corpus: str, cache_dir: str | None = None) -> Dataset:
    """Sentences of a domain corpus, or of any folder of Parquet files with a column `text`.

    Args:
        corpus: folder that `run_pipeline.py domain` wrote.
        cache_dir: where `datasets` keeps the mapped files.

    Raises:
        UserError: the folder holds no such files.
    """
    parts = _parts(corpus)
    if not parts:
        raise UserError(
            f"{corpus}: no sentences/part-*.parquet; give a folder that `run_pipeline.py domain` "
            "wrote"
        )
    for part in parts:
        try:
            names = pq.read_schema(part).names
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(f"{part}: no Parquet file ({error}); make the corpus anew") from error
        for name in _COLUMNS:
            if name not in names:
                raise UserError(f"{part}: no column {name!r}; make the corpus anew")
    full = [str(part) for part in parts if pq.read_metadata(part).num_rows]  # it reads no others
    if not full:
        raise UserError(f"{corpus}: no sentence in it; make the corpus anew")
    return load_dataset("parquet", data_files={"train": full},
                        split="train", columns=list(_COLUMNS), cache_dir=cache_dir)  # fmt: skip


def fingerprint(corpus: str) -> str:
    """Tells corpora apart: by names, sizes and rows of the parts."""
    facts = [(part.name, part.stat().st_size, pq.read_metadata(part).num_rows)
             for part in _parts(corpus)]  # fmt: skip
    return blake2b(repr(facts).encode(), digest_size=8).hexdigest()


def _parts(corpus: str) -> list[Path]:
    return sorted((Path(corpus) / "sentences").glob("part-*.parquet"))


def rows_of(corpus: Dataset, level: str, where: str) -> tuple[Ints, Ints]:
    """Rows of a level for training, repeated as it wants, and rows held out, shape (rows,).

    The same sentences are held out whatever the level, as far as it has them, so that none is
    learnt twice and asked once.

    Args:
        corpus: of `load`.
        level: of `pipeline.domains.LEVELS`.
        where: folder, for messages.

    Raises:
        UserError: the level is empty.
    """
    columns = {"domain": np.ones(len(corpus), bool)}
    for name in set(LEVELS[level]) - set(columns):
        columns[name] = np.array(corpus.with_format("numpy")[name][:], bool)
    held = np.random.default_rng(0).random(len(corpus)) < HELD_OUT
    rows = np.concatenate([np.flatnonzero(columns[name]) for name in LEVELS[level]])
    if len(np.unique(rows)) < 2:
        raise UserError(
            f"{where}: level {level} has {len(rows)} sentences; take another --level, or make the "
            "corpus with lower thresholds"
        )
    if not held[rows].any():
        held[rows[-1]] = True
    elif held[rows].all():
        held[rows[0]] = False
    return rows[~held[rows]], np.unique(rows[held[rows]])


def subwords(corpus: Dataset, tokenizer: PreTrainedTokenizerFast, processes: int) -> Dataset:
    """Column `ids` of the sub-words of each sentence, without special ones; cached.

    Args:
        corpus: of `load`.
        tokenizer: of the base model.
        processes: that work at once.
    """

    def ids(batch: dict[str, Any]) -> dict[str, Any]:
        return {"ids": tokenizer(batch["text"], add_special_tokens=False, verbose=False).input_ids}

    workers = processes if len(corpus) > 20_000 else None
    return corpus.map(ids, batched=True, remove_columns=corpus.column_names, num_proc=workers,
                      desc="sub-words")  # fmt: skip


@dataclass(frozen=True)
class Block:
    """A stretch of text.

    Attributes:
        key: of its random draws: number of the epoch, number of the block.
        input_ids: sub-words, the special ones at both ends.
    """

    key: tuple[int, int]
    input_ids: npt.NDArray[np.int64]


class Blocks(TorchDataset[Block]):
    """Sentences one after the other, cut every so many sub-words; the last block may be shorter."""

    def __init__(
        self, ids: Dataset, rows: Ints, tokenizer: PreTrainedTokenizerFast, length: int
    ) -> None:
        """Lays the sentences end to end.

        Args:
            ids: of `subwords`.
            rows: of it, in order, shape (rows,).
            tokenizer: whose special sub-words stand around a block.
            length: sub-words of a block, the special ones included.
        """
        column: pa.ChunkedArray = ids.data.column("ids")
        self._ids, self._rows = column, rows
        lengths = np.concatenate([chunk.value_lengths().to_numpy(zero_copy_only=False)
                                  for chunk in column.chunks])  # fmt: skip
        self._ends = np.cumsum(lengths[rows].astype(np.int64))
        empty = np.array(tokenizer("").input_ids, np.int64)
        self._edges = empty[: (len(empty) + 1) // 2], empty[(len(empty) + 1) // 2 :]
        self._inner = length - len(empty)
        self._order = np.arange(-(-self.subwords // self._inner))
        self._epoch = 0

    @property
    def subwords(self) -> int:
        """Of all sentences."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def take(self, fraction: float) -> None:
        """Keeps a share of the blocks, drawn at random; a smaller share is part of a larger one."""
        size = max(1, round(fraction * len(self._order)))
        if size < len(self._order):
            drawn = np.random.default_rng(1).permutation(len(self._order))[:size]
            self._order = np.sort(drawn)

    def set_epoch(self, epoch: int) -> None:
        """Called by the Trainer: each epoch hides other sub-words."""
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
