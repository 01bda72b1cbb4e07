"""Reads the types of pages from N-Triples or Turtle files of DBpedia or Wikidata.

Their files have one triple a line, also those of Turtle, and are read line by line. Other Turtle is
read by rdflib, which is slow and holds the file in memory.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any
from urllib.parse import unquote

from nerbert.errors import UserError
from nerbert.storage.places import Place
from ontology.classes import NAMESPACE, ROOT, ClassTree, rows_of
from ontology.titles import normal_title, resource

WIKIDATA, SUBCLASS = "wikidata", "subclass"
"""What a statement is about, if it is not about a page of a wiki: a Wikidata item, or a class."""

_LOGGER = logging.getLogger("nerbert")
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_DIRECT = "http://www.wikidata.org/prop/direct/"
_INSTANCE_OF, _SUBCLASS_OF = f"{_DIRECT}P31", f"{_DIRECT}P279"
_IRI = r"<([^<>\s]*:[^<>]*)>"  # never a relative one
_END = r"\s*\.\s*(?:#.*)?"
_TRIPLE = re.compile(rf"\s*{_IRI}\s*{_IRI}\s*{_IRI}(?:\s*{_IRI})?{_END}")
_OTHER_TRIPLE = re.compile(
    rf"\s*(?:{_IRI}|_:\S+)\s*{_IRI}\s*"
    rf"(?:{_IRI}|_:[^\s.]+|\"[^\"\\]*+(?:\\.[^\"\\]*+)*\"(?:@[\w-]+|\^\^{_IRI})?)(?:\s*{_IRI})?{_END}"
)
"""A triple, or a quad, with blank nodes or a literal."""
_PLAIN = re.compile(
    r"<http://(?:([a-z-]+)\.)?dbpedia\.org/resource/([^<>\\]*)>"
    rf" <{re.escape(_TYPE)}> <{re.escape(NAMESPACE)}([^<>\\]*)> \.\r?"
)
"""The form of nearly all lines; it is matched first because it is faster."""
_PLAIN_LINES = re.compile(rf"^{_PLAIN.pattern}$", re.MULTILINE)
_ITEM = re.compile(r"https?://www\.wikidata\.org/entity/(Q[1-9]\d*)")
_QID = re.compile(r"Q[1-9]\d*")
_LONGEST_LINE = 1 << 20
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


UNREADABLE = ("", "", "")
"""Stands for a line that is no triple."""
_BEARABLE = 0.01
_LOOKED_AT = 1000

Statement = tuple[str, str, str]


class UnreadableError(ValueError):
    """A file has too many lines that are no triples."""


def read_instance_types(path: Place) -> Iterator[Statement | None]:
    """Reads the statements `<subject> rdf:type <class>` of a file, and Wikidata's P31 and P279.

    Subjects are resources of DBpedia in any language, and items of Wikidata. Classes are those of
    the DBpedia ontology, or of Wikidata.

    Yields:
        A language, a normal title and a class; or WIKIDATA, an item such as "Q42" and a class; or
        SUBCLASS, a class of Wikidata and its superclass. Classes of the ontology are without
        namespace, classes of Wikidata such as "Q5". None for any other triple (another predicate or
        vocabulary); UNREADABLE for a line that is no triple. Blank lines and comments are skipped.

    Raises:
        OSError: the file cannot be read.
        EOFError: the file is truncated.
        UnreadableError: the file is neither Turtle, nor are nearly all of its lines triples.
    """
    statements = _read_lines(_texts(path))
    head = list(islice(statements, _LOOKED_AT))
    if _is_turtle(head):
        yield from _read_turtle(path)
        return
    lines = unreadable = 0
    for statement in chain(head, statements):
        lines += 1
        unreadable += statement is UNREADABLE
        yield statement
    if unreadable > _BEARABLE * lines:
        raise UnreadableError(f"{unreadable:,} of its {lines:,} lines are no triples")


def read_types(path: Place) -> Iterator[Statement | None]:
    """Reads a file of types; errors name it by its flag."""
    try:
        yield from read_instance_types(path)
    except (OSError, EOFError) as error:
        raise UserError(f"--types {path}: cannot be read ({error}); is it complete?") from None
    except UnreadableError as error:
        raise UserError(f"--types {path}: {error}; give N-Triples or Turtle") from None


def _is_turtle(head: Sequence[Statement | None]) -> bool:
    """Whether the first lines of a file are not one triple each, so that rdflib reads it."""
    return sum(statement is UNREADABLE for statement in head) > _BEARABLE * len(head)


def _read_lines(texts: Iterable[str]) -> Iterator[Statement | None]:
    """The statements of texts, each of which is some whole lines."""
    for text in texts:
        plain = _PLAIN_LINES.findall(text)
        if len(plain) == text.count("\n") + 1:
            yield from map(_plain_statement, plain)
        else:
            yield from _read_each(text.split("\n"))


def _read_each(lines: Iterable[str]) -> Iterator[Statement | None]:
    for line in lines:
        plain = _PLAIN.fullmatch(line)
        if plain is not None:
            yield _plain_statement(plain.groups())
        elif (text := line.strip()) and text[0] not in "#@":
            triple = _TRIPLE.fullmatch(text)
            if triple is not None:
                yield _statement(*map(_unescape, triple.groups()[:3]))
            else:
                yield None if _OTHER_TRIPLE.fullmatch(text) else UNREADABLE


def _plain_statement(groups: tuple[str | Any, ...]) -> Statement | None:
    """Reads a line of the form _PLAIN: language, title and class."""
    language, subject, name = groups
    if language == WIKIDATA:
        return (WIKIDATA, subject, name) if _QID.fullmatch(subject) else None
    title = normal_title(unquote(subject) if "%" in subject else subject)
    return language or "en", title, name


def _read_turtle(path: Place) -> Iterator[Statement | None]:
    """The statements of a Turtle file in sorted order."""
    from rdflib import Graph, URIRef  # takes half a second, and few files need it

    graph = Graph()
    # rdflib takes neither a byte order mark nor single carriage returns.
    text = b"".join(path.read_blocks()).removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"\n")
    try:
        graph.parse(io.BytesIO(text), format="turtle")
    except Exception as error:  # rdflib has no common class of errors
        place = re.search(r"line \d+", str(error))
        where = f" (see {place[0]})" if place else ""
        raise UnreadableError(f"neither lines of triples nor Turtle{where}") from None
    for triple in sorted(graph):
        is_iris = all(isinstance(term, URIRef) for term in triple)
        yield _statement(*map(str, triple)) if is_iris else None


def _texts(path: Place) -> Iterator[str]:
    """Reads whole lines of a file, which may be compressed; of a long line only the beginning."""
    carry, start = b"", b"\xef\xbb\xbf"  # a byte order mark
    for block in path.read_blocks():
        block, start = block.removeprefix(start), b""
        lines, newline, tail = block.rpartition(b"\n")
        if not newline:
            carry += tail[: max(0, _LONGEST_LINE - len(carry))]
            continue
        yield (carry + lines).decode("utf-8", "replace")
        carry = tail
    yield carry.decode("utf-8", "replace")


def check_types(path: Place) -> None:
    """Checks that there is a statement in the first 1,000 lines of a file of types.

    Raises:
        ValueError: there is none.
        OSError, EOFError: the file is damaged or truncated.
    """
    head = list(islice(_read_lines(_texts(path)), _LOOKED_AT))
    if _is_turtle(head):
        head = list(_read_turtle(path))
        _LOGGER.info("--types %s: Turtle with several triples a line; reading it is slow", path)
    if all(statement is None or statement is UNREADABLE for statement in head):
        raise ValueError(
            "none of its first lines says '<http://dbpedia.org/resource/X> rdf:type "
            "<http://dbpedia.org/ontology/C> .'"
        )


def _statement(subject: str, predicate: str, value: str) -> Statement | None:
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
    page = resource(iri)
    if page is not None and page[0] == WIKIDATA and not _QID.fullmatch(page[1]):
        return None
    return page


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


class WikidataClasses:
    """Wikidata class -> class of the ontology, by a table and by the chains of superclasses."""

    def __init__(self, tree: ClassTree, above: Mapping[str, Sequence[str]] | None = None) -> None:
        """Takes the ontology, and the superclasses of Wikidata's classes.

        Args:
            tree: the ontology; classes of the table that it lacks are left out.
            above: Wikidata class -> its superclasses (P279).
        """
        self._tree = tree
        self._table = {q: name for q, name in shipped().items() if name == ROOT or name in tree}
        self._above = above or {}
        self._nearest_class: dict[str, str | None] = {}

    def class_of(self, qid: str) -> str | None:
        """Class of the ontology for a Wikidata class, such as "Q515"; None if there is none.

        It is that of the nearest superclass in the table; of several at the same distance, the most
        specific.
        """
        if qid not in self._nearest_class:
            self._nearest_class[qid] = self._nearest(qid)
        return self._nearest_class[qid]

    def _nearest(self, qid: str) -> str | None:
        level, visited = [qid], {qid}
        while level:
            names = {self._table[q] for q in level if q in self._table}
            if names:
                return self._tree.most_specific(names - {ROOT})
            above = [q for below in level for q in self._above.get(below, ())]
            level = [q for q in dict.fromkeys(above) if q not in visited]
            visited |= set(level)
        return None


@cache
def shipped() -> dict[str, str]:
    """The tables in `ontology/data`: `owl:equivalentClass` of the ontology, and more classes."""
    rows = [row for file in ("wikidata_classes", "wikidata_more") for row in rows_of(f"{file}.tsv")]
    return {qid: name for qid, name, *_ in rows}
