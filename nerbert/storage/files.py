"""Finding, reading, writing and replacing files, local or remote (`s3://`, `gs://`, ...)."""

from __future__ import annotations

import bz2
import errno
import glob
import gzip
import json
import lzma
import os
import secrets
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

from nerbert.errors import UserError

_COPIED_BYTES = 1 << 20
_LOCK = ".lock"


def _stores() -> Any:
    """The module of stores."""
    from nerbert.storage import stores  # loads fsspec; local paths need none

    return stores


def is_remote(path: str) -> bool:
    """Whether a path is not on the local disk, such as `gs://bucket/name`."""
    return "://" in path


def join(folder: str, *names: str) -> str:
    """Joins a folder, local or remote, and names."""
    return (
        "/".join((folder.rstrip("/") or "/", *names))
        if is_remote(folder)
        else os.path.join(folder, *names)
    )


def absolute(path: str) -> str:
    """The absolute path, which names the same file from every working directory."""
    return path if is_remote(path) else os.path.abspath(path)


def name(path: str) -> str:
    """Last part of a path, local or remote."""
    return path.replace("\\", "/").rpartition("/")[2]


def find(pattern: str) -> list[str]:
    """Sorted paths of the files that a path, a glob or a directory names; possibly none."""
    if is_remote(pattern):
        paths: list[str] = _stores().find(pattern)
        return paths
    path = Path(pattern)
    if path.is_dir():
        return sorted(str(p) for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
    return (
        [pattern] if path.is_file() else sorted(p for p in glob.glob(pattern) if Path(p).is_file())
    )


def is_used_folder(path: str) -> bool:
    """Whether `path` is a file, or a folder that holds more than our lock and hidden files."""
    if is_remote(path):
        return any(not name.startswith(".") for name in listing(path))
    return os.path.isfile(path) or (
        os.path.isdir(path) and any(not name.startswith(".") for name in os.listdir(path))
    )


def exists(path: str) -> bool:
    """Whether the file exists."""
    return bool(_stores().exists(path)) if is_remote(path) else os.path.exists(path)


def size(path: str) -> int:
    """Length in bytes."""
    if is_remote(path):
        return int(_stores().size(path))
    return os.path.getsize(path)


def remote_checksum(path: str) -> str:
    """The checksum that a remote store keeps of a file."""
    return str(_stores().checksum(path))


def open_read(path: str) -> IO[bytes]:
    """Opens a file for reading its bytes, without decompression; it can seek."""
    if is_remote(path):
        stream: IO[bytes] = _stores().open_read(path)
        return stream
    return open(path, "rb")


def open_decompressed(path: str) -> IO[bytes]:
    """Opens a file for reading; it is decompressed if its name ends in .bz2, .gz or .xz."""
    kind = os.path.splitext(path)[1]
    unpack: Any = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}.get(kind)
    source: Any = open_read(path) if is_remote(path) else path
    opened: IO[bytes] = unpack(source, "rb") if unpack else open_read(path)
    return opened


def read_blocks(path: str, size: int = 1 << 20) -> Iterator[bytes]:
    """Reads a file in blocks; decompresses it as `open_decompressed` does.

    Raises:
        OSError: it cannot be read, or is damaged.
        EOFError: it is truncated.
    """
    with open_decompressed(path) as file:
        try:
            while block := file.read(size):
                yield block
        except (zlib.error, lzma.LZMAError) as error:
            raise OSError(str(error)) from None


@contextmanager
def local_copies(paths: Sequence[str]) -> Iterator[list[str]]:
    """Local paths of files; remote files are copied, and the copies are deleted after the block."""
    with tempfile.TemporaryDirectory() as folder:
        local = []
        for number, path in enumerate(paths):
            local.append(path)
            if is_remote(path):
                local[-1] = os.path.join(folder, f"{number}-{name(path)}")
                with open_read(path) as source, open(local[-1], "wb") as copy:
                    shutil.copyfileobj(source, copy, _COPIED_BYTES)
        yield local


