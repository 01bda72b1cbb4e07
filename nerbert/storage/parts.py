"""Part files and their reports.

Files are written atomically, so that a stopped run can continue. The folder of a stage holds
`part-*.parquet`, `reports/part-*.json` and `stage.json`. The report of a part says what was
counted; it is written last, so it marks the part as finished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nerbert.errors import RunError, UserError
from nerbert.storage.places import Place


@dataclass
class Report:
    """Counts of one part. Each kind of report is a dataclass of JSON-ready values."""

    def to_json(self) -> dict[str, Any]:
        """Content of the report's file."""
        return dict(vars(self))

    @classmethod
    def sum(cls, reports: Iterable[Self]) -> Self:
        """Sums of the numbers, of the numbers in tables, and of the lists; texts stay empty."""
        total = cls()
        for report in reports:
            add(vars(total), vars(report))
        return total


@contextmanager
def writer(path: Place, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """Opens a Parquet file for writing. It appears under `path` when the block ends."""
    with (
        path.atomic_write() as file,
        pq.ParquetWriter(file, schema, compression="zstd", version="2.6") as parquet,
    ):
        yield parquet


@contextmanager
def writer_if_rows(path: Place, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Gives a function that writes batches to `path`. Without rows no file is written."""
    with ExitStack() as stack:
        parquet: list[pq.ParquetWriter] = []

        def write(batch: pa.RecordBatch) -> None:
            if len(batch):
                if not parquet:
                    parquet.append(stack.enter_context(writer(path, schema)))
                parquet[0].write_batch(batch)

        yield write


@contextmanager
def _damage_as_run_error(path: str) -> Iterator[None]:
    """Raises a RunError of one line for a part that has other bytes than were written."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        if getattr(error, "errno", None):  # of the disk; a damaged footer is an OSError without one
            raise
        reason = " ".join(str(error).split())[:100]
        raise RunError(
            f"{path}: damaged ({reason}); remove it, and run the same command again"
        ) from None


def read_batches(
    path: Place, columns: Sequence[str] | None = None, rows: int = 4096
) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a part in order, in batches of at most `rows`."""
    with _damage_as_run_error(path), path.open_read() as file, pq.ParquetFile(file) as parquet:
        yield from parquet.iter_batches(batch_size=rows, columns=columns)


def read_groups(path: Place) -> Iterator[pa.Table]:
    """Reads the rows of a part in order, in the groups in which they were written."""
    with _damage_as_run_error(path), path.open_read() as file, pq.ParquetFile(file) as parquet:
        for group in range(parquet.num_row_groups):
            yield parquet.read_row_group(group)


def schema_of(path: Place) -> pa.Schema:
    """The columns of a part, with their metadata."""
    with path.open_read() as file:
        return pq.read_schema(file)


def read_range(path: Place, column: str, low: int, high: int) -> pa.Table:
    """Reads the rows of a part with `low <= column < high`; other row groups are not read."""
    field = pc.field(column)
    rows = (field >= pa.scalar(low, pa.uint64())) & (field <= pa.scalar(high - 1, pa.uint64()))
    with _damage_as_run_error(path), path.open_read() as file:
        return pq.read_table(file, filters=rows)


def read_tables(paths: Sequence[Place], schema: pa.Schema) -> pa.Table:
    """Reads several parts into memory.

    Args:
        paths: paths of the parts.
        schema: columns that are read.
    """
    tables = [schema.empty_table()]
    for path in paths:
        with _damage_as_run_error(path), path.open_read() as file:
            tables.append(pq.read_table(file, columns=schema.names).cast(schema))
    return pa.concat_tables(tables)


def n_rows(path: str | Path) -> int:
    """Number of rows of a local part, from its footer."""
    return int(pq.read_metadata(path).num_rows)


def column_names(path: str | Path) -> list[str]:
    """Names of the columns of a local part.

    Raises:
        UserError: the file cannot be read, or is damaged.
    """
    try:
        names: list[str] = pq.read_schema(path).names
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: no Parquet file ({error}); make the corpus again") from error
    return names


def check_columns(path: str | Path, needed: Sequence[str]) -> None:
    """Checks that a local part has some columns.

    Raises:
        UserError: the file cannot be read, is damaged, or lacks a column.
    """
    names = column_names(path)
    for name in needed:
        if name not in names:
            raise UserError(f"{path}: no column {name!r}; make the corpus again")


R = TypeVar("R", bound=Report)


def report_path(part: Place) -> Place:
    """Path of the report of a part."""
    return part.folder / "reports" / (part.name.removesuffix(".parquet") + ".json")


def finished(part: Place, kind: type[R]) -> R | None:
    """The report of a part that an earlier run finished; None if it is not finished."""
    report = report_path(part).read_json_or_none()
    return kind(**report) if isinstance(report, dict) else None


def finish(part: Place, report: Report) -> None:
    """Writes the report of a part, which marks the part as finished."""
    report_path(part).write_json(report.to_json())


def add(total: dict[str, Any], addend: Mapping[str, Any]) -> None:
    """Adds numbers, numbers in tables, and lists to those of the same names, in place."""
    for name, value in addend.items():
        if isinstance(value, Mapping):
            add(total.setdefault(name, {}), value)
        elif isinstance(value, list):
            total.setdefault(name, []).extend(value)
        elif not isinstance(value, str):
            total[name] = total.get(name, 0) + value
