"""The dictionary of a dump: names that its links nearly always use for the same page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from nerbert.storage.places import Place, local_copies
from ontology.titles import title_keys

LEAST = b"least"
"""Key of the metadata: links that a surface needs to be known anywhere."""


class Dictionary:
    """Surface -> entity and title."""

    def __init__(self, table: pa.Table) -> None:
        """Takes the agreed SURFACES, sorted by key; see `pipeline.examples.dictionary`."""
        least = int((table.schema.metadata or {}).get(LEAST, 0))
        self._is_known = table.column("links").to_numpy() >= least
        self._keys = table.column("key").to_numpy()
        self._entities = table.column("entity").to_numpy()
        self._targets = table.column("target")

    def __len__(self) -> int:
        return len(self._keys)

    def lookup(self, texts: Sequence[str]) -> Iterator[tuple[int, int, str, bool]]:
        """Finds texts: number of the text, entity index, title, whether it is known anywhere.

        The entity is -1 for doubtful titles; see `agreed`.
        """
        keys = title_keys(pa.array(texts, pa.string()))
        place = np.minimum(np.searchsorted(self._keys, keys), max(len(self) - 1, 0))
        rows = np.flatnonzero(self._keys[place] == keys) if len(self) else np.zeros(0, np.int64)
        for number in rows.tolist():
            row = int(place[number])
            is_known = bool(self._is_known[row])
            yield number, int(self._entities[row]), self._targets[row].as_py(), is_known

    @classmethod
    def open(cls, path: Place) -> Dictionary:
        """Opens a dictionary; a local one is mapped into memory."""
        with local_copies([path]) as (local,):
            return cls(pa.ipc.open_file(pa.memory_map(local)).read_all())
