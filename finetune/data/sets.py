"""Finds and reads data sets by name, file or folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from finetune.data import conll, hub, json_rows, mecab
from finetune.data.registry import NamedSet, known_names, known_set, registry
from finetune.data.split_files import (
    SPLIT_NAMES,
    SPLITS,
    ZIP,
    checksum,
    existing_file,
    other_names,
    split_file,
)
from finetune.data.views import View, renamed
from finetune.settings import DataOptions, DataRoot
from nerbert.commands.values import near
from nerbert.errors import UserError
from nerbert.fetch.wanted import source
from nerbert.storage.places import Place
from nerbert.text.columns import Sentence
from nerbert.text.tags import OUTSIDE

Data: TypeAlias = "str | Path | Sequence[Sentence | Mapping[str, Any]] | Sequence[str]"
"""Name of a set, a file, a folder, `hf:NAME`, sentences, or a list of names, files and folders.

A sentence is a `Sentence`, or a mapping with `tokens` and `tags`.

`A+B` means two sets together.
"""

_SPLITTERS: dict[str, Callable[[list[Sentence], str], list[Sentence]]] = {
    "": lambda rows, _: rows,
    "mecab": mecab.in_words,
}
"""What splits the sentences of a file into words -> does so."""

_CARVING = 0  # seed of the draw of dev sentences from a train split


class DataSets:
    """Finds and reads data sets. Each file is read once, unless it changes."""

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        view: View | None = None,
        revision: str | None = None,
        splits: Sequence[str] = (),
        columns: str | None = None,
    ) -> None:
        """Sets the data root and the view.

        Args:
            root: folder of the named sets; if None, `NERBERT_DATA` or `data`.
            view: changes of types and words; if None, no changes.
            revision: branch, tag or commit of sets on the hub; None for the main branch.
            splits: other names of splits, such as "train=train_2020".
            columns: columns of words and tags of sets that are not named, such as "word=2,tag=3".

        Raises:
            UserError: a name of a split is written in another way.
        """
        self.root = Path(root or os.environ.get("NERBERT_DATA", "data"))
        self.view = view or View()
        self._revision, self._columns = revision, columns
        self._names = {**SPLIT_NAMES, **other_names(splits)}
        # Time and size of a file are part of the key, so a changed file is read again.
        self._read_once = lru_cache(maxsize=16)(
            lambda path, words, columns, *_: _SPLITTERS[words](conll.read(path, columns), path)
        )

    @classmethod
    def of_options(cls, options: DataRoot, are_several: bool = False) -> DataSets:
        """The sets by the options of a command.

        Args:
            options: options of the command.
            are_several: whether sets with different names of types are used together.

        Raises:
            UserError: the label map cannot be read, or a split is named in another way.
        """
        view = View.of_options(options, are_several) if isinstance(options, DataOptions) else View()
        return cls(options.data_root, view, options.revision, options.splits, options.columns)

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
        if not any(isinstance(row, str | Path) for row in data):
            return _of_rows(data) if needed else []
        return [row for part in data for row in self._of_name(str(part), split, needed)]

    def _of_name(self, name: str, split: str, needed: bool) -> list[Sentence]:
        if (named_set := known_set(name)) is not None:
            return self._of_set(named_set, split, needed)
        path = Path(name)
        if name.startswith(hub.PREFIX) or (path.is_dir() and hub.is_folder(path)):
            rows = hub.read(name, self._names[split], needed, self._revision, self._columns)
            conll.log_scheme(name, rows.scheme)
            return rows
        if not path.exists() and "+" in name:
            parts = name.split("+")
            return [row for part in parts for row in self._of_name(part, split, needed)]
        if path.is_dir():
            if file := split_file(path, self._names[split]):
                return self._read(str(file), columns=self._columns)
            if needed:
                raise UserError(f"it has no file {' or '.join(self._names[split])}.*", name)
            return []
        if not needed:
            return []
        if path.is_file() or ZIP in name:
            return self._read(name, columns=self._columns)
        hint = near(name, known_names().split(", ")) or f", or one of the sets {known_names()}"
        raise UserError(f"no such file, folder or set{hint}", name)

    def _of_set(self, named_set: NamedSet, split: str, needed: bool) -> list[Sentence]:
        if split not in named_set.splits:
            if needed:
                raise UserError(f"this set has no {split} split", named_set.name)
            return []
        carved = named_set.carved if split != "test" else 0
        rows = self._read(self.find(named_set, "train" if carved else split), named_set.words)
        if carved:
            dev = draw(rows, carved, _CARVING)
            dev_ids = {id(row) for row in dev}
            rows = dev if split == "dev" else [row for row in rows if id(row) not in dev_ids]
        if named_set.types:
            new = {old: name for name, olds in named_set.types.items() for old in olds}
            rows = [
                Sentence(row.tokens, renamed(row.tags, lambda old: new.get(old, "O")))
                for row in rows
            ]
        return rows

    def _read(self, path: str, words: str = "", columns: str | None = None) -> list[Sentence]:
        """Reads the sentences of a file, in the words of the file or of a splitter."""
        file = path.partition(ZIP)[0] + ".zip" if ZIP in path else path
        if not Path(file).is_file():
            return conll.read(path, columns)  # says why
        facts = Path(file).stat()
        return list(self._read_once(path, words, columns, facts.st_mtime_ns, facts.st_size))

    def exists(self, named_set: NamedSet, split: str) -> bool:
        """Whether the file of a split exists."""
        return self._path_of(named_set, split) is not None

    def _path_of(self, named_set: NamedSet, split: str) -> str | None:
        names = [named_set.files[split], *named_set.also.get(split, ())]
        paths = (existing_file(self.root / name) for name in names)
        return next((path for path in paths if path), None)

    def find(self, named_set: NamedSet, split: str) -> str:
        """The file of a split, compressed or not, or `FILE.zip:MEMBER`.

        Raises:
            UserError: it is missing; the message says where to get it and where to put it.
        """
        if (file := self._path_of(named_set, split)) is not None:
            return file
        path = self.root / named_set.files[split]
        ask = source("sets")["ask"].get(named_set.owner)
        remedy = (
            ask
            or named_set.elsewhere
            or f"get it with: nerbert fetch sets {named_set.owner} --output {self.root}"
        )
        raise UserError(
            f"{path} is missing; {remedy}, or name another folder with --data-root or NERBERT_DATA",
            named_set.name,
        )

    def identity(self, name: str) -> str:
        """Name of the known set that a name stands for, also if it is a folder with its test file.

        Published scores belong to it. Of an unknown set, it is the name itself.
        """
        if known_set(name) is not None or not Path(name).is_dir():
            return name
        file = split_file(Path(name), self._names["test"])
        digest = checksum(Place(file)) if file else ""
        same_sets = (
            key for key, named_set in registry().items() if named_set.sha256.get("test") == digest
        )
        return next(same_sets, name)

    def lacks(self, name: str) -> str:
        """Why a named set cannot be read; empty if all its files are there."""
        named_set = known_set(name)
        try:
            for split in named_set.files if named_set else ():
                self.find(named_set, split)  # type: ignore[arg-type]
        except UserError as error:
            return str(error)
        return ""

    def fingerprint(self, name: str) -> dict[str, str]:
        """Split -> SHA-256 of its sentences, which changes if the set changes."""
        digests = {}
        for split in SPLITS:
            if rows := self.raw_sentences(name, split, needed=False):
                digest = hashlib.sha256()
                for row in rows:
                    digest.update("\n".join(map("\t".join, (row.tokens, row.tags, [""]))).encode())
                digests[split] = digest.hexdigest()
        return digests

    def sizes(self, names: Iterable[str]) -> dict[str, list[int]]:
        """Sets -> number of types, and of sentences of train, dev and test; 0 of one it lacks."""
        sizes = {}
        for name in dict.fromkeys(names):
            splits = [self.sentences(name, split, needed=False) for split in SPLITS]
            tags = {tag for rows in splits for row in rows for tag in row.tags}
            types = {tag[2:] for tag in tags if tag != OUTSIDE}
            sizes[self.identity(name)] = [len(types), *map(len, splits)]
        return sizes

    def check_splits(self, name: str) -> None:
        """Checks that a set has a train and a test split with different sentences.

        Raises:
            UserError: a split is missing, or both are equal.
        """
        test = self.raw_sentences(name, "test", needed=Path(name).is_file())
        if self.raw_sentences(name, "train") == test:
            raise UserError("train and test are the same; give a folder with both", name)


def _of_rows(data: Sequence[Any]) -> list[Sentence]:
    """The sentences that a user gave, in strict IOB2.

    Raises:
        UserError: one is neither a `Sentence` nor a mapping with tokens and tags, or a tag is of no
            scheme.
    """
    rows = (vars(row) if isinstance(row, Sentence) else row for row in data)
    try:
        return json_rows.sentences((f"sentence {n}", row) for n, row in enumerate(rows))
    except ValueError as error:
        raise UserError(str(error)) from None


def are_several(names: Iterable[str]) -> bool:
    """Whether one of the names means several sets together, as `A+B`."""
    return any("+" in name and not Path(name).exists() for name in names)


def are_named_sets(data: Data) -> bool:
    """Whether data are several sets: a list of names, or `A+B`; sentences are none."""
    if isinstance(data, str | Path):
        return are_several([str(data)])
    names = [str(part) for part in data if isinstance(part, str | Path)]
    return len(names) > 1 or are_several(names)


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
