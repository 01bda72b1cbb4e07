"""Reads the bytes of dump files: plain, or compressed streams, of which some may be damaged."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from nerbert.storage import files

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
