"""Facts of files of types: which pages of the dump have which classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.storage import parts
from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from ontology.classes import ClassTree
from ontology.sources.types import SUBCLASS, WikidataClasses
from pipeline.entities.facts import FACTS, to_facts
from pipeline.entities.page_ids import Subjects
from pipeline.entities.types_files import LinesReport, statements_path
from pipeline.plan import Plan

_ROWS = 65_536
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


def types_path(plan: Plan, number: int) -> Place:
    """Path of the facts of a file of types, by its place in `--types`."""
    return plan.entities.path / "types" / f"part-{number:05d}.parquet"


def write_type_facts(plan: Plan, number: int, part: Place, subjects: Subjects) -> TypesReport:
    """Writes the statements of a file of types about pages of the dump as FACTS.

    Classes that the ontology lacks are kept, as classes without ancestors.

    Args:
        plan: the plan.
        number: place of the file in `--types`.
        part: path of the part that is written.
        subjects: finds the pages of the dump.
    """
    source = statements_path(plan, number)
    lines = parts.finished(source, LinesReport)
    assert lines is not None, "the stage types is finished"
    report = TypesReport(part.name, plan.settings.types[number].name, **vars(lines))
    with parts.writer(part, FACTS) as writer:
        facts = _TypeFacts(plan.tree, subjects, report)
        for batch in parts.read_batches(source, rows=_ROWS):
            for facts_batch in facts.of(batch):
                writer.write_batch(facts_batch)
        writer.write_table(facts.of_items())
    for name in ("unknown_classes", "renamed_classes", "without_table"):
        setattr(report, name, dict(sorted(getattr(report, name).items())))
    return report


class _TypeFacts:
    """Finds the pages that statements are about, and the classes of the ontology."""

    def __init__(self, tree: ClassTree, subjects: Subjects, report: TypesReport) -> None:
        self._tree, self._subjects, self._report = tree, subjects, report
        self._above: dict[str, list[str]] = {}
        self._items = [FACTS.empty_table()]  # with classes of Wikidata

    def of(self, statements: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The facts of some STATEMENTS; those with classes of Wikidata wait for `of_items`."""
        for source in statements.column("source").unique().to_pylist():
            about = statements.filter(pc.equal(statements.column("source"), source))
            if source == SUBCLASS:
                columns = (about.column(name).to_pylist() for name in ("subject", "class"))
                for subject, name in zip(*columns, strict=True):
                    self._above.setdefault(f"Q{subject}", []).append(name)
            elif self._subjects.reaches(source):
                yield self._facts(about, source)
            else:
                _add(self._report.without_table, source, len(about))

    def _facts(self, about: pa.RecordBatch, source: str) -> pa.RecordBatch:
        keys = self._subjects.keys(source, about.column("subject").to_numpy())
        is_page = keys != 0
        self._report.other_pages += int((~is_page).sum())
        facts = to_facts(keys, about.column("class"), about.column("ending"))
        facts = facts.filter(pa.array(is_page))
        is_item = pc.match_substring_regex(facts.column("class"), r"^Q[0-9]+$")
        self._items.append(pa.Table.from_batches([facts.filter(is_item)]))
        return _with_classes(facts.filter(pc.invert(is_item)), self._known_class)

    def _known_class(self, name: str, count: int) -> str:
        """The name of a class in the ontology; its own if the ontology lacks it."""
        class_name = self._tree.known_name(name)
        if class_name is None:
            _add(self._report.unknown_classes, name, count)
        elif class_name != name:
            _add(self._report.renamed_classes, f"{name} -> {class_name}", count)
        return class_name or name

    def of_items(self) -> pa.Table:
        """The facts with classes of Wikidata: only now all superclasses of these are known."""
        classes, unmapped = WikidataClasses(self._tree, self._above), Counter[str]()

        def mapped(item: str, count: int) -> str | None:
            name = classes.class_of(item)
            if name is None:
                unmapped[item] = count
            return name

        facts = _with_classes(pa.concat_tables(self._items).combine_chunks(), mapped)
        self._report.unmapped_classes = dict(unmapped.most_common(_SHOWN))
        return facts.filter(facts.column("class").is_valid())


def _with_classes(
    facts: pa.RecordBatch, rename: Callable[[str, int], str | None]
) -> pa.RecordBatch:
    """The facts with other names of classes; `rename` takes each name, and how often it occurs."""
    names = facts.column("class").dictionary_encode()
    names = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    counts = np.bincount(names.indices.to_numpy(), minlength=len(names.dictionary)).tolist()
    renamed = map(rename, names.dictionary.to_pylist(), counts)
    column = pa.array(list(renamed), pa.string()).take(names.indices)
    return facts.set_column(facts.schema.get_field_index("class"), "class", column)


def _add(counts: dict[str, int], name: str, count: int) -> None:
    counts[name] = counts.get(name, 0) + count
