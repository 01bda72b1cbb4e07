"""Reads the types of pages line by line, from N-Triples or Turtle files of DBpedia or Wikidata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from nerbert.files import read_blocks
from ontology.classes import NAMESPACE
from ontology.titles import normal_title, resource

WIKIDATA, SUBCLASS = "wikidata", "subclass"
"""What a statement is about, if it is not about a page of a wiki: a Wikidata item, or a class."""

_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_DIRECT = "http://www.wikidata.org/prop/direct/"
_INSTANCE_OF, _SUBCLASS_OF = f"{_DIRECT}P31", f"{_DIRECT}P279"
_TRIPLE = re.compile(r"\s*<([^<>]*)>\s*<([^<>]*)>\s*<([^<>]*)>")
_PLAIN = re.compile(
    r"<http://(?:([a-z-]+)\.)?dbpedia\.org/resource/([^<>\\]*)>"
    rf" <{re.escape(_TYPE)}> <{re.escape(NAMESPACE)}([^<>\\]*)>"
)
"""The form of nearly all lines; it is matched first because it is faster."""
_ITEM = re.compile(r"https?://www\.wikidata\.org/entity/(Q[1-9]\d*)")
_QID = re.compile(r"Q[1-9]\d*")
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def read_instance_types(path: str) -> Iterator[tuple[str, str, str] | None]:
    """Reads the statements `<subject> rdf:type <class>` of a file, and Wikidata's P31 and P279.

    Subjects are resources of DBpedia in any language, and items of Wikidata. Classes are those of
    the DBpedia ontology, or of Wikidata.

    Yields:
        A language, a normal title and a class; or WIKIDATA, an item such as "Q42" and a class; or
        SUBCLASS, a class of Wikidata and its superclass. Classes of the ontology are without
        namespace, classes of Wikidata such as "Q5". None for any other line (another predicate or
        vocabulary, not a triple). Blank lines and comments are skipped.

    Raises:
        OSError: the file cannot be read.
        EOFError: the file is truncated.
    """
    for line in _lines(path):
        plain = _PLAIN.match(line)
        if plain is not None:
            language, subject, name = plain.groups()
            if language == WIKIDATA:
                yield (WIKIDATA, subject, name) if _QID.fullmatch(subject) else None
                continue
            title = normal_title(unquote(subject) if "%" in subject else subject)
            yield language or "en", title, name
        elif line.strip() and line.lstrip()[0] not in "#@":
            yield _statement(line)


def _lines(path: str) -> Iterator[str]:
    """Reads the lines of a text file, which may be compressed."""
    rest = b""
    for block in read_blocks(path):
        *lines, rest = (rest + block).split(b"\n")
        yield from b"\n".join(lines).decode("utf-8", "replace").split("\n")
    yield rest.decode("utf-8", "replace")


def check_whole(path: str) -> None:
    """Decompresses a file; raises as `read_instance_types`."""
    for _ in read_blocks(path):
        pass


def _statement(line: str) -> tuple[str, str, str] | None:
    match = _TRIPLE.match(line)
    if match is None:
        return None
    subject, predicate, value = (_unescape(iri) for iri in match.groups())
    about, name = _about(subject), _class(value)
    if about is None or name is None:
        return None
    is_item = about[0] == WIKIDATA
    if predicate == _TYPE or (predicate == _INSTANCE_OF and is_item):
        return *about, name
    if predicate == _SUBCLASS_OF and is_item and _QID.fullmatch(name):
        return SUBCLASS, about[1], name
    return None


def _about(iri: str) -> tuple[str, str] | None:
    """Language and normal title of a resource, or WIKIDATA and an item; None for other IRIs."""
    if (item := _ITEM.fullmatch(iri)) is not None:
        return WIKIDATA, item[1]
    found = resource(iri)
    if found is not None and found[0] == WIKIDATA and not _QID.fullmatch(found[1]):
        return None
    return found


def _class(iri: str) -> str | None:
    """A class of the ontology without namespace, or a class of Wikidata; None for other IRIs."""
    if iri.startswith(NAMESPACE):
        return iri.removeprefix(NAMESPACE)
    item = _ITEM.fullmatch(iri)
    return item[1] if item else None


def _unescape(iri: str) -> str:
    if "\\" not in iri:
        return iri
    return _ESCAPE.sub(lambda match: _character(int(match[1] or match[2], 16)), iri)


def _character(code: int) -> str:
    """The character with this code point; U+FFFD for surrogates, which are not characters."""
    return "\ufffd" if 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code)
