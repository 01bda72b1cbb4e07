"""Finds dump files, and reads their bytes: plain, or streams of which some may be damaged."""

from __future__ import annotations

import bz2
import gzip
import logging
import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

from nerbert.errors import UserError, check_text
from nerbert.storage.places import Place

BLOCK = 1 << 20
_LEAST_FED, _MOST_FED = 1 << 12, 1 << 16
"""Bytes that a decompressor gets at a time; where damage begins is known to within as many."""
_STREAM = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
"""Header of a bz2 stream and of its first block, or of its end if the stream is empty."""


class Piece(NamedTuple):
    """Decompressed bytes.

    Attributes:
        data: the bytes; None stands for bytes that are lost.
        beyond: whether their stream begins beyond the end of what was asked for.
        stream: position in the file where their stream begins.
    """

    data: bytes | None
    beyond: bool
    stream: int


class CorruptStreamError(OSError):
    """A compressed stream cannot be read.

    Attributes:
        stream: position in the file where the stream begins.
        position: first byte of the file that is lost.
    """

    def __init__(self, stream: int, position: int, reason: object) -> None:
        super().__init__(f"compressed stream at byte {stream}: {reason}")
        self.stream = stream
        self.position = position


def stream_starts(path: Place, start: int = 0) -> Iterator[int]:
    """Finds the positions of the headers of bz2 streams, from byte `start`."""
    with path.open_read() as file:
        file.seek(start)
        offset, tail = start, b""
        while block := file.read(16 * BLOCK):
            data = tail + block
            for match in _STREAM.finditer(data):
                yield offset - len(tail) + match.start()
            offset += len(block)
            # A header may lie across two blocks; it has 10 bytes.
            tail = data[-9:]


def read_pieces(file: IO[bytes], compression: str, start: int, end: int) -> Iterator[Piece]:
    """Reads decompressed bytes from position `start` of a dump file.

    An empty piece comes before the first piece beyond `end`; most readers stop there.

    Raises:
        EOFError: the file ends inside a compressed stream.
        OSError: the file, or a stream of it, cannot be read; what is before it has been yielded.
    """
    file.seek(start)
    if compression == "bz2":
        yield from _bz2_pieces(file, start, end)
    elif compression == "xml":
        for position in range(start, end, BLOCK):
            yield Piece(file.read(min(BLOCK, end - position)), False, 0)
        yield Piece(b"", True, 0)
        while block := file.read(BLOCK):
            yield Piece(block, True, 0)
    else:
        opener = gzip.open if compression == "gz" else lzma.open
        with opener(file) as stream:
            try:
                while block := stream.read1(BLOCK):
                    yield Piece(block, False, 0)
            except (OSError, zlib.error, lzma.LZMAError) as error:
                raise CorruptStreamError(0, file.tell(), error) from None


def _bz2_pieces(file: IO[bytes], start: int, end: int) -> Iterator[Piece]:
    """Reads bz2 streams from position `start`, where the file is."""
    data, position = b"", start  # `data` begins at file position `position`
    at_once = min(max((end - start) >> 8, _LEAST_FED), _MOST_FED)
    beyond = False
    while True:
        stream_start = position
        if stream_start >= end and not beyond:
            beyond = True
            yield Piece(b"", True, stream_start)
        if not (data := data or file.read(at_once)):
            return
        decompressor: Any = bz2.BZ2Decompressor()
        fed = lost = position  # a damaged block is lost from its beginning
        while not decompressor.eof:
            if decompressor.needs_input:
                if not data and not (data := file.read(at_once)):
                    raise EOFError(f"the file ends inside the bz2 stream at byte {stream_start}")
                fed, position = position, position + len(data)
            try:
                # The bound keeps memory flat: a small block may hold a huge text.
                piece = decompressor.decompress(data, BLOCK)
            except OSError as error:
                raise CorruptStreamError(stream_start, lost, error) from None
            data = b""
            if piece:
                lost = fed
                yield Piece(piece, beyond, stream_start)
        data = decompressor.unused_data
        position -= len(data)


_INDEX = re.compile(r"index\d*\.txt")
_DUMP = re.compile(r"\.xml(?!\.(md5|sha1))(?![a-z])")
"""`x.xml`, `x.xml.bz2`, `x.xml-p1p41242.bz2`."""
_WIKIMEDIAS = re.compile(
    r"(?P<dump>.+wiki.*-(?:\d{8}|latest))"
    r"-pages-(?P<kind>articles|meta-current|meta-history)(?P<multistream>-multistream)?"
    r"(?P<part>\d*)\.xml(?P<pages>-p\d+p\d+)?.*"
)
_LOGGER = logging.getLogger("nerbert")


def find_dumps(patterns: Sequence[Place]) -> list[Place]:
    """Finds the dump files that paths, globs and folders name; numbers in names are compared.

    Index files are left out, and in a folder all files that are no XML.

    Raises:
        UserError: a path, glob or folder names no file, or two files have the same pages.
    """
    unique: dict[Place, None] = {}
    for pattern in patterns:
        try:
            matches = pattern.files()
            for path in matches:
                check_text(path)
        except OSError as error:
            raise UserError(f"--dump {pattern}: cannot be read ({error}); check the path") from None
        names = [path for path in matches if not _INDEX.search(path.name)]
        if names != [pattern] and not any(sign in pattern.name for sign in "*?["):
            names = _in_folder(pattern, names)
        if not names:
            raise UserError(f"--dump {pattern}: no such file; give a path, a glob or a directory")
        unique.update(dict.fromkeys(names))
    dumps = sorted(unique, key=_natural)
    _check_once(dumps)
    return dumps


def _in_folder(folder: Place, paths: Sequence[Place]) -> list[Place]:
    dumps = [path for path in paths if _DUMP.search(path.name)]
    if left_out := sorted(set(paths) - set(dumps)):
        _LOGGER.info(
            "--dump %s: %d files that are no XML are left out, such as %s",
            folder,
            len(left_out),
            left_out[0].name,
        )
    return dumps


def _check_once(paths: Sequence[Place]) -> None:
    """Checks that no file has the pages of another one, as far as the names say.

    Raises:
        UserError: a whole dump is beside its parts, two kinds of a dump are given, or a file is
            given twice, once compressed.
    """
    kinds: dict[str, tuple[object, str]] = {}
    unpacked: dict[str, str] = {}
    for path in paths:
        match = _WIKIMEDIAS.fullmatch(path.name)
        if match is None:
            continue
        is_whole = not (match["part"] or match["pages"])
        kind = (match["kind"], match["multistream"], is_whole)
        first, first_path = kinds.setdefault(match["dump"], (kind, path))
        if first == kind:
            first_path = unpacked.setdefault(re.sub(r"\.(bz2|gz|xz)$", "", match[0]), path)
            if first_path == path:
                continue
        raise UserError(f"--dump {path}: has the pages of {first_path}, too; give one of the two")


def _natural(name: str) -> list[tuple[int, int, str]]:
    pieces = re.split(r"(\d+)", name)
    return [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in pieces]
