"""Facts for the entity table: from documents, and from DBpedia's instance types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from nerbert import files, parts
from nerbert.parts import Report
from ontology.classes import ClassTree
from ontology.infobox import InfoboxMapping, resolve_redirect
from ontology.instance_types import read_instance_types
from ontology.titles import title_keys
from pipeline.dump.site import ARTICLE, TEMPLATE

FACTS = pa.schema(
    [
        ("key", pa.uint64()),  # of the page's title
        ("target", pa.uint64()),  # key of the title that a redirect leads to; 0 for other pages
        ("class", pa.string()),  # class by the page's infobox; null for none
    ]
)
"""Columns of the parts in `entities/pages/` (one row per page) and `entities/types/`."""


def template_redirects(part: str) -> Iterator[tuple[str, str]]:
    """Redirects between templates in a part of documents: (old name, new name)."""
    for batch in parts.read_batches(part, ["namespace", "title", "redirect"]):
        for row in batch.to_pylist():
            if row["namespace"] == TEMPLATE and row["redirect"]:
                yield row["title"].partition(":")[2], row["redirect"].partition(":")[2]


def page_facts(
    batch: pa.RecordBatch, mapping: InfoboxMapping, redirects: Mapping[str, str]
) -> pa.RecordBatch:
    """FACTS of the articles and redirects of a batch of documents."""
    # Redirects of templates and categories are in the documents too, but are no entities.
    batch = batch.filter(pa.array(batch.column("namespace").to_numpy() == ARTICLE))
    redirect = batch.column("redirect")
    is_redirect = redirect.is_valid().to_numpy(zero_copy_only=False)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(title_keys(batch.column("title"))),
            pa.array(title_keys(redirect) * is_redirect),
            pa.array(_infobox_classes(batch, mapping, redirects), pa.string()),
        ],
        schema=FACTS,
    )


def _infobox_classes(
    batch: pa.RecordBatch, mapping: InfoboxMapping, redirects: Mapping[str, str]
) -> list[str | None]:
    """Class of each page by its first mapped template; pages without one are not looked at."""
    classes: list[str | None] = [None] * len(batch)
    # Each distinct template is looked up once: a page has dozens, and few are infoboxes.
    column = batch.column("templates")
    names = column.flatten().dictionary_encode()
    mapped = np.array(
        [resolve_redirect(name, redirects) in mapping for name in names.dictionary.to_pylist()]
        or [False],
        bool,
    )
    found = np.flatnonzero(mapped[names.indices.to_numpy(zero_copy_only=False)])
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    pages = np.repeat(np.arange(len(batch)), lengths)
    arguments = batch.column("template_arguments").flatten()
    for place in found.tolist():
        if classes[pages[place]] is None:
            template = (names[place].as_py(), arguments[place].as_py())
            classes[pages[place]] = mapping.class_of([template], redirects)
    return classes


@dataclass(frozen=True)
class TypesReport(Report):
    """Counts of an instance-types file.

    Attributes:
        part: name of its part.
        file: name of the file.
        lines: number of lines, without blank lines and comments.
        other_lines: number of lines that are not statements.
        unknown_classes: number of statements with classes that the ontology lacks, by class.
        renamed_classes: number of statements with classes that the ontology has under another name.
    """

    part: str
    file: str
    lines: int = 0
    other_lines: int = 0
    unknown_classes: dict[str, int] = field(default_factory=dict)
    renamed_classes: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value or key != "other_lines"}


def write_type_facts(path: str, part: str, tree: ClassTree, file: str = "") -> TypesReport:
    """Writes the statements of an instance-types file as FACTS.

    Classes that the ontology lacks are kept, as classes without ancestors.

    Args:
        path: local path of the file.
        part: path of the part that is written.
        tree: classes of the ontology.
        file: name of the file in the report, because `path` may be that of a copy.
    """
    n_lines = n_other = 0
    unknown: Counter[str] = Counter()
    renamed: Counter[str] = Counter()
    statements: list[tuple[str, str]] = []
    with parts.writer(part, FACTS) as writer:
        for statement in read_instance_types(path):
            n_lines += 1
            if statement is None:
                n_other += 1
                continue
            title, name = statement
            known = tree.known_name(name)
            if known is None:
                unknown[name] += 1
            elif known != name:
                renamed[f"{name} -> {known}"] += 1
            statements.append((title, known or name))
            if len(statements) == 100_000:
                writer.write_batch(_statement_facts(statements))
                statements.clear()
        writer.write_batch(_statement_facts(statements))
    return TypesReport(
        files.name(part),
        file,
        n_lines,
        n_other,
        dict(sorted(unknown.items())),
        dict(sorted(renamed.items())),
    )


def _statement_facts(statements: Sequence[tuple[str, str]]) -> pa.RecordBatch:
    keys = pa.array(title_keys([title for title, _ in statements]))
    no_targets = pa.array(np.zeros(len(statements), np.uint64))
    classes = pa.array([name for _, name in statements], pa.string())
    return pa.RecordBatch.from_arrays([keys, no_targets, classes], schema=FACTS)


def read_facts(folder: str, names: Sequence[str]) -> tuple[Any, Any, list[str], Any]:
    """Keys, targets, names of classes, and class indices (-1 for none) from some parts."""
    table = parts.read_tables([files.join(folder, name) for name in names], FACTS)
    classes = table.column("class").combine_chunks().dictionary_encode()
    indices = classes.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    keys, targets = (table.column(name).to_numpy() for name in ("key", "target"))
    return keys, targets, classes.dictionary.to_pylist(), indices
