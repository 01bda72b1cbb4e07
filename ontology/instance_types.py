"""DBpedia's instance types, streamed line by line from N-Triples or Turtle files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ontology.classes import NAMESPACE
from ontology.compressed import open_bytes
from ontology.titles import resource_title

_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_TRIPLE = re.compile(rf"\s*<([^<>]*)>\s*<{re.escape(_TYPE)}>\s*<([^<>]*)>")
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def read_instance_types(path: str) -> Iterator[tuple[str, str] | None]:
    """Title and class name of each statement `<resource> rdf:type <class>`.

    Yields:
        (normal title, class without its namespace), or None for a line that says something else
        (another predicate or vocabulary, no triple at all); blank lines and comments are passed.

    Raises:
        OSError, EOFError: the file cannot be read, or is cut off.
    """
    with open_bytes(path) as file:
        for line in file:
            text = line.decode("utf-8", "replace")
            if not text.strip() or text.lstrip()[0] in "#@":
                continue
            yield _statement(text)


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
    return _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), iri)
