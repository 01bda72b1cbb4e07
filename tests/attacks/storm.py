"""Signals at random moments: does a run, with all of its processes, end within ten seconds?

python -m tests.attacks.storm --dump SLICE.xml.bz2 [--copies 2] [--cases 200] [--seed 0]

Each case starts a run with workers, and sends SIGINT, SIGTERM (once or twice) or SIGKILL to the
parent, or SIGKILL to a worker, from the first moment on. Every tenth case goes on with the same
command, and its bytes are compared with those of an undisturbed run. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.enlarge import enlarge
from tests.attacks.kill import same_bytes, start

LONGEST_S = 10.0
KINDS = {
    "SIGINT": [signal.SIGINT],
    "SIGTERM": [signal.SIGTERM],
    "SIGTERM twice": [signal.SIGTERM, signal.SIGTERM],
    "SIGKILL": [signal.SIGKILL],
    "SIGKILL to a worker": [],
}
_EVERY = 10


def session(leader: int) -> list[int]:
    """Living processes of a session, by its leader."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def strike(kind: str, leader: int, draw: random.Random) -> None:
    """Sends the signals of a kind."""
    if kind == "SIGKILL to a worker":
        workers = [pid for pid in session(leader) if pid != leader]
        if workers:
            os.kill(draw.choice(workers), signal.SIGKILL)
        return
    for number in KINDS[kind]:
        os.kill(leader, number)
        time.sleep(draw.uniform(0, 0.3))


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a row for each kind of signal; returns 1 if a run hung or a byte differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", type=Path, required=True, help="a slice, .xml.bz2")
    parser.add_argument("--copies", type=int, default=2)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args(argv)
    draw = random.Random(options.seed)
    # A shell lets its background jobs, and so their children, ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    times: dict[str, list[float]] = {kind: [] for kind in options.only}
    hung = differ = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "enwiki-multistream.xml.bz2"
        enlarge(options.dump, dump, options.copies)
        command = [sys.executable, "run_pipeline.py", "--dump", str(dump)]
        command += ["--min-entities", "2", "--workers", str(options.workers), "--output"]
        began = time.monotonic()
        if start([*command, str(Path(folder) / "undisturbed")]).wait():
            raise RuntimeError("the undisturbed run failed")
        whole_s = time.monotonic() - began
        for case in range(options.cases):
            kind = options.only[case % len(options.only)]
            output = Path(folder) / "struck"
            process = start([*command, str(output)])
            time.sleep(draw.uniform(0, whole_s))
            sent = time.monotonic()
            if process.poll() is None:
                strike(kind, process.pid, draw)
            # A worker that is killed before or behind its work does not end the run.
            limit = LONGEST_S + (whole_s if "worker" in kind else 0)
            while (process.poll() is None or session(process.pid)) and (
                time.monotonic() < sent + limit
            ):
                time.sleep(0.02)
            times[kind].append(time.monotonic() - sent)
            if left := session(process.pid):
                hung += 1
                print(f"case {case}, {kind}: {len(left)} processes live after {limit:.0f} s")
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
            if case % _EVERY == _EVERY - 1:
                if start([*command, str(output)]).wait():
                    raise RuntimeError("the run after the signals failed")
                compared += 1
                differ += not same_bytes(output, Path(folder) / "undisturbed")
                shutil.rmtree(output)
    print(f"{whole_s:.1f} s undisturbed, {options.workers} workers")
    print(f"{'':22}{'cases':>6}{'median s':>10}{'slowest s':>11}")
    for kind, found in times.items():
        ordered = sorted(found)
        print(f"{kind:22}{len(found):6}{ordered[len(found) // 2]:10.2f}{ordered[-1]:11.2f}")
    print(f"{hung} of {options.cases} hung; {differ} of {compared} outputs with other bytes")
    return 1 if hung or differ else 0


if __name__ == "__main__":
    sys.exit(main())
