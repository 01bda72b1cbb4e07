"""Facts of files of types: which pages of the dump have which classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nerbert.errors import UserError
from nerbert.storage import files, parts
from nerbert.storage.parts import Report
from ontology.classes import ClassTree
from ontology.sources.types import (
    SUBCLASS,
    UNREADABLE,
    UnreadableError,
    WikidataClasses,
    read_instance_types,
)
from ontology.voting.endings import endings
from pipeline.entities.facts import FACTS, to_facts
from pipeline.entities.page_ids import Subjects
from pipeline.plan import Plan

_ROWS = 100_000
_SHOWN = 20


@dataclass
class TypesReport(Report):
    """Counts of a file of types.

    Attributes:
        part: name of its part.
        file: name of the file.
        lines: number of lines, without blank lines and comments.
        other_lines: number of triples that are not statements about types.
        unreadable_lines: number of lines that are no triples.
        unknown_classes: number of statements with classes that the ontology lacks, by class.
        renamed_classes: number of statements with classes that the ontology has under another name.
        other_pages: number of statements whose subject is no page of the dump, by the tables.
        without_table: number of statements whose subjects need a table that was not given, by
            language, or "wikidata".
        unmapped_classes: number of statements with Wikidata's classes that have no class of the
            ontology, by class, the most frequent ones.
    """

    part: str
    file: str
    lines: int = 0
    other_lines: int = 0
    unknown_classes: dict[str, int] = field(default_factory=dict)
    renamed_classes: dict[str, int] = field(default_factory=dict)
    other_pages: int = 0
    without_table: dict[str, int] = field(default_factory=dict)
    unmapped_classes: dict[str, int] = field(default_factory=dict)
    unreadable_lines: int = 0

    def to_json(self) -> dict[str, Any]:
        always = ("part", "file", "lines", "unknown_classes", "renamed_classes")
        return {key: value for key, value in vars(self).items() if value or key in always}


def types_path(plan: Plan, number: int) -> str:
    """Path of the facts of a file of types, by its place in `--types`."""
    return files.join(plan.entities.path, "types", f"part-{number:05d}.parquet")


def write_type_facts(path: str, part: str, tree: ClassTree, subjects: Subjects) -> TypesReport:
    """Writes the statements of a file of types as FACTS.

    Classes that the ontology lacks are kept, as classes without ancestors.

    Args:
        path: path of the file.
        part: path of the part that is written.
        tree: classes of the ontology.
        subjects: finds the pages of the dump.
    """
    with parts.writer(part, FACTS) as writer:
        facts = _TypeFacts(tree, subjects, writer)
        for statement in read_types(path):
            facts.add(statement)
        facts.finish()
    return TypesReport(
        files.name(part),
        files.name(path),
        facts.lines,
        facts.other_lines,
        dict(sorted(facts.unknown.items())),
        dict(sorted(facts.renamed.items())),
        facts.other_pages,
        dict(sorted(facts.without_table.items())),
        dict(facts.unmapped.most_common(_SHOWN)),
        facts.unreadable_lines,
    )


def read_types(path: str) -> Iterator[tuple[str, str, str] | None]:
    """Reads a file of types; errors name it by its flag."""
    try:
        yield from read_instance_types(path)
    except (OSError, EOFError) as error:
        raise UserError(f"--types {path}: cannot be read ({error}); is it complete?") from None
    except UnreadableError as error:
        raise UserError(f"--types {path}: {error}; give N-Triples or Turtle") from None


class _TypeFacts:
    """Collects statements, and writes those about pages of the dump."""

    def __init__(self, tree: ClassTree, subjects: Subjects, writer: pq.ParquetWriter) -> None:
        self._tree, self._subjects, self._writer = tree, subjects, writer
        self._waiting: dict[str, list[tuple[str, str]]] = {}
        self._above: dict[str, list[str]] = {}
        self._items: list[tuple[np.uint64, str]] = []  # key of a page, class of Wikidata
        self.lines = self.other_lines = self.unreadable_lines = self.other_pages = 0
        self.unknown: Counter[str] = Counter()
        self.renamed: Counter[str] = Counter()
        self.without_table: Counter[str] = Counter()
        self.unmapped: Counter[str] = Counter()

    def add(self, statement: tuple[str, str, str] | None) -> None:
        """Adds a line of the file."""
        self.lines += 1
        if statement is UNREADABLE:
            self.unreadable_lines += 1
            return
        if statement is None:
            self.other_lines += 1
            return
        source, subject, name = statement
        if source == SUBCLASS:
            self._above.setdefault(subject, []).append(name)
            return
        waiting = self._waiting.setdefault(source, [])
        waiting.append((subject, name))
        if len(waiting) == _ROWS:
            self._flush(source)

    def finish(self) -> None:
        """Writes what is left. Only now all superclasses of Wikidata's classes are known."""
        for source in sorted(self._waiting):
            self._flush(source)
        classes = WikidataClasses(self._tree, self._above)
        classified = [(key, classes.class_of(item)) for key, item in self._items]
        self.unmapped.update(
            item
            for (_, item), (_, name) in zip(self._items, classified, strict=True)
            if name is None
        )
        known = [(key, name) for key, name in classified if name is not None]
        keys = np.array([key for key, _ in known], np.uint64)
        self._writer.write_batch(to_facts(keys, [name for _, name in known]))

    def _flush(self, source: str) -> None:
        """Writes the statements about subjects of a source that wait."""
        waiting = self._waiting.pop(source, [])
        if not self._subjects.is_own(source) and not self._subjects.reaches(source):
            self.without_table[source] += len(waiting)
            return
        titles = [subject for subject, _ in waiting]
        keys = self._subjects.keys(source, titles)
        kept = np.flatnonzero(keys)
        self.other_pages += len(keys) - len(kept)
        rows, names = [], []
        for row in kept.tolist():
            name = waiting[row][1]
            if name[0] == "Q" and name[1:].isdigit():
                self._items.append((keys[row], name))
            else:
                rows.append(row)
                names.append(self._known(name))
        # The endings of English titles say nothing about the titles of this wiki.
        own = self._subjects.is_own(source)
        ends = endings(pa.array([titles[row] for row in rows], pa.string())) if own else None
        self._writer.write_batch(to_facts(keys[rows], names, ends))

    def _known(self, name: str) -> str:
        """The name of a class in the ontology; its own if the ontology lacks it."""
        known = self._tree.known_name(name)
        if known is None:
            self.unknown[name] += 1
        elif known != name:
            self.renamed[f"{name} -> {known}"] += 1
        return known or name
