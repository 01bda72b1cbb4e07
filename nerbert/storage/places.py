"""Places: files and folders, on the local disk or in a store (`s3://`, `gs://`, ...)."""

from __future__ import annotations

import bz2
import errno
import glob
import gzip
import hashlib
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
from typing import IO, Any, Self

import xxhash

from nerbert.errors import UserError

_COPIED_BYTES = 1 << 20
_LOCK = ".lock"

WORK_FOLDER: ContextVar[Place | None] = ContextVar("work_folder", default=None)
"""Folder of the unfinished files of a run, if it has one: see `nerbert.storage.unfinished`."""
OPEN = ".open"
"""Marker file in a work folder: object stores have no folders, so they look for this file."""


class Place(str):
    """A file or a folder. It is a string, its path, so that libraries take it as it is.

    Attributes:
        is_remote: whether it is not on the local disk, such as `gs://bucket/name`.
    """

    __slots__ = ()
    is_remote = False

    def __new__(cls, path: str | os.PathLike[str]) -> Self:
        """Makes the place of a path."""
        text = os.fspath(path)
        return super().__new__(RemotePlace if "://" in text else cls, text)  # type: ignore

    def __truediv__(self, name: str) -> Place:
        """The file or folder of a name in this folder."""
        return Place(os.path.join(self, name))

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.replace("\\", "/").rpartition("/")[2]

    @property
    def folder(self) -> Place:
        """The folder that it is in."""
        return Place(os.path.dirname(self) or ".")

    def absolute(self) -> Place:
        """The absolute path, which names the same file from every working directory."""
        return Place(os.path.abspath(self))

    def files(self) -> list[Place]:
        """The files that this path, glob or folder names, sorted; possibly none."""
        path = Path(self)
        if path.is_dir():
            inside = (p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
            return sorted(map(Place, inside))
        if path.is_file():
            return [self]
        return sorted(Place(p) for p in glob.glob(self) if Path(p).is_file())

    def is_used_folder(self) -> bool:
        """Whether it is a file, or a folder that holds more than our lock and hidden files."""
        return os.path.isfile(self) or (
            os.path.isdir(self) and any(not name.startswith(".") for name in os.listdir(self))
        )

    def exists(self) -> bool:
        """Whether the file exists."""
        return os.path.exists(self)

    def size(self) -> int:
        """Length in bytes."""
        return os.path.getsize(self)

    def checksum(self) -> str:
        """A digest of the content; of a remote file what its store keeps as one."""
        with open(self, "rb") as file:
            return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()

    def open_read(self) -> IO[bytes]:
        """Opens the file for reading its bytes, without decompression; it can seek."""
        return open(self, "rb")

    def open_decompressed(self) -> IO[bytes]:
        """Opens the file for reading; decompresses it if its name ends in .bz2, .gz or .xz."""
        kind = os.path.splitext(self)[1]
        unpack: Any = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}.get(kind)
        source: Any = self.open_read() if self.is_remote else str(self)
        opened: IO[bytes] = unpack(source, "rb") if unpack else self.open_read()
        return opened

    def read_blocks(self, size: int = 1 << 20) -> Iterator[bytes]:
        """Reads the file in blocks; decompresses it as `open_decompressed` does.

        Raises:
            OSError: it cannot be read, or is damaged.
            EOFError: it is truncated.
        """
        with self.open_decompressed() as file:
            try:
                while block := file.read(size):
                    yield block
            except (zlib.error, lzma.LZMAError) as error:
                raise OSError(str(error)) from None

    def read_bytes(self) -> bytes:
        """Reads the file."""
        with self.open_read() as file:
            return file.read()

    def read_json(self) -> Any:
        """Reads JSON.

        Raises:
            ValueError: it is none, or nested deeper than Python can read.
        """
        try:
            return json.loads(self.read_bytes())
        except RecursionError:
            raise ValueError("nested too deeply") from None

    def read_json_or_none(self) -> Any:
        """Reads JSON; None if the file does not exist, or is torn, as a power cut may leave it."""
        try:
            return self.read_json() if self.exists() else None
        except ValueError:
            return None

    @contextmanager
    def atomic_write(self) -> Iterator[IO[bytes]]:
        """Opens the file for writing. The complete file appears when the block ends."""
        os.makedirs(self.folder, exist_ok=True)
        # Workers on several hosts may have the same number.
        temporary = (WORK_FOLDER.get() or self.folder) / f".{self.name}.{secrets.token_hex(4)}.tmp"
        try:
            with open(temporary, "wb") as file:
                yield file
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())  # else, after a power cut, the name may lead to no content
            os.replace(temporary, self)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def write_bytes(self, data: bytes) -> None:
        """Writes the file, atomically."""
        with self.atomic_write() as file:
            file.write(data)

    def write_json(self, value: Any) -> None:
        """Writes indented JSON, atomically. Keys keep the order of `value`."""
        self.write_bytes((json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))

    @contextmanager
    def locked(self, is_shared: bool = False) -> Iterator[None]:
        """Locks the folder until the block ends, at most until the process ends.

        Args:
            is_shared: whether other runs that share it, too, may write at the same time.

        Raises:
            UserError: another run has locked it.
        """
        import fcntl  # Windows lacks it, and is refused by `nerbert.commands.parser`

        os.makedirs(self, exist_ok=True)
        path = self / _LOCK
        # Opening a pipe would wait for its other end.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666)
        with open(descriptor, "r+b", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UserError(f"{path}: not a file; remove it")
            try:
                kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
                fcntl.flock(file, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(
                    f"{self}: another run is writing here; wait for its end, or choose another "
                    "--output"
                ) from None
            yield

    def listing(self) -> dict[str, int]:
        """Size of each file below the folder, by its path in the folder, sorted.

        A linked folder is an entry like a file: what it holds is not ours.
        """
        sizes = {}
        for parent, inner, names in os.walk(self):
            links = (name for name in inner if os.path.islink(os.path.join(parent, name)))
            for entry in (*names, *links):
                path = os.path.join(parent, entry)
                sizes[os.path.relpath(path, self)] = os.lstat(path).st_size
        return dict(sorted(sizes.items()))

    def remove(self, names: Iterable[str]) -> None:
        """Removes files below the folder, and the folders in it that are empty then."""
        for name in names:
            Path(self / name).unlink(missing_ok=True)
        for parent, _, _ in os.walk(self, topdown=False):
            if parent != self and not os.listdir(parent):
                os.rmdir(parent)


class RemotePlace(Place):
    """A file or a folder in a store."""

    __slots__ = ()
    is_remote = True

    def __truediv__(self, name: str) -> Place:
        return Place(f"{self.rstrip('/') or '/'}/{name}")

    def absolute(self) -> Place:
        return self

    def files(self) -> list[Place]:
        return list(map(Place, _stores().find(self)))

    def is_used_folder(self) -> bool:
        return any(not name.startswith(".") for name in self.listing())

    def exists(self) -> bool:
        return bool(_stores().exists(self))

    def size(self) -> int:
        return int(_stores().size(self))

    def checksum(self) -> str:
        return str(_stores().checksum(self))

    def open_read(self) -> IO[bytes]:
        stream: IO[bytes] = _stores().open_read(self)
        return stream

    @contextmanager
    def atomic_write(self) -> Iterator[IO[bytes]]:
        work_folder = WORK_FOLDER.get()
        with tempfile.NamedTemporaryFile() as file:
            yield file
            file.flush()
            if work_folder is not None and not (work_folder / OPEN).exists():
                raise FileNotFoundError(errno.ENOENT, "the run has ended", work_folder)
            _stores().put(file.name, self)

    @contextmanager
    def locked(self, is_shared: bool = False) -> Iterator[None]:
        from nerbert.storage import remote_lock  # loads fsspec; the disk needs none

        with remote_lock.locked(self / _LOCK):
            yield

    def listing(self) -> dict[str, int]:
        sizes: dict[str, int] = _stores().listing(self)
        return sizes

    def remove(self, names: Iterable[str]) -> None:
        _stores().remove([self / name for name in names])


def _stores() -> Any:
    """The module of stores."""
    from nerbert.storage import stores  # loads fsspec; the disk needs none

    return stores


@contextmanager
def local_copies(places: Sequence[Place]) -> Iterator[list[Place]]:
    """Local files: remote ones are copied, and the copies are deleted after the block."""
    with tempfile.TemporaryDirectory() as folder:
        local = []
        for number, place in enumerate(places):
            local.append(place)
            if place.is_remote:
                local[-1] = Place(folder) / f"{number}-{place.name}"
                with place.open_read() as source, open(local[-1], "wb") as copy:
                    shutil.copyfileobj(source, copy, _COPIED_BYTES)
        yield local
