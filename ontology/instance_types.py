"""DBpedia's instance types, streamed line by line from N-Triples or Turtle files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from ontology.classes import NAMESPACE
from ontology.compressed import open_bytes
from ontology.titles import normal_title, resource_title

_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_TRIPLE = re.compile(rf"\s*<([^<>]*)>\s*<{re.escape(_TYPE)}>\s*<([^<>]*)>")
_PLAIN = re.compile(
    r"<http://dbpedia\.org/resource/([^<>\\]*)>"
    rf" <{re.escape(_TYPE)}> <{re.escape(NAMESPACE)}([^<>\\]*)>"
)
"""The form of nearly all lines."""
_BLOCK = 1 << 20
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def read_instance_types(path: str) -> Iterator[tuple[str, str] | None]:
    """Title and class name of each statement `<resource> rdf:type <class>`.

    Yields:
        (normal title, class without its namespace), or None for a line that says something else
        (another predicate or vocabulary, no triple at all); blank lines and comments are passed.

    Raises:
        OSError, EOFError: the file cannot be read, or is cut off.
    """
    for line in _lines(path):
        plain = _PLAIN.match(line)
        if plain is not None:
            subject, name = plain.groups()
            yield normal_title(unquote(subject) if "%" in subject else subject), name
        elif line.strip() and line.lstrip()[0] not in "#@":
            yield _statement(line)


def _lines(path: str) -> Iterator[str]:
    """Lines of a compressed or plain text file."""
    with open_bytes(path) as file:
        rest = b""
        while block := file.read(_BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            yield from b"\n".join(lines).decode("utf-8", "replace").split("\n")
        yield rest.decode("utf-8", "replace")


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
    """The character with this number; half a surrogate pair is none."""
    return "\ufffd" if 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code)
