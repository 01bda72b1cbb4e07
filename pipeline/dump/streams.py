"""Reads the bytes of dump files: plain, or compressed streams, of which some may be damaged."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any

from nerbert import files

BLOCK = 1 << 20
_STREAM = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
"""Header of a bz2 stream and of its first block, or of its end if the stream is empty."""


class CorruptStreamError(OSError):
    """A compressed stream cannot be read. `position` is the first byte that is lost."""

    def __init__(self, position: int, reason: object) -> None:
        super().__init__(f"compressed stream at byte {position}: {reason}")
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


def read_pieces(path: str, compression: str, start: int, end: int) -> Iterator[tuple[bytes, bool]]:
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
                try:
                    while block := stream.read1(BLOCK):
                        yield block, False
                except (OSError, zlib.error, lzma.LZMAError) as error:
                    raise CorruptStreamError(file.tell(), error) from None
