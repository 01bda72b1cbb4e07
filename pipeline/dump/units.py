"""Cuts dump files into units of work, and reads the pages of a unit.

A unit is a byte range of one file. It owns the pages whose start tag begins in this range. A
multistream bz2 file is cut at the boundaries of its streams, and plain XML anywhere. Other files
are one unit each.
"""

from __future__ import annotations

import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO

from nerbert.errors import UserError
from nerbert.storage.identity import Identities
from nerbert.storage.places import Place
from pipeline.dump.pages import BadPage, Page, parse_page, split_pages
from pipeline.dump.site import (
    Site,
    check_language,
    database,
    declared_language,
    is_other_project,
    is_stub,
)
from pipeline.dump.streams import CorruptStreamError, Piece, read_pieces, stream_starts

_END, _ENDING = b"</mediawiki>", 4096
MIN_UNIT = {"bz2": 256 << 10, "xml": 1 << 20}
MAX_UNIT = {"bz2": 8 << 20, "xml": 48 << 20}
UNITS_WANTED = 64
"""Number of units of a dump, if their sizes are then within the bounds above (bytes)."""


@dataclass(frozen=True)
class InputFile:
    """A dump file: its path, compression, size, digest and wiki.

    `database` is the name of the wiki's database, such as enwiki; None if it is not known.
    """

    path: Place
    compression: str
    size: int
    digest: str
    site: Site
    database: str | None = None

    @property
    def identity(self) -> tuple[int, str, str]:
        """Facts that distinguish this file from others, wherever it is."""
        return self.size, self.digest, self.site.language


@dataclass(frozen=True)
class Unit:
    """Bytes [start, end) of one file. `index` is the number of the unit in the run."""

    index: int
    path: Place
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
    """Bytes of a file that could not be read. They are reported, never silently skipped.

    Attributes:
        reason: "corrupt", or "truncated" for a file without its end.
        path: path of the file.
        position: first byte in the file that is lost.
        lost: number of bytes that are lost; 0 for a truncated file, which may lack any number.
        detail: what the decompressor says.
        pages_before: number of pages of the damaged stream that were read.
    """

    reason: str
    path: Place
    position: int
    lost: int
    detail: str
    pages_before: int = 0


def inspect(
    path: Place, language: str | None = None, identities: Identities | None = None
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
        with path.open_read() as file:
            compression = _compression(file.read(8))
            head = _head(file, compression, size)
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror or error}); check --dump"
        ) from None
    if b"<mediawiki" not in head[:65536] and b"<page" not in head[:65536]:
        raise UserError(
            f"{path}: no MediaWiki export (its beginning holds no <mediawiki> element); "
            "give a pages-articles XML file, plain or as .bz2, .gz or .xz"
        )
    name = path.name
    wiki = database(head, name)
    if is_other_project(wiki):
        raise UserError(f"{path}: a dump of {wiki}, which is no Wikipedia; give one of a Wikipedia")
    if is_stub(head, name):
        raise UserError(f"{path}: a dump of stubs, without text; give pages-articles")
    if language is not None:
        try:
            check_language(language, wiki, head, name)
        except ValueError as error:
            raise UserError(f"--language {language}: {path}: {error}") from None
    site = _site(head, path, language)
    return InputFile(path, compression, size, digest, site, wiki)


def _head(file: IO[bytes], compression: str, size: int) -> bytes:
    """The first bytes of a dump; none if they cannot be read."""
    try:
        return next(read_pieces(file, compression, 0, size)).data or b""
    except (OSError, EOFError, StopIteration, zlib.error, lzma.LZMAError):
        return b""


def _compression(start: bytes) -> str:
    magic = {b"BZh": "bz2", b"\x1f\x8b": "gz", b"\xfd7zXZ": "xz"}
    return next((name for prefix, name in magic.items() if start.startswith(prefix)), "xml")


def _site(head: bytes, path: Place, language: str | None) -> Site:
    """The wiki by siteinfo, else by --language, `xml:lang` or the file's name, else English."""
    if b"<siteinfo" in head:
        try:
            return Site.from_siteinfo(head, language)
        except ValueError as error:
            raise UserError(
                f"{path}: {error}; repair the file's head, or remove siteinfo and give --language"
            ) from None
    named = re.match(r"([a-z_]{2,12})wiki[-.]", path.name)
    code = language or declared_language(head) or (named[1] if named else "en")
    return Site.for_language(code.replace("_", "-"))


