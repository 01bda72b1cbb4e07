"""CPU time, wall time and peak memory of the stages on an enlarged slice.

python -m benchmarks.corpus --dump SLICE.xml.bz2 [--copies 8] [--workers 1] [--types FILE ...]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.enlarge import enlarge

STAGES = ("extract", "resolve", "corpus")


def measured(command: Sequence[str]) -> dict[str, float]:
    """CPU seconds (user and system, children too), wall seconds and peak RSS of a command."""
    code = (
        "import resource, subprocess, sys, json; "
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
        "u = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(json.dumps([done.returncode, u.ru_utime + u.ru_stime, u.ru_maxrss / 1024]))"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
    )
    status, cpu_s, peak_mib = json.loads(done.stdout.splitlines()[-1])
    if status:
        raise RuntimeError(f"{' '.join(command)}: exit code {status}\n{done.stderr[-2000:]}")
    wall_s = time.perf_counter() - start
    return {"cpu_s": round(cpu_s, 2), "wall_s": round(wall_s, 2), "peak_mib": round(peak_mib, 1)}


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a table and writes it as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", type=Path, required=True, help="a slice, .xml.bz2")
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--types", nargs="*", default=[])
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options = parser.parse_args(argv)
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "enwiki-large-multistream.xml.bz2"
        megabytes = enlarge(options.dump, dump, options.copies) / 1e6
        command = [sys.executable, "run_pipeline.py", "--dump", str(dump)]
        command += ["--output", f"{folder}/out", "--workers", str(options.workers)]
        types = ["--types", *options.types] if options.types else []
        for stage in STAGES:
            row = measured([*command, *types, "--stage", stage])
            row["mb_per_cpu_s"] = round(megabytes / row["cpu_s"], 2)
            rows[stage] = row
        size = sum(p.stat().st_size for p in Path(folder, "out").rglob("*") if p.is_file())
    print(f"{megabytes:.1f} MB of XML, {options.workers} worker(s); each row starts a new process")
    print(f"{'stage':10}{'CPU s':>8}{'wall s':>8}{'MB/CPU s':>10}{'peak MiB':>10}")
    for stage, row in rows.items():
        print(f"{stage:10}{row['cpu_s']:8.1f}{row['wall_s']:8.1f}{row['mb_per_cpu_s']:10.2f}"
              f"{row['peak_mib']:10.0f}")  # fmt: skip
    print(f"outputs: {size / 1e6:.1f} MB")
    if options.json:
        numbers = {
            "megabytes": megabytes,
            "workers": options.workers,
            "stages": rows,
            "bytes": size,
        }
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
