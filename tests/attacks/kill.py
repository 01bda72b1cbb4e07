"""Kills runs at random moments, runs the same command again, and compares parts and bytes.

python -m tests.attacks.kill --dump SLICE.xml.bz2 [--copies 2] [--kills 20] [--seed 0]
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.enlarge import enlarge


def tree(folder: Path) -> dict[str, Path]:
    """The files of a folder by their relative names."""
    return {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*")) if p.is_file()}


def finished(output: Path) -> dict[str, int]:
    """Parts that are done, with the time of their file; a report marks its part as done.

    A later step drops sentences of examples, so these are done when balancing has begun.
    """
    done = {}
    has_begun = any((output / "corpus" / "reports").glob("part-*.json"))
    for report in output.rglob("reports/part-*.json"):
        if report.parent.parent == output / "examples" and not has_begun:
            continue
        for part in report.parent.parent.rglob(report.name.replace(".json", ".parquet")):
            done[str(part.relative_to(output))] = part.stat().st_mtime_ns
    return done


def same_bytes(folder: Path, other: Path) -> bool:
    """Whether two folders have the same files with the same contents."""
    files, others = tree(folder), tree(other)
    for names in (files, others):
        names.pop(".lock", None)  # it is empty
        names.pop("logs/run.log", None)  # it has times
    return files.keys() == others.keys() and all(
        filecmp.cmp(path, others[name], shallow=False) for name, path in files.items()
    )


def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """A run in a process group of its own."""
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a row for each kill; returns 1 if a part was made twice or a byte differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", type=Path, required=True, help="a slice, .xml.bz2")
    parser.add_argument("--copies", type=int, default=2)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--types", nargs="*", default=[])
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options = parser.parse_args(argv)
    draw = random.Random(options.seed)
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "enwiki-multistream.xml.bz2"
        enlarge(options.dump, dump, options.copies)
        typed = ["--types", *options.types] if options.types else []
        command = [
            sys.executable,
            "run_pipeline.py",
            "--dump",
            str(dump),
            *typed,
            "--min-entities",
            "2",
        ]
        command += ["--output"]
        began = time.monotonic()
        undisturbed = Path(folder) / "undisturbed"
        if start([*command, str(undisturbed)]).wait():
            raise RuntimeError("the undisturbed run failed")
        whole_s = time.monotonic() - began
        print(
            f"{whole_s:.1f} s undisturbed\n{'kill':>5}{'after s':>9}{'done':>6}{'again':>7}  same"
        )
        while sum(row["killed"] for row in rows) < options.kills:
            number = len(rows)
            output = Path(folder) / "killed"
            workers = ["--workers", str(1 + number % 2)]
            after_s = draw.uniform(0.5, 0.95 * whole_s)
            process = start([*command, str(output), *workers])
            time.sleep(after_s)
            killed = process.poll() is None
            if killed:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            before = finished(output)
            if start([*command, str(output), *workers]).wait():
                raise RuntimeError("the run after the kill failed")
            after = finished(output)
            again = sum(after.get(part) != made for part, made in before.items())
            same = same_bytes(output, undisturbed)
            rows.append(
                {
                    "after_s": after_s,
                    "killed": killed,
                    "done": len(before),
                    "again": again,
                    "same": same,
                }
            )
            print(
                f"{number + 1:5}{after_s:9.2f}{len(before):6}{again:7}  {same}"
                f"{'' if killed else ' (had ended)'}",
                flush=True,
            )
            shutil.rmtree(output)
    bad = sum(bool(row["again"]) or not row["same"] for row in rows)
    print(f"{sum(row['killed'] for row in rows)} kills, {bad} with parts done twice or other bytes")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
