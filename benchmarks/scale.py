"""Memory as the input grows, and what a second worker is worth.

python -m benchmarks.scale --dump SLICE.xml.bz2 [--copies 8] [--times 10] [--types FILE ...]

Peak memory is that of the largest process of a run: with one worker the run itself, with two a
worker or the run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.corpus import Row, measured
from benchmarks.enlarge import enlarge

STAGES = ("extract", "resolve", "corpus")


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a table and writes it as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", type=Path, required=True, help="a slice, .xml.bz2")
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--times", type=int, default=10, help="how much larger the larger input is")
    parser.add_argument("--types", nargs="*", default=[])
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options = parser.parse_args(argv)
    rows: dict[str, Row] = {}
    typed = ["--types", *options.types] if options.types else []
    with tempfile.TemporaryDirectory() as folder:
        for times in (1, options.times):
            dump = Path(folder) / f"enwiki-{times}-multistream.xml.bz2"
            megabytes = enlarge(options.dump, dump, options.copies * times) / 1e6
            for workers in (1, 2):
                output = f"{folder}/out-{times}-{workers}"
                command = [sys.executable, "run_pipeline.py", "--dump", str(dump), *typed]
                command += ["--output", output, "--workers", str(workers)]
                for stage in STAGES:
                    rows[f"{times}x, {workers} worker(s), {stage}"] = {
                        "megabytes": megabytes,
                        **measured([*command, "--stage", stage]),
                    }
            dump.unlink()
    print(f"{'run':32}{'MB XML':>9}{'CPU s':>9}{'wall s':>9}{'peak MiB':>10}")
    for name, row in rows.items():
        print(
            f"{name:32}{row['megabytes']:9.1f}{row['cpu_s']:9.1f}{row['wall_s']:9.1f}"
            f"{row['peak_mib']:10.0f}"
        )
    for stage in STAGES:
        small, large = (
            rows[f"1x, 1 worker(s), {stage}"],
            rows[f"{options.times}x, 1 worker(s), {stage}"],
        )
        two = rows[f"{options.times}x, 2 worker(s), {stage}"]
        more, faster = large["peak_mib"] / small["peak_mib"], large["wall_s"] / two["wall_s"]
        print(
            f"{stage:10} memory at {options.times}x / 1x: {more:.3f}; two workers: {faster:.2f} "
            "times as fast"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
