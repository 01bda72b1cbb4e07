"""Files by path, local or remote (`gs://`): one way to find, read, write and replace them."""

from __future__ import annotations

import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from pipeline.errors import UserError

_END_BYTES = 1 << 20
_LOCK = ".lock"


def _remote() -> Any:
    """Beam's file systems, loaded only where a path needs them."""
    from apache_beam.io.filesystems import FileSystems

    return FileSystems


def is_remote(path: str) -> bool:
    """Whether `path` names a file outside the local disk, such as `gs://bucket/name`."""
    return "://" in path


def join(folder: str, *names: str) -> str:
    """`folder/name/...`, local or remote."""
    return "/".join((folder.rstrip("/") or "/", *names)) if is_remote(folder) else os.path.join(
        folder, *names
    )  # fmt: skip


def absolute(path: str) -> str:
    """The same file from whatever folder a process works in."""
    return path if is_remote(path) else os.path.abspath(path)


def name(path: str) -> str:
    """Last piece of a path, local or remote."""
    return path.replace("\\", "/").rpartition("/")[2]


def identity(path: str) -> tuple[int, str]:
    """What tells a file from another one wherever it lies: size, and a digest of its two ends."""
    length = size(path)
    with open_read(path) as file:
        head = file.read(_END_BYTES)
        file.seek(max(0, length - _END_BYTES))
        return length, blake2b(head + file.read(_END_BYTES), digest_size=16).hexdigest()


def find(pattern: str) -> list[str]:
    """Paths of the files that a path, glob or directory names, sorted; empty for none."""
    if is_remote(pattern):
        tree = pattern.rstrip("/") + "/*"
        matches = _remote().match([pattern])[0].metadata_list
        return sorted(m.path for m in matches or _remote().match([tree])[0].metadata_list)
    path = Path(pattern)
    if path.is_dir():
        return sorted(str(p) for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
    return (
        [pattern] if path.is_file() else sorted(p for p in glob.glob(pattern) if Path(p).is_file())
    )


def is_used_folder(path: str) -> bool:
    """Whether there is something under `path`: a file, or a local folder with more than a lock."""
    if is_remote(path):
        return bool(_remote().match([path.rstrip("/") + "/*"])[0].metadata_list)
    return os.path.isfile(path) or (os.path.isdir(path) and bool(set(os.listdir(path)) - {_LOCK}))


def exists(path: str) -> bool:
    """Whether there is such a file."""
    return _remote().exists(path) if is_remote(path) else os.path.exists(path)


def size(path: str) -> int:
    """Length in bytes."""
    if is_remote(path):
        return int(_remote().match([path])[0].metadata_list[0].size_in_bytes)
    return os.path.getsize(path)


def open_read(path: str) -> IO[bytes]:
    """The file's bytes as they are, seekable."""
    if is_remote(path):
        stream: IO[bytes] = _remote().open(path, compression_type="uncompressed")
        return stream
    return open(path, "rb")


@contextmanager
def local_copies(paths: Sequence[str]) -> Iterator[list[str]]:
    """Local paths of files: their own, or those of copies that last as long as the block."""
    with tempfile.TemporaryDirectory() as folder:
        local = []
        for number, path in enumerate(paths):
            local.append(path)
            if is_remote(path):
                local[-1] = os.path.join(folder, f"{number}-{name(path)}")
                with open_read(path) as source, open(local[-1], "wb") as copy:
                    shutil.copyfileobj(source, copy, _END_BYTES)
        yield local


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Keeps a local folder for this run until the block, or the process, ends.

    Raises:
        UserError: another run has it. A remote folder, and Windows, have no such lock.
    """
    if is_remote(folder) or fcntl is None:
        yield
        return
    os.makedirs(folder, exist_ok=True)
    with open(join(folder, _LOCK), "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder}: another run is writing here; wait for its end, or choose another "
                "--output"
            ) from None
        yield


@contextmanager
def atomic_write(path: str) -> Iterator[IO[bytes]]:
    """A file to write that appears under `path` whole when the block ends, or not at all."""
    if is_remote(path):  # an object appears when it is closed, never in part
        stream = _remote().create(path, compression_type="uncompressed")
        yield stream
        stream.close()
        return
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_bytes(path: str, data: bytes) -> None:
    """Writes a whole file, atomically."""
    with atomic_write(path) as file:
        file.write(data)


def write_json(path: str, value: Any) -> None:
    """Writes `value` as indented JSON in a fixed order of its own, atomically."""
    write_bytes(path, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))


def read_bytes(path: str) -> bytes:
    """The whole file."""
    with open_read(path) as file:
        return file.read()


def read_json(path: str) -> Any:
    """The value that `write_json` wrote."""
    return json.loads(read_bytes(path))


def remove_unfinished(folder: str) -> None:
    """Removes what `atomic_write` leaves below a local folder when its process is killed."""
    if not is_remote(folder):
        for path in Path(folder).rglob(".*.tmp"):
            path.unlink(missing_ok=True)


def remove_tree(folder: str) -> None:
    """Removes a folder with all it holds, if it is there."""
    if not is_remote(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return
    found = _remote().match([folder.rstrip("/") + "/**"])[0].metadata_list
    if found:
        _remote().delete([m.path for m in found])