def cut(inputs: list[InputFile]) -> list[Unit]:
    """Cuts all files into units, in order. The units depend on the files, not on the machine."""
    units: list[Unit] = []
    total = {c: sum(i.size for i in inputs if i.compression == c) for c in ("bz2", "xml")}
    for source in inputs:
        starts = [0]
        if source.compression in total:
            unit_bytes = total[source.compression] // UNITS_WANTED
            kind = source.compression
            size = min(max(unit_bytes, MIN_UNIT[kind]), MAX_UNIT[kind])
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


def read_unit(unit: Unit, streams: Counter[int] | None = None) -> Iterator[Page | BadPage | Damage]:
    """Reads the pages of a unit, in order; reports the bytes that could not be read.

    Args:
        unit: the unit.
        streams: counts the intact streams by their number of pages.
    """
    damages: list[Damage] = []
    last, is_cut = b"", False
    stream = unit.start
    in_stream = 0  # pages that were read while `stream` was

    def intact() -> Iterator[tuple[bytes | None, bool]]:
        nonlocal last, is_cut, stream, in_stream
        for piece, damage in _damaged_pieces(unit):
            if damage is not None:
                n_before = in_stream if stream == piece.stream else 0
                damages.append(replace(damage, pages_before=n_before))
                is_cut |= damage.reason == "truncated"
                stream, in_stream = -1, 0
            elif piece.stream != stream:
                if streams is not None and stream >= 0:
                    streams[in_stream] += 1
                stream, in_stream = piece.stream, 0
            last = (last + (piece.data or b""))[-_ENDING:]
            yield piece.data, piece.beyond

    for page in split_pages(intact()):
        yield from damages
        damages.clear()
        in_stream += 1
        yield parse_page(page, unit.site) if isinstance(page, bytes) else page
    yield from damages
    if not is_cut and _lacks_end(unit, last):
        detail = "the file has no </mediawiki>; pages after the last one may be missing"
        yield Damage("truncated", unit.path, unit.path.size(), 0, detail)


def _lacks_end(unit: Unit, last: bytes) -> bool:
    """Whether a unit is the last one of its file, and the file begins, but does not end.

    Args:
        unit: the unit.
        last: the last bytes of the unit.
    """
    size = unit.path.size()
    # The end tag may begin in the unit before.
    tail = last.strip()
    if unit.end < size or _END in last or _END.endswith(tail):
        return False
    with unit.path.open_read() as file:
        head = _head(file, unit.compression, size)
    return not head or b"<mediawiki" in head[:65536]


def _damaged_pieces(unit: Unit) -> Iterator[tuple[Piece, Damage | None]]:
    """Reads the pieces of a unit. A damaged bz2 stream is skipped and reported.

    Streams next to each other of which nothing can be read are one damage.
    """
    start = unit.start
    damage: tuple[Piece, Damage] | None = None  # it grows while the next stream is damaged, too
    # Only bz2 can be entered again behind the damage: gz and xz are one stream.
    headers = stream_starts(unit.path, start) if unit.compression == "bz2" else iter(())
    with unit.path.open_read() as file:
        while True:
            try:
                for piece in read_pieces(file, unit.compression, start, unit.end):
                    if damage is not None:
                        yield damage
                        damage = None
                    yield piece, None
                break
            except EOFError as error:
                if damage is not None:
                    yield damage
                size = unit.path.size()
                lost = Damage("truncated", unit.path, size, 0, str(error))
                damage = Piece(None, False, start), lost
                break
            except OSError as error:
                stream, position = start, start
                if isinstance(error, CorruptStreamError):
                    stream, position = error.stream, error.position
                if stream >= unit.end:  # the next unit reports it
                    yield Piece(None, True, stream), None
                    return
                following = next((header for header in headers if header > stream), unit.end)
                start = min(following, unit.end)
                if damage is None:
                    lost = Damage("corrupt", unit.path, position, 0, str(error))
                    damage = Piece(None, False, stream), lost
                size = max(0, start - damage[1].position)
                damage = damage[0], replace(damage[1], lost=size)
                if start == unit.end:
                    break
    if damage is not None:
        yield damage
