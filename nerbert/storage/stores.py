"""Files that are not on the local disk: `s3://`, `gs://`, `hdfs://`, `https://`, by fsspec.

Each store needs a package of its own, which an extra installs. Credentials and addresses are those
of these packages: environment variables, their files, or `FSSPEC_S3_ENDPOINT_URL` and the like.
"""

from __future__ import annotations

import io
import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import fsspec

from nerbert.errors import RunError, UserError, install

EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcp", "gcs": "gcp", "http": "http", "https": "http"}
"""Protocol -> extra that installs what it needs."""

_BLOCK = 1 << 20
_TRIES, _PAUSE_S = 4, 0.5
_KNOWN = "gs://, s3://, hdfs:// and https://"
_OBJECT_STORES = {"gs", "gcs", "s3", "s3a", "abfs", "az", "memory"}
"""Protocols whose files appear when they are whole, never in part."""

_CLIENTS = {"aiobotocore", "aiohttp", "botocore", "gcsfs", "google"}
"""Packages whose errors tell what is wrong with an address or with credentials."""

for _name in ("aiobotocore", "botocore"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # they tell where credentials come from

_CHECKSUMS = ("md5Hash", "md5", "ETag", "etag", "crc32c", "checksum", "mtime", "LastModified")
"""Facts by which stores tell versions of a file apart, the best first."""


@contextmanager
def _store(path: str) -> Iterator[Any]:
    """The file system of a path. Errors of its package become one line.

    Raises:
        UserError: there is no such store, its package is missing, or it refuses to work.
        OSError: the file cannot be read or written.
    """
    protocol = path.partition("://")[0]
    try:
        # Without the cache of listings: other processes write, too.
        system = fsspec.filesystem(protocol, use_listings_cache=False)
    except ImportError as error:
        extra = EXTRAS.get(protocol)
        remedy = install(extra) if extra else "install what it names"
        raise UserError(f"{path}: {error}; {remedy}") from None
    except ValueError:
        raise UserError(f"{path}: {protocol}:// is not known; use a path, or {_KNOWN}") from None
    except OSError as error:  # hdfs without its native library
        raise UserError(f"{path}: {_line(error)}; install it, or use another store") from None
    try:
        yield system
    except (OSError, EOFError, UserError):
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _CLIENTS:
            raise
        raise UserError(
            f"{path}: {_line(error)}; check its address and your credentials"
        ) from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def find(pattern: str) -> list[str]:
    """Sorted paths of the files that a path, a glob or a folder names; possibly none."""
    with _store(pattern) as system:
        if any(sign in pattern for sign in "*?["):
            return _named(system, [p for p in system.glob(pattern) if system.isfile(p)])
        if not pattern.endswith("/") and system.isfile(pattern):
            return [pattern]
        try:
            entries = system.ls(pattern.rstrip("/") + "/", detail=True)
        except FileNotFoundError:
            return []
        names = [entry["name"] for entry in entries if entry["type"] == "file"]
        return [path for path in _named(system, names) if path.rpartition("/")[2][:1] not in "._"]


def _named(system: Any, names: Sequence[str]) -> list[str]:
    return sorted(str(system.unstrip_protocol(name)) for name in names)


def listing(folder: str) -> dict[str, int]:
    """Size of each file below a folder, by its path in the folder, sorted."""
    with _store(folder) as system:
        start = str(system.unstrip_protocol(folder)).rstrip("/") + "/"
        try:
            entries = system.find(folder, detail=True)
        except FileNotFoundError:
            return {}
        paths = {str(system.unstrip_protocol(p)): int(info["size"]) for p, info in entries.items()}
    return dict(sorted((path.removeprefix(start), size) for path, size in paths.items()))


def exists(path: str) -> bool:
    """Whether the file exists."""
    with _store(path) as system:
        return bool(system.exists(path))


def size(path: str) -> int:
    """Length in bytes.

    Raises:
        OSError: the store does not say.
    """
    with _store(path) as system:
        n_bytes = system.size(path)
    if n_bytes is None:
        raise OSError(f"{path}: the server does not say how long it is; download it first")
    return int(n_bytes)


def checksum(path: str) -> str:
    """The checksum of a file that the store keeps, or else the time when the file was changed."""
    with _store(path) as system:
        facts = system.info(path)
    return next((f"{name} {facts[name]}" for name in _CHECKSUMS if facts.get(name)), "")


def open_read(path: str) -> IO[bytes]:
    """Opens a file for reading its bytes; it can seek."""
    with _store(path) as system:
        return io.BufferedReader(_Reader(path, system.open(path, "rb")), _BLOCK)


def read_whole(path: str) -> bytes:
    """The bytes of a small file by one request: another process may replace it at any moment."""
    with _store(path) as system:
        return bytes(system.cat_file(path))


class _Reader(io.RawIOBase):
    """Reads a file of a store. A lost connection is no damage of the file, and says so."""

    def __init__(self, path: str, file: Any) -> None:
        self._path, self._file = path, file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._file.tell())

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        position, pause = self.tell(), _PAUSE_S
        for tries_left in range(_TRIES, 0, -1):
            try:
                data = self._file.read(len(buffer))
                break
            except Exception as error:
                if tries_left == 1:
                    raise RunError(
                        f"{self._path}: {_line(error)}; check the connection, then run the same "
                        "command again"
                    ) from error
                time.sleep(pause)
                pause *= 2
                self._file.seek(position)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _writable(path: str) -> str:
    """The protocol of a path.

    Raises:
        UserError: its files can only be read.
    """
    protocol = path.partition("://")[0]
    if protocol in ("http", "https"):
        raise UserError(f"{path}: {protocol}:// can only be read; give another --output")
    return protocol


def put(local: str, path: str) -> None:
    """Copies a local file to a store. The complete file appears under `path`."""
    protocol = _writable(path)
    with _store(path) as system:
        if protocol in _OBJECT_STORES:
            system.put_file(local, path)
            return
        folder, _, name = path.rpartition("/")
        system.makedirs(folder, exist_ok=True)
        temporary = f"{folder}/.{name}.{secrets.token_hex(4)}.tmp"
        system.put_file(local, temporary)
        system.mv(temporary, path)


def put_bytes(path: str, data: bytes) -> None:
    """Writes a small file."""
    _writable(path)
    with _store(path) as system:
        system.pipe_file(path, data)


def remove(paths: Sequence[str]) -> None:
    """Removes files; those that do not exist are ignored."""
    for path in paths:
        with _store(path) as system:
            if system.exists(path):
                system.rm_file(path)
