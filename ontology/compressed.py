"""Opening files that may be compressed, by their ending."""

from __future__ import annotations

import bz2
import gzip
import lzma
from typing import IO


def open_bytes(path: str) -> IO[bytes]:
    """The bytes of a file, decompressed when its name ends in .bz2, .gz or .xz."""
    if path.endswith(".bz2"):
        return bz2.open(path, "rb")
    if path.endswith(".gz"):
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return lzma.open(path, "rb") if path.endswith(".xz") else open(path, "rb")
