"""Drops sentences that several pages have: the page with the smallest id keeps its example.

Most are made by bots, from tables. If they stayed, training would see them many times, and
validation would test what training has seen. Digests of the sentences are compared on disk.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nerbert.storage import parts
from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from nerbert.text.corpus import SPLITS
from pipeline.examples.corpus_files import digests_part, example_part
from pipeline.examples.counts import SelectionReport
from pipeline.examples.mentions import Ints
from pipeline.examples.rows import DIGESTS
from pipeline.execution.part_pass import DropRows, PartPass, RowKey
from pipeline.plan import Plan

REASON = "boilerplate"
_AT_ONCE = 4_000_000
"""Digests that are compared at a time; they take some 200 MB."""
_WHOLE = 1 << 64


def boilerplate(plan: Plan, examples: int) -> dict[str, Ints]:
    """Rows of `examples/digests/` of each part whose sentence a page with a smaller id has.

    Args:
        plan: the plan.
        examples: number of examples.
    """
    ranges = max(1, -(-examples // _AT_ONCE))
    by_part: list[list[Ints]] = [[] for _ in plan.parts]
    for number in range(ranges):
        low, high = (_WHOLE * bound // ranges for bound in (number, number + 1))
        of_part, rows = _repeated(plan, low, high - 1)
        for part in np.unique(of_part).tolist():
            by_part[part].append(rows[slice(*np.searchsorted(of_part, (part, part + 1)))])
    names = [part.name for part in plan.parts]
    return {
        name: np.sort(np.concatenate(rows))
        for name, rows in zip(names, by_part, strict=True)
        if rows
    }


def _repeated(plan: Plan, first: int, last: int) -> tuple[Ints, Ints]:
    """Repeated sentences with digests from `first` to `last`: number of the part, and row."""
    columns = [(np.zeros(0, np.uint64), *(np.zeros(0, np.int64),) * 3)]
    for number, source in enumerate(plan.parts):
        table = parts.read_tables([digests_part(plan, source)], DIGESTS)
        digests = table.column("digest").to_numpy()
        rows = np.flatnonzero((digests >= np.uint64(first)) & (digests <= np.uint64(last)))
        pages = table.column("page_id").to_numpy()[rows]
        columns.append((digests[rows], pages, np.full(len(rows), number), rows))
    digests, pages, of_part, rows = map(np.concatenate, zip(*columns, strict=True))
    order = np.lexsort((rows, of_part, pages, digests))
    repeats = order[1:][digests[order][1:] == digests[order][:-1]]
    repeats = repeats[np.argsort(of_part[repeats], kind="stable")]
    return of_part[repeats], rows[repeats]


class DropBoilerplate(DropRows):
    """Drops the examples of sentences that a page with a smaller id has, too."""

    name, key = REASON, ("page_id", "sentence")

    def __init__(self, write: PartPass, plan: Plan) -> None:
        super().__init__(write)
        self._plan = plan

    def files(self, element: Place) -> Sequence[Place]:
        return [example_part(self._plan, element, split) for split in SPLITS]

    def dropped(self, element: Place, gathered: Any) -> Collection[RowKey]:
        rows = gathered.boilerplate.get(element.name)
        if rows is None:
            return ()
        table = parts.read_tables([digests_part(self._plan, element)], DIGESTS).take(pa.array(rows))
        return set(zip(*(table.column(name).to_pylist() for name in self.key), strict=True))

    def without(self, report: Report, rows: Sequence[pa.Table]) -> Report:
        assert isinstance(report, SelectionReport)
        return report.without(dict(zip(SPLITS, rows, strict=True)), REASON)
