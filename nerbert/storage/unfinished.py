"""Temporary files: their names, the work folder of a run on a cluster, and clean-up."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nerbert.storage.places import OPEN, WORK_FOLDER, Place

_UNFINISHED = re.compile(r"\.(?P<name>.+)\.[0-9a-f]+\.tmp")
_IN_WORK_FOLDER = re.compile(r"\.run-[0-9a-f]+\.tmp/")


def finished_name(name: str) -> str | None:
    """The name that an unfinished file would have got; None for other files.

    >>> finished_name(".part-00001.parquet.4711c0de.tmp")
    'part-00001.parquet'
    """
    match = _UNFINISHED.fullmatch(name)
    return match and match["name"]


def remove(folder: Place) -> None:
    """Removes the work folders and temporary files that killed processes left below a folder."""
    _remove_work_folders(folder)
    if not folder.is_remote:
        leftovers = [path for path in folder.listing() if finished_name(os.path.basename(path))]
        folder.remove(leftovers)


@contextmanager
def work_folder(folder: Place) -> Iterator[Place]:
    """A hidden folder in `folder` for the unfinished files of one run; it is removed in the end.

    Workers that outlive the run, such as those of a host that was cut off, then cannot finish a
    file any more. In a store, where no file is renamed, a worker looks before it writes.
    """
    path = folder / f".run-{secrets.token_hex(4)}.tmp"
    (path / OPEN).write_bytes(b"")
    try:
        yield path
    finally:
        _remove_work_folders(folder)


def erase(folder: Place) -> None:
    """Removes a folder that is a run's own, with all that is in it."""
    if folder.is_remote:
        folder.remove(folder.listing())
    else:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def kept_in(path: Place | None) -> Iterator[None]:
    """In the block, unfinished files lie in this folder; they are finished only if it is there."""
    token = WORK_FOLDER.set(path)
    try:
        yield
    finally:
        WORK_FOLDER.reset(token)


def _remove_work_folders(folder: Place) -> None:
    if folder.is_remote:
        folder.remove([name for name in folder.listing() if _IN_WORK_FOLDER.match(name)])
        return
    for path in Path(folder).glob(".run-*.tmp"):
        # Its name goes first, in one step: a writer may be about to rename its file.
        erase(Place(path.rename(path.with_suffix(".gone"))))
