"""CPU time, wall time and peak memory of our stages and of other programs on an enlarged slice.

python -m benchmarks.corpus --dump SLICE.xml.bz2 [--copies 8] [--rounds 3] [--types FILE ...]

Each program runs alone, in a process of its own, one after the other, several rounds. Programs that
are not installed are left out; the extra `bench` installs them, and --peers-python names another
interpreter that has them.
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
from statistics import median
from typing import Any

from benchmarks.enlarge import enlarge

Row = dict[str, float]

_MWPARSERFROMHELL = """
import bz2, sys, mwparserfromhell
from lxml import etree
for _, page in etree.iterparse(bz2.open(sys.argv[1]), tag="{*}page"):
    code = mwparserfromhell.parse(page.findtext("{*}revision/{*}text") or "")
    code.strip_code()
    [str(link.title) for link in code.ifilter_wikilinks()]
    page.clear()
"""


def measured(command: Sequence[str]) -> Row:
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
    wall_s = time.perf_counter() - start
    status, cpu_s, peak_mib = json.loads(done.stdout.splitlines()[-1])
    if status:
        raise RuntimeError(f"{' '.join(command)}: exit code {status}\n{done.stderr[-2000:]}")
    return {"cpu_s": cpu_s, "wall_s": wall_s, "peak_mib": peak_mib}


def programs(dump: str, folder: str, types: Sequence[str], python: str) -> dict[str, list[str]]:
    """Name -> command line. Ours write to another folder each time they are called."""
    ours = [sys.executable, "run_pipeline.py", "--dump", dump, "--workers", "1"]
    typed = ["--types", *types] if types else []
    peers = {
        "wikiextractor": [
            "-m",
            "wikiextractor.WikiExtractor",
            "--processes",
            "1",
            "-q",
            "-o",
            f"{folder}/wikiextractor",
            dump,
        ],
        "gensim": [
            "-m",
            "gensim.scripts.segment_wiki",
            "-w",
            "1",
            "-f",
            dump,
            "-o",
            f"{folder}/gensim.jsonl.gz",
        ],
        "wikipedia2vec": [
            "-c",
            "from wikipedia2vec.cli import cli; cli()",
            "build-dump-db",
            dump,
            f"{folder}/wikipedia2vec.db",
            "--pool-size",
            "1",
        ],
        "mwparserfromhell": ["-c", _MWPARSERFROMHELL, dump],
    }
    found = {
        "extract": [*ours, "--output", f"{folder}/extract", "--stage", "extract"],
        "all stages": [*ours, *typed, "--output", f"{folder}/all"],
    }
    for name, arguments in peers.items():
        check = [python, "-c", f"import {name}"]
        if subprocess.run(check, capture_output=True).returncode == 0:
            found[name] = [python, *arguments]
    return found


def ratios(runs: dict[str, list[Row]]) -> dict[str, dict[str, list[float]]]:
    """CPU ratios of each of our rows to each peer's in the same round: least, median, most."""
    found: dict[str, dict[str, list[float]]] = {}
    ours = [name for name in runs if name.startswith(("extract", "all"))]
    for peer in runs.keys() - set(ours):
        for name in ours:
            pairs = zip(runs[name], runs[peer], strict=True)
            values = sorted(a["cpu_s"] / b["cpu_s"] for a, b in pairs)
            found.setdefault(name, {})[peer] = [values[0], median(values), values[-1]]
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Prints tables and writes them as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", type=Path, required=True, help="a slice, .xml.bz2")
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--types", nargs="*", default=[])
    parser.add_argument("--peers-python", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    options = parser.parse_args(argv)
    runs: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory() as parent:
        dump = Path(parent) / "enwiki-large-multistream.xml.bz2"
        megabytes = enlarge(options.dump, dump, options.copies) / 1e6
        for number in range(options.rounds):
            folder = Path(parent) / f"round-{number}"
            folder.mkdir()
            commands = programs(str(dump), str(folder), options.types, options.peers_python)
            for name, command in commands.items():
                runs.setdefault(name, []).append(measured(command))
    _print(runs, megabytes)
    if options.json:
        numbers: dict[str, Any] = {"megabytes": megabytes, "runs": runs, "ratios": ratios(runs)}
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


def _print(runs: dict[str, list[Row]], megabytes: float) -> None:
    rounds = len(next(iter(runs.values())))
    print(f"{megabytes:.1f} MB of XML, one process each, median of {rounds} rounds")
    print(f"{'program':22}{'CPU s':>8}{'MB/CPU s':>10}{'wall s':>8}{'peak MiB':>10}")
    for name, rows in runs.items():
        cpu_s = median(row["cpu_s"] for row in rows)
        print(
            f"{name:22}{cpu_s:8.2f}{megabytes / cpu_s:10.2f}"
            f"{median(row['wall_s'] for row in rows):8.2f}"
            f"{max(row['peak_mib'] for row in rows):10.0f}"
        )
    print("\nCPU time as a share of theirs: median (least to most of the rounds)")
    for name, by_peer in ratios(runs).items():
        for peer, (least, middle, most) in sorted(by_peer.items()):
            print(f"{name:22}{peer:18}{middle:6.3f}  ({least:.3f} to {most:.3f})")


if __name__ == "__main__":
    main()
