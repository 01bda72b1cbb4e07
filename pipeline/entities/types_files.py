"""The stage types: reads the files of `--types` before the dump.

They are read once, for the outlook and for the stage resolve. A damaged file ends the run here, and
not after hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.storage import parts
from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from ontology.sources.types import SUBCLASS, UNREADABLE, WIKIDATA, Statement, read_types
from ontology.titles import title_keys
from ontology.voting.regions import endings
from pipeline.execution.part_pass import Gather, PartPass, Stage
from pipeline.plan import Plan, PlanPass

STATEMENTS = pa.schema(
    [
        ("source", pa.string()),  # language of the page, or "wikidata", or "subclass"
        ("subject", pa.uint64()),  # key of the page's title, or number of the item
        ("class", pa.string()),  # of the ontology, or of Wikidata, such as "Q5"
        ("ending", pa.string()),  # of a title of the dump's language
    ]
)
"""Columns of `types/part-*.parquet`: the statements of a file, in order."""

_ROWS = 65_536
_LARGEST = (1 << 63) - 1


@dataclass
class LinesReport(Report):
    """Numbers of lines of a file of types, without blank lines and comments.

    Attributes:
        lines: number of lines.
        other_lines: number of triples that are not statements about types.
        unreadable_lines: number of lines that are no triples.
    """

    lines: int = 0
    other_lines: int = 0
    unreadable_lines: int = 0


class ReadTypes(PlanPass, PartPass):
    """Writes the statements of each file of types."""

    name, report = "types", LinesReport

    def elements(self) -> Sequence[int]:
        return range(len(self._plan.settings.types))

    def part(self, element: int) -> Place:
        return statements_path(self._plan, element)

    def make(self, element: int, part: Place, gathered: None) -> LinesReport:
        return write_statements(self._plan.settings.types[element], part, self._plan.language)


def types_stage(plan: Plan) -> Stage:
    """The files of `--types` -> `types/`."""

    def finish(reports: list[LinesReport], _: None) -> None:
        plan.types.finish()

    return [ReadTypes(plan), Gather("end of types", finish)]


def statements_path(plan: Plan, number: int) -> Place:
    """Path of the statements of a file of types, by its place in `--types`."""
    return plan.types.path / f"part-{number:05d}.parquet"


def write_statements(path: Place, part: Place, language: str) -> LinesReport:
    """Writes the statements of a file of types as STATEMENTS.

    Args:
        path: path of the file.
        part: path of the part that is written.
        language: language of the dump. Endings of other languages say nothing about its titles.
    """
    report = LinesReport()
    statements = read_types(path)
    with parts.writer(part, STATEMENTS) as writer:
        while chunk := list(islice(statements, _ROWS)):
            readable = [s for s in chunk if s is not None and s is not UNREADABLE]
            report.lines += len(chunk)
            report.other_lines += chunk.count(None)
            report.unreadable_lines += len(chunk) - len(readable) - chunk.count(None)
            if readable:
                writer.write_batch(_columns(readable, language))
    return report


def _columns(statements: Sequence[Statement], language: str) -> pa.RecordBatch:
    sources, subjects, classes = (
        pa.array(column, pa.string()) for column in zip(*statements, strict=True)
    )
    keys = title_keys(subjects)
    is_number = pc.is_in(sources, pa.array([WIKIDATA, SUBCLASS]))
    numbers = [min(int(item[1:]), _LARGEST) for item in subjects.filter(is_number).to_pylist()]
    keys[is_number.to_numpy(zero_copy_only=False)] = np.array(numbers, np.uint64)
    is_own = pc.equal(sources, language)
    columns = [sources, pa.array(keys), classes, pc.if_else(is_own, endings(subjects), None)]
    return pa.RecordBatch.from_arrays(columns, schema=STATEMENTS)
