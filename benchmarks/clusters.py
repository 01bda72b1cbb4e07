"""How fast `extract` is on a cluster, beside local workers, without the time to start.

python -m benchmarks.clusters --dump FILES --output DIR [--workers 2] [--rounds 2] --runner FLAGS...

Flags from --runner on are Beam's. DIR must be seen by all hosts, and be new. Both runs of a round
come one after the other; speed is parts a second from the first finished part to the last one.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def extracted(dump: str, output: Path, flags: Sequence[str]) -> tuple[float, float]:
    """Runs `extract`; returns seconds until the first part, and parts a second after it."""
    command = [sys.executable, "run_pipeline.py", "--dump", dump, "--stage", "extract"]
    began = time.time()
    subprocess.run(
        [*command, "--output", str(output), *flags], check=True, capture_output=True, text=True
    )
    reports = (output / "documents" / "reports").glob("part-*.json")
    times = sorted(report.stat().st_mtime for report in reports)
    return times[0] - began, (len(times) - 1) / (times[-1] - times[0])


def main(argv: Sequence[str] | None = None) -> None:
    """Prints a row for each run, and the ratio of the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", required=True, help="pattern of files of about one size")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--workers", default="2", help="local worker processes")
    parser.add_argument("--rounds", type=int, default=2)
    options, flags = parser.parse_known_args(argv)
    ways = {"local": ["--workers", options.workers], "cluster": flags}
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    print(f"{'':10}{'first part':>12}{'parts/s':>10}")
    for number in range(options.rounds):
        for name, more in ways.items():
            first, speed = extracted(options.dump, options.output / f"{name}-{number}", more)
            speeds[name].append(speed)
            print(f"{name:10}{first:>10.1f} s{speed:>10.2f}", flush=True)
    ratio = statistics.median(speeds["local"]) / statistics.median(speeds["cluster"])
    print(f"the cluster takes {ratio:.2f} times as long, start apart")


if __name__ == "__main__":
    main()