@contextmanager
def locked(folder: str, is_shared: bool = False) -> Iterator[None]:
    """Locks a folder until the block ends; a local one at most until the process ends.

    Args:
        folder: the folder.
        is_shared: whether other runs that share it, too, may write at the same time.

    Raises:
        UserError: another run has locked it.
    """
    if is_remote(folder):
        from nerbert.storage import remote_lock  # it reads and writes by this module

        with remote_lock.locked(join(folder, _LOCK)):
            yield
        return
    import fcntl  # Windows lacks it, and `nerbert.commands.parser` says that it is not supported

    os.makedirs(folder, exist_ok=True)
    # Opening a pipe would wait for its other end.
    descriptor = os.open(join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666)
    with open(descriptor, "r+b", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UserError(f"{join(folder, _LOCK)}: not a file; remove it")
        try:
            kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder}: another run is writing here; wait for its end, or choose another "
                "--output"
            ) from None
        yield


WORK_FOLDER: ContextVar[str | None] = ContextVar("work_folder", default=None)
"""Folder of the unfinished files of a run, if it has one: see `nerbert.storage.unfinished`."""
OPEN = ".open"
"""Marker file in a work folder: object stores have no folders, so they look for this file."""


@contextmanager
def atomic_write(path: str) -> Iterator[IO[bytes]]:
    """Opens a file for writing. The complete file appears under `path` when the block ends."""
    work_folder = WORK_FOLDER.get()
    if is_remote(path):
        with tempfile.NamedTemporaryFile() as file:
            yield file
            file.flush()
            if work_folder is not None and not exists(join(work_folder, OPEN)):
                raise FileNotFoundError(errno.ENOENT, "the run has ended", work_folder)
            _stores().put(file.name, path)
        return
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    # Workers on several hosts may have the same number.
    name = f".{os.path.basename(path)}.{secrets.token_hex(4)}.tmp"
    temporary = os.path.join(work_folder or os.path.dirname(path), name)
    try:
        with open(temporary, "wb") as file:
            yield file
        _sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _sync(path: str) -> None:
    """Waits until a file is on the disk: after a power cut a name may else lead to an empty one."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(path: str, data: bytes) -> None:
    """Writes a file, atomically."""
    with atomic_write(path) as file:
        file.write(data)


def write_json(path: str, value: Any) -> None:
    """Writes indented JSON, atomically. Keys keep the order of `value`."""
    write_bytes(path, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))


def read_bytes(path: str) -> bytes:
    """Reads a file."""
    with open_read(path) as file:
        return file.read()


def read_json(path: str) -> Any:
    """Reads JSON.

    Raises:
        ValueError: it is none, or nested deeper than Python can read.
    """
    try:
        return json.loads(read_bytes(path))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json_or_none(path: str) -> Any:
    """Reads JSON; None if the file does not exist, or is torn, as a power cut may leave it."""
    try:
        return read_json(path) if exists(path) else None
    except ValueError:
        return None


def listing(folder: str) -> dict[str, int]:
    """Size of each file below a folder, by its path in the folder, sorted.

    A linked folder is an entry like a file: what it holds is not ours.
    """
    if is_remote(folder):
        by_path: dict[str, int] = _stores().listing(folder)
        return by_path
    sizes = {}
    for parent, inner, names in os.walk(folder):
        for entry in (*names, *(name for name in inner if os.path.islink(join(parent, name)))):
            path = os.path.join(parent, entry)
            sizes[os.path.relpath(path, folder)] = os.lstat(path).st_size
    return dict(sorted(sizes.items()))


def remove(folder: str, names: Iterable[str]) -> None:
    """Removes files below a folder, and the folders in it that are empty then."""
    paths = [join(folder, name) for name in names]
    if is_remote(folder):
        _stores().remove(paths)
        return
    for path in paths:
        Path(path).unlink(missing_ok=True)
    for parent, _, _ in os.walk(folder, topdown=False):
        if parent != folder and not os.listdir(parent):
            os.rmdir(parent)
