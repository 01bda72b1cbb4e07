"""The files of the splits of a set: their names, and where they are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from nerbert.errors import UserError
from nerbert.storage.places import Place

SPLITS = ("train", "dev", "test")
SPLIT_NAMES = {
    "train": ("train",),
    "dev": ("dev", "validation", "valid", "val", "devel", "testa"),
    "test": ("test", "testb"),
}
"""Split -> what its file may be called."""
_ENDINGS = ("", ".xz", ".gz", ".bz2")
ZIP = ".zip:"
"""Stands between an archive and its member: `sets.zip:train.txt`."""


def existing_file(path: Path) -> str | None:
    """The file, or the member of a zip, at a path or at one with the ending of a compression."""
    archive, is_member, _ = str(path).partition(ZIP)
    if is_member:
        return str(path) if Path(f"{archive}.zip").is_file() else None
    candidates = (path.with_name(path.name + ending) for ending in _ENDINGS)
    return next((str(candidate) for candidate in candidates if candidate.is_file()), None)


def split_file(folder: Path, names: Sequence[str]) -> Path | None:
    """The file of a split in a folder, or in its folder `dataset`; None without one.

    Args:
        folder: folder of a set.
        names: names of the split. `train` stands for `train`, `train.txt`, `eng.train`,
            `train_en.tsv` and `engtrain.bio`.

    Raises:
        UserError: several files have one of these forms.
    """
    patterns = ("{}", "{}.*", "*.{}", "{}_*.*", "*{}.bio")
    for place in (folder, folder / "dataset"):
        for name, pattern in ((name, pattern) for name in names for pattern in patterns):
            paths = [path for path in sorted(place.glob(pattern.format(name))) if path.is_file()]
            stems = {path.stem if path.suffix in _ENDINGS else path.name for path in paths}
            if len(stems) > 1:
                raise UserError(
                    f"{' and '.join(path.name for path in paths)}; name one, such as "
                    f"--splits {names[0]}={paths[0].name}",
                    str(folder),
                )
            if paths:
                return paths[0]
    return None


def other_names(splits: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Split -> its name, from texts such as "train=train_2020"."""
    names: dict[str, tuple[str, ...]] = {}
    for text in splits:
        split, equals, name = text.partition("=")
        if split not in SPLITS or not (equals and name):
            raise UserError(f"give one of {', '.join(SPLITS)}, =, and the split's name", text)
        names[split] = (name,)
    return names


def checksum(path: Place) -> str:
    """SHA-256 of a file, decompressed."""
    with path.open_decompressed() as file:
        return hashlib.sha256(file.read()).hexdigest()
