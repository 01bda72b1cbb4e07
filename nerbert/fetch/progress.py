"""Progress of downloads: one bar of bytes on a terminal, a line for each file otherwise."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

from tqdm.auto import tqdm

from nerbert.files import name

_LOGGER = logging.getLogger("nerbert")


class Progress:
    """Counts the bytes of some files. Several threads may use it."""

    def __init__(self, size: int, n_files: int) -> None:
        """Begins to count.

        Args:
            size: bytes of all files whose size is known.
            n_files: number of files.
        """
        self._lock = threading.Lock()
        self._done, self._files = 0, n_files
        self._sizes: dict[str, int] = {}
        shown = "ipykernel" in sys.modules or sys.stderr.isatty()
        self._bar: Any = tqdm(
            total=size or None, unit="B", unit_scale=True, desc="fetch", disable=not shown
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def add(self, path: str, size: int) -> None:
        """Counts bytes of a file."""
        with self._lock:
            self._sizes[path] = self._sizes.get(path, 0) + size
            self._bar.update(size)

    def done(self, path: str, check: str) -> None:
        """Counts a whole file, and says how it was checked."""
        with self._lock:
            self._done += 1
            self._bar.clear()
            _LOGGER.info(
                "%s: %s bytes, %s (%d of %d files)",
                *(name(path), f"{self._sizes.get(path, 0):,}", check, self._done, self._files),
            )
