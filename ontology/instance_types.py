"""Reads DBpedia's instance types line by line, from N-Triples or Turtle files."""

from __future__ import annotations

import lzma
import re
import zlib
from collections.abc import Iterator
from urllib.parse import unquote

from nerbert.files import open_decompressed
from ontology.classes import NAMESPACE
from ontology.titles import normal_title, resource_title

_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_TRIPLE = re.compile(rf"\s*<([^<>]*)>\s*<{re.escape(_TYPE)}>\s*<([^<>]*)>")
_PLAIN = re.compile(
    r"<http://dbpedia\.org/resource/([^<>\\]*)>"
    rf" <{re.escape(_TYPE)}> <{re.escape(NAMESPACE)}([^<>\\]*)>"
)
"""The form of nearly all lines; it is matched first because it is faster."""
_BLOCK = 1 << 20
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def read_instance_types(path: str) -> Iterator[tuple[str, str] | None]:
    """Reads the statements `<resource> rdf:type <class>` of a file.

    Yields:
        (normal title, class without its namespace), or None for any other line (another predicate
        or vocabulary, not a triple). Blank lines and comments are skipped.

    Raises:
        OSError: the file cannot be read.
        EOFError: the file is truncated.
    """
    for line in _lines(path):
        plain = _PLAIN.match(line)
        if plain is not None:
            subject, name = plain.groups()
            yield normal_title(unquote(subject) if "%" in subject else subject), name
        elif line.strip() and line.lstrip()[0] not in "#@":
            yield _statement(line)


def _lines(path: str) -> Iterator[str]:
    """Reads the lines of a text file, which may be compressed."""
    rest = b""
    for block in _blocks(path):
        *lines, rest = (rest + block).split(b"\n")
        yield from b"\n".join(lines).decode("utf-8", "replace").split("\n")
    yield rest.decode("utf-8", "replace")


def _blocks(path: str) -> Iterator[bytes]:
    with open_decompressed(path) as file:
        try:
            while block := file.read(_BLOCK):
                yield block
        except (zlib.error, lzma.LZMAError) as error:
            raise OSError(str(error)) from None


def check_whole(path: str) -> None:
    """Decompresses a file; raises as `read_instance_types`."""
    for _ in _blocks(path):
        pass


def _statement(line: str) -> tuple[str, str] | None:
    match = _TRIPLE.match(line)
    if match is None:
        return None
    subject, cls = (_unescape(iri) for iri in match.groups())
    title = resource_title(subject)
    if title is None or not cls.startswith(NAMESPACE):
        return None
    return title, cls.removeprefix(NAMESPACE)


def _unescape(iri: str) -> str:
    if "\\" not in iri:
        return iri
    return _ESCAPE.sub(lambda match: _character(int(match[1] or match[2], 16)), iri)


def _character(code: int) -> str:
    """The character with this code point; U+FFFD for surrogates, which are not characters."""
    return "\ufffd" if 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code)
