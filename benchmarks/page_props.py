r"""Reads the Wikidata ids of a table of page_props: seconds and memory, beside mwsql.

    python -m benchmarks.page_props --rows 60000000 --work DIR

English Wikipedia has 60 M rows. The table is made first, in the layout of MediaWiki's SQL dumps.
Each reader runs in its own process; mwsql is left out if it is not installed (extra `bench`).
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

from nerbert.storage.places import Place

PROPERTIES = {
    "defaultsort": "O\\'Brien, Conan",
    "displaytitle": "<i>Animalia</i>",
    "page_image_free": "Example (1).jpg",
    "unexpectedUnconnectedPage": "0",
    "wikibase-shortdesc": "Species of beetle",
    "wikibase_item": "Q",
}
READERS = ("nerbert", "mwsql")


def make(path: Path, rows: int) -> None:
    """Writes a table with this number of rows; a sixth of them are Wikidata ids."""
    draw, page, written = random.Random(0), 10, 0
    with gzip.open(path, "wt", compresslevel=4, encoding="utf-8") as file:
        file.write(
            "-- MySQL dump\nCREATE TABLE `page_props` (\n  `pp_page` int(8) NOT NULL\n);\n\n"
        )
        while written < rows:
            values: list[str] = []
            while len(values) < 20_000 and written + len(values) < rows:
                for name, value in PROPERTIES.items():
                    if draw.random() < 0.55:
                        number = draw.randrange(1, 130_000_000) if value == "Q" else ""
                        values.append(f"({page},'{name}','{value}{number}',NULL)")
                page += draw.randrange(1, 4)
            written += len(values)
            file.write(f"INSERT INTO `page_props` VALUES {','.join(values)};\n")


def read(reader: str, path: str) -> int:
    """Counts the Wikidata ids."""
    if reader == "nerbert":
        from ontology.sources.sql import read_page_props

        return sum(len(ids) for ids, _ in read_page_props(Place(path)))
    from mwsql import Dump

    rows = Dump.from_file(path).rows(convert_dtypes=False)
    return sum(row[1] == "wikibase_item" for row in rows)


def main() -> None:
    """Runs the benchmark, or one reader."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--reader", choices=READERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    path = options.work / f"page_props-{options.rows}.sql.gz"
    if options.reader:
        start = time.perf_counter()
        found = read(options.reader, str(path))
        seconds = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"{options.reader:8} {found:>12,} ids  {seconds:7.1f} s  {memory:>6,} MiB")
        return
    options.work.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        make(path, options.rows)
    print(f"{options.rows:,} rows, {os.path.getsize(path):,} bytes")
    for reader in READERS:
        command = [sys.executable, "-m", "benchmarks.page_props", "--reader", reader]
        subprocess.run([*command, "--rows", str(options.rows), "--work", str(options.work)])


if __name__ == "__main__":
    main()
