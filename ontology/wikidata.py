"""Wikidata's classes as classes of the DBpedia ontology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from ontology.classes import ROOT, ClassTree, rows_of


class WikidataClasses:
    """Wikidata class -> class of the ontology, by a table and by the chains of superclasses."""

    def __init__(self, tree: ClassTree, above: Mapping[str, Sequence[str]] | None = None) -> None:
        """Takes what classes are below others.

        Args:
            tree: the ontology; classes of the table that it lacks are left out.
            above: Wikidata class -> its superclasses (P279).
        """
        self._tree = tree
        self._table = {q: name for q, name in shipped().items() if name == ROOT or name in tree}
        self._above = above or {}
        self._found: dict[str, str | None] = {}

    def class_of(self, qid: str) -> str | None:
        """Class of the ontology for a Wikidata class, such as "Q515"; None if there is none.

        It is that of the nearest superclass in the table; of several at the same distance, the most
        specific.
        """
        if qid not in self._found:
            self._found[qid] = self._nearest(qid)
        return self._found[qid]

    def _nearest(self, qid: str) -> str | None:
        level, seen = [qid], {qid}
        while level:
            names = {self._table[q] for q in level if q in self._table}
            if names:
                return self._tree.most_specific(names - {ROOT})
            above = [q for below in level for q in self._above.get(below, ())]
            level = [q for q in dict.fromkeys(above) if q not in seen]
            seen |= set(level)
        return None


@cache
def shipped() -> dict[str, str]:
    """The tables in `ontology/data`: `owl:equivalentClass` of the ontology, and more classes."""
    rows = [row for file in ("wikidata_classes", "wikidata_more") for row in rows_of(f"{file}.tsv")]
    return {qid: name for qid, name, *_ in rows}
