"""The identity of input files: size, and a digest of the content.

A digest of 24 GB takes ten seconds, so those of large files are kept beside their size, time of
change and inode, and are computed again if one of these changed.
"""

from __future__ import annotations

import os
from typing import Any

from nerbert.storage.places import Place

_RECORD = ".digests.json"
_LARGE = 64 << 20


class Identities:
    """Finds the identities of files."""

    def __init__(self, output: Place | None = None) -> None:
        """Reads the digests that an earlier run kept.

        Args:
            output: folder of outputs, which digests are kept in; None keeps none.
        """
        self._path = output / _RECORD if output and not output.is_remote else None
        digests = self._path.read_json_or_none() if self._path else None
        self._kept: dict[str, list[Any]] = digests if isinstance(digests, dict) else {}
        self._changed = False
        self._seen: dict[str, list[int]] = {}  # path -> facts when it was identified

    def of(self, path: Place) -> tuple[int, str]:
        """Size of a file in bytes, and a digest of its content: the same wherever the file is.

        Of a remote file the checksum of its store stands for the content.
        """
        if path.is_remote:
            return path.size(), path.checksum()
        facts = _facts(path)
        size = facts[0]
        self._seen.setdefault(path, facts)
        name = os.path.abspath(path)
        if self._kept.get(name, [])[:3] == facts:
            return size, str(self._kept[name][3])
        digest = path.checksum()
        if size >= _LARGE and self._path:
            self._kept[name] = [*facts, digest]
            self._changed = True
        return size, digest

    def changed(self) -> list[str]:
        """Local files that have changed since they were identified."""
        return [
            path
            for path, facts in self._seen.items()
            if not os.path.exists(path) or _facts(path) != facts
        ]

    def save(self) -> None:
        """Keeps the digests of large files for the next run."""
        if self._changed and self._path:
            self._path.write_json(self._kept)
            self._changed = False


def _facts(path: str) -> list[int]:
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns, status.st_ino]
