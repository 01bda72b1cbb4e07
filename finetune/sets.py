"""Named data sets, files and folders: what the rest calls data."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from finetune import conll, hub
from finetune.conll import Sentence
from ontology.compressed import open_bytes
from pipeline.errors import UserError

Data: TypeAlias = "str | Path | Sequence[Sentence] | Sequence[str]"
"""A set's name, a file, a folder, `hf:NAME`, sentences, or a list of names, files and folders.

`A+B` is both sets together."""

SPLITS = ("train", "dev", "test")
_NAMES = {"train": ("train",), "dev": ("dev", "valid", "val", "devel", "testa"),
          "test": ("test", "testb")}  # fmt: skip
_HUB_NAMES = {"train": ("train",), "dev": ("validation", "dev", "valid"), "test": ("test",)}
_ENDINGS = ("", ".xz", ".gz", ".bz2")


@dataclass(frozen=True)
class NamedSet:
    """What the registry says of a set.

    Attributes:
        name: of the set.
        files: path of each split, below the data root.
        source: where to get them.
        citation: whom to cite; `licence` under which terms.
        domain: what its texts are about.
        counts: sentences, tokens and mentions of each split, where we have measured them.
        sha256: of each split's file, unpacked, where we have measured it.
    """

    name: str
    files: dict[str, str]
    source: str
    citation: str
    licence: str
    domain: str
    counts: dict[str, list[int]] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)


@cache
def registry() -> dict[str, NamedSet]:
    """The sets that we know by name."""
    return {name: entry for name, entry in _entries().items() if "*" not in name}


@cache
def _entries() -> dict[str, NamedSet]:
    text = (files("finetune") / "sets.toml").read_text(encoding="utf-8")
    return {name: NamedSet(name=name, **entry) for name, entry in tomllib.loads(text).items()}


def known_set(name: str) -> NamedSet | None:
    """The set of that name, if we know it; of WikiAnn in any language."""
    if name in registry():
        return registry()[name]
    for pattern, entry in _entries().items():
        start, star, end = pattern.partition("*")
        if star and name.startswith(start) and name.endswith(end) and not set(name) & set("*?["):
            part = name[len(start) : len(name) - len(end)]
            paths = {split: path.replace("*", part) for split, path in entry.files.items()}
            return replace(entry, name=name, files=paths)
    return None


def data_root() -> Path:
    """Folder of the named sets: `NERBERT_DATA`, or `data`."""
    return Path(os.environ.get("NERBERT_DATA", "data"))


def expand(names: Sequence[str]) -> list[str]:
    """Names of sets for patterns such as `crossner/*`; other names as they are.

    Raises:
        UserError: a pattern fits no set.
    """
    found: list[str] = []
    for name in names:
        fitting = [known for known in sorted(registry()) if fnmatchcase(known, name)]
        if not fitting and set(name) & set("*?["):
            raise UserError(f"--data {name}: no set has such a name; there are {_known()}")
        found += fitting or [name]
    return list(dict.fromkeys(found))


def _known() -> str:
    return ", ".join(sorted(_entries()))


def sentences(data: Data, split: str, needed: bool = True) -> list[Sentence]:
    """The sentences of a split.

    A single file, or sentences themselves, are whatever split is needed.

    Args:
        data: see `Data`.
        split: "train", "dev" or "test".
        needed: whether a missing split is an error, or empty.

    Raises:
        UserError: a set or split is missing, or a file is none.
    """
    if isinstance(data, str | Path):
        return _of_name(str(data), split, needed)
    if all(isinstance(row, Sentence) for row in data):
        return [row for row in data if isinstance(row, Sentence)] if needed else []
    return [row for part in data for row in _of_name(str(part), split, needed)]


def _of_name(name: str, split: str, needed: bool) -> list[Sentence]:
    if (known := known_set(name)) is not None:
        return _of_set(known, split, needed)
    path = Path(name)
    if name.startswith(hub.PREFIX) or (path.is_dir() and hub.is_folder(path)):
        return hub.read(name, _HUB_NAMES[split], needed)
    if not path.exists() and "+" in name:
        return [row for part in name.split("+") for row in _of_name(part, split, needed)]
    if path.is_dir():
        for stem in _NAMES[split]:
            if found := sorted(path.glob(f"{stem}.*")):
                return _read(str(found[0]))
        if needed:
            raise UserError(f"{name}: no file {' or '.join(_NAMES[split])}.* in it")
        return []
    if not needed:
        return []
    if path.is_file() or ".zip:" in name:
        return _read(name)
    raise UserError(f"--data {name}: no file, no folder, and none of the sets {_known()}")


def _read(path: str) -> list[Sentence]:
    """The sentences of a file, read once as long as it does not change."""
    if not Path(path).is_file():  # a member of a zip
        return conll.read(path)
    facts = Path(path).stat()
    return list(_read_once(path, facts.st_mtime_ns, facts.st_size))


@lru_cache(maxsize=16)
def _read_once(path: str, *_: int) -> conll.Sentences:
    return conll.read(path)


def _of_set(known: NamedSet, split: str, needed: bool) -> list[Sentence]:
    if split not in known.files:
        if needed:
            raise UserError(f"{known.name}: this set has no {split} split")
        return []
    return _read(str(find(known, split)))


def _found(path: Path) -> Path | None:
    candidates = (path.with_name(path.name + ending) for ending in _ENDINGS)
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def exists(known: NamedSet, split: str) -> bool:
    """Whether the file of a split is there."""
    return _found(data_root() / known.files[split]) is not None


def find(known: NamedSet, split: str) -> Path:
    """The file of a split, compressed or not.

    Raises:
        UserError: it is missing; the message says what to put where.
    """
    path = data_root() / known.files[split]
    if (found := _found(path)) is not None:
        return found
    raise UserError(
        f"{known.name}: {path} is missing; put it there from {known.source}, or name another "
        "folder with --data-root or NERBERT_DATA"
    )


def fingerprint(name: str) -> dict[str, str]:
    """Split -> SHA-256 of its sentences as they are read; tells whether a set has changed."""
    found = {}
    for split in SPLITS:
        if rows := sentences(name, split, needed=False):
            digest = hashlib.sha256()
            for row in rows:
                digest.update("\n".join(map("\t".join, (row.tokens, row.tags, [""]))).encode())
            found[split] = digest.hexdigest()
    return found


def differ(name: str) -> bool:
    """Whether a set's train and test splits are different sentences; a single file is both."""
    test = sentences(name, "test", needed=Path(name).is_file())
    return sentences(name, "train") != test


def checksum(path: str) -> str:
    """SHA-256 of a file, unpacked."""
    with open_bytes(path) as file:
        return hashlib.sha256(file.read()).hexdigest()
