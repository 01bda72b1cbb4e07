"""Sentences of evaluation sets that were found in a dump, for the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nerbert.text.overlap import EQUAL, SHARED


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Names of files, with as many of their folders as are needed to distinguish them.

    >>> distinct_names(["/data/ai/test.txt", "/data/music/test.txt"])
    ['ai/test.txt', 'music/test.txt']
    """
    pieces = [path.replace("\\", "/").split("/") for path in paths]
    for length in range(1, max(map(len, pieces), default=1) + 1):
        names = ["/".join(piece[-length:]) for piece in pieces]
        if len(set(names)) == len(set(paths)):
            return names
    return list(paths)


def contamination(hits: Sequence[Sequence[Any]], exclude: Sequence[str]) -> dict[str, Any]:
    """Numbers of hits by file and kind, and a list of all hits."""
    names = distinct_names(exclude)
    by_file = {name: {EQUAL: 0, SHARED: 0} for name in names}
    for _, kind, file, _ in hits:
        by_file[names[file]][kind] += 1
    listed = [
        {"id": example, "kind": kind, "file": names[file], "sentence": sentence}
        for example, kind, file, sentence in hits
    ]
    return {"files": by_file, "hits": listed}
