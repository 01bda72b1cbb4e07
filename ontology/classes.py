"""The tree of DBpedia classes: parents, depth, ancestors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from nerbert.storage.places import Place

ROOT = "owl:Thing"
NAMESPACE = "http://dbpedia.org/ontology/"

NO_KIND = "Agent"
"""The parent of Person and Organisation. It says so little that depth is measured below it."""

_RENAMED = {"Comics": "Comic", "Location": "Place", "RaceHorse": "Horse"}
"""Classes of other releases of DBpedia -> their names in the shipped ontology."""


_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def spaced(name: str) -> str:
    """The name of a class in words.

    >>> spaced("PoliticalParty")
    'political party'
    """
    return _CAPITAL.sub(" ", name).replace("_", " ").lower()


class ClassTree:
    """The classes and their parents. A class may have several parents; the root is owl:Thing."""

    def __init__(self, parents: Mapping[str, Iterable[str]]) -> None:
        """Builds a tree.

        Args:
            parents: class -> its direct superclasses; unknown ones and owl:Thing are ignored.

        Raises:
            ValueError: a class is its own ancestor.
        """
        parents = {**parents, **_corrected(parents)}
        self._parents = {
            name: tuple(sorted({p for p in above if p in parents and p != name}))
            for name, above in parents.items()
        }
        self._depth: dict[str, int] = {}
        for name in sorted(self._parents):
            self._measure(name)
        self._folded: dict[str, list[str]] = {}
        for name in sorted(self._parents):
            self._folded.setdefault(name.lower(), []).append(name)

    def _measure(self, name: str, below: tuple[str, ...] = ()) -> int:
        if name in below:
            raise ValueError(f"class {name} is its own ancestor: {' < '.join((*below, name))}")
        if name not in self._depth:
            above = [self._measure(parent, (*below, name)) for parent in self._parents[name]]
            self._depth[name] = 0 if name == NO_KIND else 1 + max(above, default=0)
        return self._depth[name]

    @classmethod
    def shipped(cls) -> ClassTree:
        """The tree in `ontology/data/classes.tsv`."""
        return _shipped()

    @classmethod
    def from_owl(cls, path: Place) -> ClassTree:
        """Reads DBpedia's ontology (RDF/XML, Turtle or N-Triples; also .xz, .bz2, .gz).

        Raises:
            ValueError: the file is not readable as RDF, or has no DBpedia class.
        """
        from rdflib import OWL, RDF, RDFS, Graph, URIRef  # takes 0.2 s, for --ontology alone

        graph = Graph()
        plain = path.removesuffix(".xz").removesuffix(".bz2").removesuffix(".gz").lower()
        syntax = "nt" if plain.endswith(".nt") else "turtle" if plain.endswith(".ttl") else "xml"
        try:
            with path.open_decompressed() as file:
                graph.parse(data=file.read(), format=syntax)
        except OSError:
            raise
        except Exception as error:  # rdflib's parsers share no class of errors
            reason = str(error).splitlines()[0][:200]
            raise ValueError(f"{path}: not readable as RDF ({reason})") from error
        parents: dict[str, list[str]] = {}
        for subject in graph.subjects(RDF.type, OWL.Class):
            if isinstance(subject, URIRef) and subject.startswith(NAMESPACE):
                above = [str(o) for o in graph.objects(subject, RDFS.subClassOf)]
                parents[subject.removeprefix(NAMESPACE)] = [
                    iri.removeprefix(NAMESPACE) for iri in above if iri.startswith(NAMESPACE)
                ]
        if not parents:
            raise ValueError(f"{path}: it has no class of {NAMESPACE}")
        return cls(parents)

    @property
    def names(self) -> list[str]:
        """All classes, sorted."""
        return sorted(self._parents)

    def __contains__(self, name: object) -> bool:
        return name in self._parents

    def parents(self, name: str) -> tuple[str, ...]:
        """Direct superclasses, sorted; empty below the root."""
        return self._parents.get(name, ())

    def depth(self, name: str) -> int:
        """Length of the longest path from the root, where `NO_KIND` does not count.

        It is 1 for the kinds, such as Person, Organisation, Place, Work, Event and Species; 0 for
        Agent; -1 for an unknown class.
        """
        return self._depth.get(name, -1)

    def kind(self, name: str) -> str | None:
        """The kind of a class: its ancestor of depth 1, or itself; None for Agent and unknown ones.

        Of several kinds, the first by name.
        """
        line = (name, *self.ancestors(name))
        return min((ancestor for ancestor in line if self.depth(ancestor) == 1), default=None)

    def ancestors(self, name: str) -> list[str]:
        """Superclasses, nearest first, ties by name; without the class itself and the root."""
        chain: dict[str, None] = {}
        level = self.parents(name)
        while level:
            chain.update(dict.fromkeys(level))
            above = {p for cls in level for p in self.parents(cls) if p not in chain}
            level = tuple(sorted(above))
        return list(chain)

    def known_name(self, name: str) -> str | None:
        """The class with this name, an older name, or another spelling of its case; else None."""
        if name in self._parents:
            return name
        renamed = _RENAMED.get(name, name)
        if renamed in self._parents:
            return renamed
        namesakes = self._folded.get(name.lower(), [])
        return namesakes[0] if len(namesakes) == 1 else None

    def most_specific(self, names: Iterable[str]) -> str | None:
        """The deepest of some classes, ties by name; None if there are no classes.

        Source: DBpedia's rule for instance types, which state only the most specific class.
        """
        return min(names, key=lambda name: (-self.depth(name), name), default=None)


def _corrected(parents: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Corrected parents of the classes of an ontology that has them, and their new parents."""
    return {
        name: above
        for name, above in _corrections().items()
        if name in parents and all(parent in parents for parent in above)
    }


@cache
def _corrections() -> dict[str, list[str]]:
    return {name: above.split() for name, above, _ in rows_of("corrections.tsv")}


@cache
def _shipped() -> ClassTree:
    return ClassTree({name: above.split() for name, above in rows_of("classes.tsv")})


def rows_of(file: str) -> list[list[str]]:
    """Rows of a table in `ontology/data`."""
    return [line.split("\t") for line in lines_of(file)]


def lines_of(file: str) -> list[str]:
    """Rows of a table in `ontology/data`, not yet cut into columns."""
    text = (files("ontology") / "data" / file).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and line[0] != "#"]
