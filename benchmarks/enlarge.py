"""A larger dump from a real slice: its pages several times over.

Ids, titles and the last words of sentences are altered, so that no page and no sentence of a copy
is one of the slice.
"""

from __future__ import annotations

import bz2
import re
from pathlib import Path

_PAGE = re.compile(rb"<page>.*?</page>\s*", re.DOTALL)
_ID = re.compile(rb"(<id>)(\d+)(</id>)", re.DOTALL)
_TITLE = re.compile(rb"(<title>)([^<]*)(</title>)")
_SENTENCE_END = re.compile(rb"(?<=[a-z\])])\.(?=\s|<)")
_PAGES_PER_STREAM = 100


def enlarge(source: Path, target: Path, copies: int) -> int:
    """Writes a multistream bz2 dump of `copies` times the pages of `source`; returns XML bytes."""
    data = bz2.decompress(source.read_bytes())
    first = data.index(b"<page>")
    pages = _PAGE.findall(data)
    written = 0
    with open(target, "wb") as file:

        def stream(text: bytes) -> None:
            nonlocal written
            file.write(bz2.compress(text))
            written += len(text)

        stream(data[:first])
        for copy in range(copies):
            for start in range(0, len(pages), _PAGES_PER_STREAM):
                group = pages[start : start + _PAGES_PER_STREAM]
                stream(b"".join(_altered(page, copy) for page in group))
        stream(b"</mediawiki>\n")
    return written


def _altered(page: bytes, copy: int) -> bytes:
    if copy == 0:
        return page
    page = _ID.sub(lambda m: b"%s%d%s" % (m[1], int(m[2]) + copy * 10**9, m[3]), page, count=1)
    page = _SENTENCE_END.sub(b" x%d." % copy, page)
    return _TITLE.sub(lambda m: b"%s%s (copy %d)%s" % (m[1], m[2], copy, m[3]), page)
