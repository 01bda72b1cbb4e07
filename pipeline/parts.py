"""Part files and the reports beside them: written whole or not at all, so a run can go on.

A stage's folder holds `part-*.parquet`, `reports/part-*.json` (what each unit counted; it appears
last, so it marks the part as done) and `stage.json` (what the parts were made from).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import files

Report = dict[str, Any]


@contextmanager
def writer(path: str, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """A Parquet file to write that appears under `path` whole when the block ends."""
    with (
        files.atomic_write(path) as file,
        pq.ParquetWriter(file, schema, compression="zstd", version="2.6") as parquet,
    ):
        yield parquet


@contextmanager
def writer_if_rows(path: str, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """A function that writes batches to `path`; no file is left when none has a row."""
    with ExitStack() as stack:
        parquet: list[pq.ParquetWriter] = []

        def write(batch: pa.RecordBatch) -> None:
            if len(batch):
                if not parquet:
                    parquet.append(stack.enter_context(writer(path, schema)))
                parquet[0].write_batch(batch)

        yield write


def read_batches(
    path: str, columns: Sequence[str] | None = None, rows: int = 4096
) -> Iterator[pa.RecordBatch]:
    """The rows of a part in order, `rows` at a time."""
    with files.open_read(path) as file, pq.ParquetFile(file) as parquet:
        yield from parquet.iter_batches(batch_size=rows, columns=columns)


def report_path(part: str) -> str:
    """Where the report of a part lies."""
    folder, _, name = part.replace("\\", "/").rpartition("/")
    return files.join(folder, "reports", name.removesuffix(".parquet") + ".json")


def finished(part: str) -> Report | None:
    """The report of a part that an earlier run finished, else None."""
    path = report_path(part)
    return files.read_json(path) if files.exists(path) else None


def finish(part: str, report: Report) -> Report:
    """Marks a part as done."""
    files.write_json(report_path(part), report)
    return report


def add_counts(total: dict[str, int], counts: dict[str, int]) -> dict[str, int]:
    """Adds `counts` to `total`, in place, and returns it."""
    for key, value in counts.items():
        total[key] = total.get(key, 0) + value
    return total
