"""One long table of results: a line is a score of a run, beside the facts of the run.

Every report is this table, turned on its side: a fact names the rows, another one the columns, and
a cell is the mean of what is left, with its deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from finetune.scoring.tables import cent, spread

Line = Mapping[str, Any]
"""Facts of a run, such as model, set, regime, shots and seed, and its score as `value`."""

Cell = list[float]
"""The values of a cell: one for each seed."""

Point = tuple[float, float, float]
"""Place on the axis, mean in per cent, and deviation."""

Average = Callable[[Sequence[Cell], Any], str]
"""Makes the last text of a row of its cells and its name."""


def average_of_means(cells: Sequence[Cell], head: Any = None) -> str:
    """The mean of the means of a row, in per cent; "-" if a cell is empty."""
    return cent(mean(map(mean, cells))) if all(cells) else "-"


def average_by_seed(cells: Sequence[Cell], head: Any = None) -> str:
    """The mean of a row and its deviation over the seeds, in per cent."""
    return spread([mean(column) for column in zip(*cells, strict=True)])


class Results:
    """Lines of scores, which can be narrowed, and turned into tables and curves."""

    def __init__(self, lines: Iterable[Line]) -> None:
        """Takes the lines, in the order of rows and columns."""
        self._lines = list(lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def where(self, **facts: Any) -> Results:
        """The lines that have these facts."""
        return Results(
            line for line in self._lines if all(line[name] == fact for name, fact in facts.items())
        )

    def by(self, name: str, scores: Callable[[Line], Mapping[Any, float]]) -> Results:
        """Splits each line into one for each type, language or other part that has a score.

        Args:
            name: what the parts are, such as "type": the column of the new lines.
            scores: takes a line, and returns part -> score.
        """
        return Results(
            {**line, name: key, "value": value}
            for line in self._lines
            for key, value in scores(line).items()
        )

    def facts(self, name: str) -> list[Any]:
        """The different values of a fact, in order."""
        return list(dict.fromkeys(line[name] for line in self._lines))

    @property
    def values(self) -> Cell:
        """The scores."""
        return [line["value"] for line in self._lines]

    def cells(self, rows: str, columns: str, names: Sequence[Any], head: Any) -> list[Cell]:
        """The cells of a row.

        Args:
            rows: the fact that names the rows.
            columns: the fact that names the columns.
            names: the columns.
            head: the row.
        """
        by_column: dict[Any, Cell] = {name: [] for name in names}
        for line in self._lines:
            if line[rows] == head and line[columns] in by_column:
                by_column[line[columns]].append(line["value"])
        return list(by_column.values())

    def pivot(
        self,
        rows: str,
        columns: str,
        title: str | tuple[str, ...] = "",
        row_names: Sequence[Any] | None = None,
        column_names: Sequence[Any] | None = None,
        titles: Mapping[Any, str] | None = None,
        average: tuple[str, Average] | None = None,
        text: Callable[[Cell, Any, Any], str] = lambda cell, row, column: spread(cell),
    ) -> list[list[str]]:
        """A table of texts; its first row is the header.

        Args:
            rows: the fact that names the rows.
            columns: the fact that names the columns.
            title: text above the names of the rows; several if these are tuples.
            row_names: the rows; None for all, in order.
            column_names: the columns; None for all, in order.
            titles: how names are shown, if not as they are.
            average: title of a last column, and what makes its texts.
            text: makes the text of a cell of its values, its row and its column.
        """
        titles = titles or {}
        heads = self.facts(rows) if row_names is None else list(row_names)
        names = self.facts(columns) if column_names is None else list(column_names)
        table = [[*_texts(title), *(titles.get(name, str(name)) for name in names)]]
        if average is not None:
            table[0].append(average[0])
        for head in heads:
            cells = self.cells(rows, columns, names, head)
            texts = [text(cell, head, name) for cell, name in zip(cells, names, strict=True)]
            last = [average[1](cells, head)] if average is not None else []
            table.append([*_texts(titles.get(head, head)), *texts, *last])
        return table

    def curves(self, lines: str, axis: str) -> dict[Any, list[Point]]:
        """The points of each curve: a fact names it, None for none; a number is the place."""
        of_name: dict[Any, dict[float, Cell]] = {}
        for line in self._lines:
            if line[lines] is None:
                continue
            points = of_name.setdefault(line[lines], {})
            points.setdefault(line[axis], []).append(100 * line["value"])
        return {
            name: [
                (place, mean(scores), stdev(scores) if len(scores) > 1 else 0.0)
                for place, scores in sorted(points.items())
            ]
            for name, points in of_name.items()
        }


def _texts(head: Any) -> list[str]:
    return list(map(str, head)) if isinstance(head, tuple) else [str(head)]
