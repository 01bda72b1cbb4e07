"""The dictionary of a dump: texts of links that nearly always lead to the same page.

It is counted by sorting on disk: each part of documents leaves its surfaces sorted by their key,
and each bucket of keys is merged by itself. The result is mapped into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nerbert import files
from ontology.titles import Keys, title_keys

Ints = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

SURFACES = pa.schema(
    [
        ("key", pa.uint64()),  # of the text of the link
        ("entity", pa.int32()),  # that it leads to, -1 for an unknown page
        ("links", pa.int64()),
        ("target", pa.string()),  # title that the link names; the first one of several
    ]
)
"""Columns of `examples/surfaces/` and `examples/dictionary/`, sorted by key and entity."""

SHARE = 0.8
"""Share of the links of a surface that must lead to one page."""


def counted(texts: Sequence[str], entities: Int32, targets: pa.StringArray) -> pa.Table:
    """SURFACES of some links.

    Args:
        texts: text of each link.
        entities: entity index of each link.
        targets: title that each link names.
    """
    keys = title_keys(pa.array(texts, pa.string()))
    return _summed(keys, entities, np.ones(len(keys), np.int64), targets)


def merged(tables: Sequence[pa.Table]) -> pa.Table:
    """SURFACES of all links that several tables count."""
    table = pa.concat_tables([SURFACES.empty_table(), *tables])
    keys, entities, links = (table.column(name).to_numpy() for name in SURFACES.names[:3])
    return _summed(keys, entities, links, table.column("target"))


def _summed(
    keys: Keys, entities: Int32, links: Ints, targets: pa.StringArray | pa.ChunkedArray
) -> pa.Table:
    order = np.lexsort((entities, keys))
    keys, entities = keys[order], entities[order]
    new = np.ones(len(keys), bool)
    new[1:] = (keys[1:] != keys[:-1]) | (entities[1:] != entities[:-1])
    first = np.flatnonzero(new)
    sums = np.add.reduceat(links[order], first) if len(first) else links[order]
    columns = [keys[first], entities[first], sums, targets.take(order[first])]
    return pa.table(columns, schema=SURFACES)


def agreed(table: pa.Table, least: int, is_typed: npt.NDArray[np.bool_]) -> pa.Table:
    """The surfaces that nearly always lead to one page.

    Args:
        table: SURFACES of all links.
        least: least number of links of a surface.
        is_typed: whether each entity has a class; the last entry is for index -1.
    """
    keys, entities, links = (table.column(name).to_numpy() for name in SURFACES.names[:3])
    _, groups = np.unique(keys, return_inverse=True)
    totals = np.bincount(groups, links, groups.max(initial=-1) + 1)[groups]
    kept = (totals >= least) & (links >= SHARE * totals) & is_typed[entities]
    return table.filter(pa.array(kept))


class Dictionary:
    """Surface -> entity and title."""

    def __init__(self, table: pa.Table) -> None:
        """Takes the agreed SURFACES, sorted by key."""
        self._keys = table.column("key").to_numpy()
        self._entities = table.column("entity").to_numpy()
        self._targets = table.column("target")

    def __len__(self) -> int:
        return len(self._keys)

    def lookup(self, texts: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        """Finds texts: number of the text, entity index, title."""
        keys = title_keys(pa.array(texts, pa.string()))
        place = np.minimum(np.searchsorted(self._keys, keys), max(len(self) - 1, 0))
        found = np.flatnonzero(self._keys[place] == keys) if len(self) else np.zeros(0, np.int64)
        for number in found.tolist():
            row = int(place[number])
            yield number, int(self._entities[row]), self._targets[row].as_py()

    @classmethod
    def open(cls, path: str) -> Dictionary:
        """Opens a dictionary; a local one is mapped into memory."""
        with files.local_copies([path]) as (local,):
            return cls(pa.ipc.open_file(pa.memory_map(local)).read_all())


@contextmanager
def dictionary_writer(path: str) -> Iterator[pa.ipc.RecordBatchFileWriter]:
    """Opens a dictionary for writing. It appears under `path` when the block ends."""
    with files.atomic_write(path) as file, pa.ipc.new_file(file, SURFACES) as writer:
        yield writer
