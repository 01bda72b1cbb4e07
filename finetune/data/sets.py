"""Finds and reads data sets by name, file or folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from finetune.data import conll, hub
from finetune.data.registry import NamedSet, known_names, known_set
from finetune.data.views import View
from nerbert.errors import UserError
from nerbert.fetch.sources import source
from nerbert.files import open_decompressed
from nerbert.text.columns import Sentence

Data: TypeAlias = "str | Path | Sequence[Sentence] | Sequence[str]"
"""Name of a set, a file, a folder, `hf:NAME`, sentences, or a list of names, files and folders.

`A+B` means two sets together.
"""

SPLITS = ("train", "dev", "test")
_NAMES = {
    "train": ("train",),
    "dev": ("dev", "valid", "val", "devel", "testa"),
    "test": ("test", "testb"),
}
_HUB_NAMES = {"train": ("train",), "dev": ("validation", "dev", "valid"), "test": ("test",)}
_ENDINGS = ("", ".xz", ".gz", ".bz2")


class DataSets:
    """Finds and reads data sets. Each file is read once, unless it changes."""

    def __init__(self, root: str | None = None, view: View | None = None) -> None:
        """Sets the data root and the view.

        Args:
            root: folder of the named sets; if None, `NERBERT_DATA` or `data`.
            view: changes of types and words; if None, no changes.
        """
        self.root = Path(root or os.environ.get("NERBERT_DATA", "data"))
        self.view = view or View()
        # Time and size of a file are part of the key, so a changed file is read again.
        self._read_once = lru_cache(maxsize=16)(lambda path, *_: conll.read(path))

    def sentences(self, data: Data, split: str, needed: bool = True) -> list[Sentence]:
        """Reads the sentences of a split, changed by the view.

        A single file and a list of sentences are used as any split that is needed.

        Args:
            data: see `Data`.
            split: "train", "dev" or "test".
            needed: whether a missing split is an error; else it is empty.

        Raises:
            UserError: a set or split is missing, or a file has no sentences.
        """
        return self.view.of(self.raw_sentences(data, split, needed))

    def raw_sentences(self, data: Data, split: str, needed: bool = True) -> list[Sentence]:
        """Reads the sentences of a split, without the changes of the view."""
        if isinstance(data, str | Path):
            return self._of_name(str(data), split, needed)
        if all(isinstance(row, Sentence) for row in data):
            return [row for row in data if isinstance(row, Sentence)] if needed else []
        return [row for part in data for row in self._of_name(str(part), split, needed)]

    def _of_name(self, name: str, split: str, needed: bool) -> list[Sentence]:
        if (known := known_set(name)) is not None:
            return self._of_set(known, split, needed)
        path = Path(name)
        if name.startswith(hub.PREFIX) or (path.is_dir() and hub.is_folder(path)):
            return hub.read(name, _HUB_NAMES[split], needed)
        if not path.exists() and "+" in name:
            parts = name.split("+")
            return [row for part in parts for row in self._of_name(part, split, needed)]
        if path.is_dir():
            for stem in _NAMES[split]:
                if found := sorted(path.glob(f"{stem}.*")):
                    return self._read(str(found[0]))
            if needed:
                raise UserError(f"it has no file {' or '.join(_NAMES[split])}.*", name)
            return []
        if not needed:
            return []
        if path.is_file() or ".zip:" in name:
            return self._read(name)
        raise UserError(f"not a file, a folder, or one of the sets {known_names()}", name)

    def _of_set(self, known: NamedSet, split: str, needed: bool) -> list[Sentence]:
        if split not in known.files:
            if needed:
                raise UserError(f"this set has no {split} split", known.name)
            return []
        return self._read(str(self.find(known, split)))

    def _read(self, path: str) -> list[Sentence]:
        """Reads the sentences of a file."""
        if not Path(path).is_file():  # a member of a zip
            return conll.read(path)
        facts = Path(path).stat()
        return list(self._read_once(path, facts.st_mtime_ns, facts.st_size))

    def exists(self, known: NamedSet, split: str) -> bool:
        """Whether the file of a split exists."""
        return _found(self.root / known.files[split]) is not None

    def find(self, known: NamedSet, split: str) -> Path:
        """The file of a split, compressed or not.

        Raises:
            UserError: it is missing; the message says where to get it and where to put it.
        """
        path = self.root / known.files[split]
        if (found := _found(path)) is not None:
            return found
        ask = source("sets")["ask"].get(known.name)
        remedy = ask or f"get it with: nerbert fetch sets {known.name} --output {self.root}"
        raise UserError(
            f"{path} is missing; {remedy}, or name another folder with --data-root or NERBERT_DATA",
            known.name,
        )

    def fingerprint(self, name: str) -> dict[str, str]:
        """Split -> SHA-256 of its sentences, which changes if the set changes."""
        found = {}
        for split in SPLITS:
            if rows := self.raw_sentences(name, split, needed=False):
                digest = hashlib.sha256()
                for row in rows:
                    digest.update("\n".join(map("\t".join, (row.tokens, row.tags, [""]))).encode())
                found[split] = digest.hexdigest()
        return found

    def check_splits(self, name: str) -> None:
        """Checks that a set has a train and a test split with different sentences.

        Raises:
            UserError: a split is missing, or both are equal.
        """
        test = self.raw_sentences(name, "test", needed=Path(name).is_file())
        if self.raw_sentences(name, "train") == test:
            raise UserError("train and test are the same; give a folder with both", name)


def _found(path: Path) -> Path | None:
    candidates = (path.with_name(path.name + ending) for ending in _ENDINGS)
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def draw(rows: list[Sentence], count: int, seed: int) -> list[Sentence]:
    """Draws sentences at random. With the same seed, a smaller draw is a subset of a larger one.

    Args:
        rows: sentences to draw from.
        count: number of sentences; if there are fewer, all are returned.
        seed: seed of the draw.
    """
    if count >= len(rows):
        return rows
    order = np.random.default_rng(seed).permutation(len(rows))[:count]
    return [rows[index] for index in sorted(order.tolist())]


def checksum(path: str) -> str:
    """SHA-256 of a file, decompressed."""
    with open_decompressed(path) as file:
        return hashlib.sha256(file.read()).hexdigest()
