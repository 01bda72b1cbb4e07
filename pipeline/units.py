"""Cutting dump files into units of work, and reading the pages of one unit.

A unit is a byte range of one file; it owns the pages whose start tag lies in it. A multistream bz2
file is cut at stream boundaries, plain XML anywhere; other files are one unit each.
"""

from __future__ import annotations

import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline import files
from pipeline.bz2_streams import BLOCK, CorruptStreamError, pieces, stream_starts
from pipeline.dump import BadPage, Page, parse_page, split_pages
from pipeline.errors import UserError
from pipeline.site import Site, declared_language

MIN_UNIT = {"bz2": 256 << 10, "xml": 1 << 20}
MAX_UNIT = {"bz2": 8 << 20, "xml": 48 << 20}
UNITS_WANTED = 64
"""Units a dump is cut into unless they would be smaller or larger than the bounds above (bytes)."""


@dataclass(frozen=True)
class InputFile:
    """A dump file: where it is, how it is compressed, what it is, and the wiki it comes from."""

    path: str
    compression: str
    size: int
    digest: str
    site: Site

    @property
    def identity(self) -> tuple[int, str, str]:
        """What tells this file from another one, wherever it lies."""
        return self.size, self.digest, self.site.language


@dataclass(frozen=True)
class Unit:
    """Bytes [start, end) of one file; `index` counts the units of a run."""

    index: int
    path: str
    compression: str
    start: int
    end: int
    site: Site

    @property
    def part(self) -> str:
        """Name of the part file that this unit leaves."""
        return f"part-{self.index:05d}.parquet"


@dataclass(frozen=True)
class Damage:
    """Bytes of a file that could not be read: reported, never silently skipped."""

    reason: str
    path: str
    position: int
    detail: str


def inspect(path: str, language: str | None = None) -> InputFile:
    """What `path` is, from its first bytes.

    Args:
        path: of a dump file.
        language: code that takes precedence over what the dump says.

    Raises:
        UserError: the file cannot be read or is no MediaWiki export.
    """
    try:
        size, digest = files.identity(path)
        with files.open_read(path) as file:
            start = file.read(8)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror or error}); check --dump"
        ) from None
    compression = _compression(start)
    try:
        head = next(_pieces(path, compression, 0, size))[0] or b""
    except (OSError, EOFError, StopIteration, zlib.error, lzma.LZMAError):
        head = b""
    if b"<mediawiki" not in head[:65536] and b"<page>" not in head[:65536]:
        raise UserError(
            f"{path}: no MediaWiki export (its beginning holds no <mediawiki> element); "
            "give a pages-articles XML file, plain or as .bz2, .gz or .xz"
        )
    return InputFile(path, compression, size, digest, _site(head, path, language))


def _compression(start: bytes) -> str:
    magic = {b"BZh": "bz2", b"\x1f\x8b": "gz", b"\xfd7zXZ": "xz"}
    return next((name for prefix, name in magic.items() if start.startswith(prefix)), "xml")


def _site(head: bytes, path: str, language: str | None) -> Site:
    """From siteinfo; without it from --language, `xml:lang` or the file's name, else English."""
    if b"<siteinfo" in head:
        try:
            return Site.from_siteinfo(head, language)
        except ValueError as error:
            raise UserError(
                f"{path}: {error}; repair the file's head, or remove siteinfo and give --language"
            ) from None
    named = re.match(r"([a-z_]{2,12})wiki[-.]", files.name(path))
    code = language or declared_language(head) or (named[1] if named else "en")
    return Site.for_language(code.replace("_", "-"))


def cut(inputs: list[InputFile]) -> list[Unit]:
    """Units of all files, in order. A function of the files alone, not of the machine."""
    units: list[Unit] = []
    total = {c: sum(i.size for i in inputs if i.compression == c) for c in ("bz2", "xml")}
    for source in inputs:
        starts = [0]
        if source.compression in total:
            wanted = total[source.compression] // UNITS_WANTED
            kind = source.compression
            size = min(max(wanted, MIN_UNIT[kind]), MAX_UNIT[kind])
            starts = _bz2_cuts(source, size) if kind == "bz2" else [*range(0, source.size, size)]
        for start, end in zip(starts, [*starts[1:], source.size], strict=True):
            units.append(Unit(len(units), source.path, source.compression, start, end, source.site))
    return units


def _bz2_cuts(source: InputFile, size: int) -> list[int]:
    """Stream starts at least `size` bytes apart, the first of them 0."""
    cuts = [0]
    for position in stream_starts(source.path):
        if position - cuts[-1] >= size:
            cuts.append(position)
    return cuts


def read_unit(unit: Unit) -> Iterator[Page | BadPage | Damage]:
    """The pages of a unit in order, and what of it could not be read."""
    damages: list[Damage] = []

    def intact() -> Iterator[tuple[bytes | None, bool]]:
        for piece, beyond, damage in _damaged_pieces(unit):
            if damage is not None:
                damages.append(damage)
            yield piece, beyond

    for page in split_pages(intact()):
        yield from damages
        damages.clear()
        yield parse_page(page, unit.site) if isinstance(page, bytes) else page
    yield from damages


def _damaged_pieces(unit: Unit) -> Iterator[tuple[bytes | None, bool, Damage | None]]:
    """Pieces of a unit; a damaged bz2 stream is left out, reading goes on with the next."""
    start = unit.start
    while True:
        position = start
        try:
            for piece, beyond in _pieces(unit.path, unit.compression, start, unit.end):
                yield piece, beyond, None
            return
        except EOFError as error:
            yield None, False, Damage("truncated", unit.path, files.size(unit.path), str(error))
            return
        except (OSError, zlib.error, lzma.LZMAError) as error:
            position = error.position if isinstance(error, CorruptStreamError) else start
            yield None, False, Damage("corrupt", unit.path, position, str(error))
        following = None
        if unit.compression == "bz2":
            following = next(stream_starts(unit.path, position + 1), None)
        if following is None or following >= unit.end:
            return
        start = following


def _pieces(path: str, compression: str, start: int, end: int) -> Iterator[tuple[bytes, bool]]:
    """Decompressed bytes from file position `start` on, and whether they lie beyond `end`.

    An empty piece comes before the first one beyond: most readers need none of those.

    Raises:
        EOFError: the file ends inside a compressed stream.
        OSError: the file, or a stream of it, cannot be read.
    """
    with files.open_read(path) as file:
        file.seek(start)
        if compression == "bz2":
            yield from pieces(file, start, end)
        elif compression == "xml":
            for position in range(start, end, BLOCK):
                yield file.read(min(BLOCK, end - position)), False
            yield b"", True
            while block := file.read(BLOCK):
                yield block, True
        else:
            opener = gzip.open if compression == "gz" else lzma.open
            with opener(file) as stream:
                while block := stream.read1(BLOCK):
                    yield block, False
