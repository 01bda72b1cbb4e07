"""Temporary files: their names, the work folder of a run on a cluster, and clean-up."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nerbert.storage import files

_UNFINISHED = re.compile(r"\.(?P<name>.+)\.[0-9a-f]+\.tmp")
_IN_WORK_FOLDER = re.compile(r"\.run-[0-9a-f]+\.tmp/")


def finished_name(name: str) -> str | None:
    """The name that an unfinished file would have got; None for other files.

    >>> finished_name(".part-00001.parquet.4711c0de.tmp")
    'part-00001.parquet'
    """
    match = _UNFINISHED.fullmatch(name)
    return match and match["name"]


def remove(folder: str) -> None:
    """Removes the work folders and temporary files that killed processes left below a folder."""
    _remove_work_folders(folder)
    if not files.is_remote(folder):
        leftovers = [path for path in files.listing(folder) if finished_name(files.name(path))]
        files.remove(folder, leftovers)


@contextmanager
def work_folder(folder: str) -> Iterator[str]:
    """A hidden folder in `folder` for the unfinished files of one run; it is removed in the end.

    Workers that outlive the run, such as those of a host that was cut off, then cannot finish a
    file any more. In a store, where no file is renamed, a worker looks before it writes.
    """
    path = files.join(folder, f".run-{secrets.token_hex(4)}.tmp")
    files.write_bytes(files.join(path, files.OPEN), b"")
    try:
        yield path
    finally:
        _remove_work_folders(folder)


def erase(folder: str) -> None:
    """Removes a folder that is a run's own, with all that is in it."""
    if files.is_remote(folder):
        files.remove(folder, files.listing(folder))
    else:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def kept_in(path: str | None) -> Iterator[None]:
    """In the block, unfinished files lie in this folder; they are finished only if it is there."""
    token = files.WORK_FOLDER.set(path)
    try:
        yield
    finally:
        files.WORK_FOLDER.reset(token)


def _remove_work_folders(folder: str) -> None:
    if files.is_remote(folder):
        files.remove(
            folder, [name for name in files.listing(folder) if _IN_WORK_FOLDER.match(name)]
        )
        return
    for path in Path(folder).glob(".run-*.tmp"):
        # Its name goes first, in one step: a writer may be about to rename its file.
        erase(str(path.rename(path.with_suffix(".gone"))))
