"""Cuts dump files into units of work, and reads the pages of a unit.

A unit is a byte range of one file. It owns the pages whose start tag begins in this range. A
multistream bz2 file is cut at the boundaries of its streams, and plain XML anywhere. Other files
are one unit each.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from nerbert import files
from nerbert.errors import UserError
from nerbert.identity import Identities
from pipeline.dump.pages import BadPage, Page, parse_page, split_pages
from pipeline.dump.site import Site, declared_language

BLOCK = 1 << 20
_STREAM = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
"""Header of a bz2 stream and of its first block, or of its end if the stream is empty."""


class CorruptStreamError(OSError):
    """A bz2 stream cannot be decompressed. `position` is its first byte in the file."""

    def __init__(self, position: int, reason: object) -> None:
        super().__init__(f"bz2 stream at byte {position}: {reason}")
        self.position = position


def stream_starts(path: str, start: int = 0) -> Iterator[int]:
    """Finds the positions of the headers of bz2 streams, from byte `start`."""
    with files.open_read(path) as file:
        file.seek(start)
        offset, tail = start, b""
        while block := file.read(16 * BLOCK):
            data = tail + block
            for match in _STREAM.finditer(data):
                yield offset - len(tail) + match.start()
            offset += len(block)
            # A header may lie across two blocks; it has 10 bytes.
            tail = data[-9:]


def pieces(file: IO[bytes], start: int, end: int) -> Iterator[tuple[bytes, bool]]:
    """Reads the streams from position `start`, with a flag: whether a stream begins beyond `end`.

    An empty piece comes before the first piece beyond `end`; most readers stop there.

    Raises:
        EOFError: the file ends inside a stream.
        CorruptStreamError: a stream is damaged; everything before it has been yielded.
    """
    file.seek(start)
    data, position = b"", start  # `data` begins at file position `position`
    beyond = False
    while True:
        stream_start = position
        if stream_start >= end and not beyond:
            beyond = True
            yield b"", True
        if not (data := data or file.read(BLOCK)):
            return
        decompressor: Any = bz2.BZ2Decompressor()
        while not decompressor.eof:
            if decompressor.needs_input:
                if not data and not (data := file.read(BLOCK)):
                    raise EOFError(f"the file ends inside the bz2 stream at byte {stream_start}")
                position += len(data)
            try:
                # The bound keeps memory flat: a small block may hold a huge text.
                piece = decompressor.decompress(data, BLOCK)
            except OSError as error:
                raise CorruptStreamError(stream_start, error) from None
            data = b""
            if piece:
                yield piece, beyond
        data = decompressor.unused_data
        position -= len(data)


MIN_UNIT = {"bz2": 256 << 10, "xml": 1 << 20}
MAX_UNIT = {"bz2": 8 << 20, "xml": 48 << 20}
UNITS_WANTED = 64
"""Number of units of a dump, if their sizes are then within the bounds above (bytes)."""


@dataclass(frozen=True)
class InputFile:
    """A dump file: its path, compression, size, digest and wiki."""

    path: str
    compression: str
    size: int
    digest: str
    site: Site

    @property
    def identity(self) -> tuple[int, str, str]:
        """Facts that distinguish this file from others, wherever it is."""
        return self.size, self.digest, self.site.language


@dataclass(frozen=True)
class Unit:
    """Bytes [start, end) of one file. `index` is the number of the unit in the run."""

    index: int
    path: str
    compression: str
    start: int
    end: int
    site: Site

    @property
    def part(self) -> str:
        """Name of the part file that is made from this unit."""
        return f"part-{self.index:05d}.parquet"


@dataclass(frozen=True)
class Damage:
    """Bytes of a file that could not be read. They are reported, never silently skipped."""

    reason: str
    path: str
    position: int
    detail: str


def inspect(
    path: str, language: str | None = None, identities: Identities | None = None
) -> InputFile:
    """Recognises a dump file by its first bytes.

    Args:
        path: path of the file.
        language: code of the language, which overrides the one in the dump.
        identities: finds the digest of the file.

    Raises:
        UserError: the file cannot be read, or is not a MediaWiki export.
    """
    try:
        size, digest = (identities or Identities()).of(path)
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
    """The wiki by siteinfo, else by --language, `xml:lang` or the file's name, else English."""
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
    """Cuts all files into units, in order. The units depend on the files, not on the machine."""
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
    """Starts of streams that are at least `size` bytes apart; the first is 0."""
    cuts = [0]
    for position in stream_starts(source.path):
        if position - cuts[-1] >= size:
            cuts.append(position)
    return cuts


def read_unit(unit: Unit) -> Iterator[Page | BadPage | Damage]:
    """Reads the pages of a unit, in order; reports the bytes that could not be read."""
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
    """Reads the pieces of a unit. A damaged bz2 stream is skipped and reported."""
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
        # Only bz2 can be entered again behind the damage: gz and xz are one stream.
        following = None
        if unit.compression == "bz2":
            following = next(stream_starts(unit.path, position + 1), None)
        if following is None or following >= unit.end:
            return
        start = following


def _pieces(path: str, compression: str, start: int, end: int) -> Iterator[tuple[bytes, bool]]:
    """Reads decompressed bytes from position `start`, with a flag: whether they lie beyond `end`.

    An empty piece comes before the first piece beyond `end`; most readers stop there.

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
