"""Attacks on runs, stores, downloads, checkpoints and exports: how many are handled?

python -m tests.attacks.attack --dump SLICE.xml.bz2 [--only GROUP ...] [--cases 20] [--seed 0]

A case is handled if every command ends by itself in time and prints no traceback, if exit code 0
means the right result, and if a run that failed goes on to the same bytes with the same command.
In three groups a line that refuses to work is handled, too, and counted: where a record of the
outputs was removed, the outputs are of the changed dump, or the memory is too small.
Everything stays on this machine. Linux only; cases with small disks need root. Damaged files are in
`tests.attacks.faults`, signals in `tests.attacks.storm`.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.enlarge import enlarge
from tests.attacks import models, quiet, servers
from tests.attacks.kill import same_bytes

LONGEST_S = 300.0
_MB = 1 << 20
_CLOCK = """
import random, time
_now = time.time
time.time = lambda: _now() + random.choice((-1, 0, 1)) * 3e7
"""
"""A `sitecustomize` by which each look at the clock gives another year."""

Disturb = Callable[["subprocess.Popen[str]"], object]


@dataclass
class World:
    """What the cases share.

    Attributes:
        folder: folder of the case.
        dump: a dump of many units.
        whole: outputs of an undisturbed run.
        whole_s: seconds that this run took.
        draw: draws the moments and kinds of attacks.
        command: the command, without its output.
        refused: number of cases that ended with a refusal in one line instead of the bytes.
    """

    folder: Path
    dump: Path
    whole: Path
    whole_s: float
    draw: random.Random
    command: list[str] = field(default_factory=list)
    refused: int = 0

    def moment(self) -> float:
        """A moment of a run, in seconds from its start."""
        return self.draw.uniform(0.3, 1.1 * self.whole_s)


def run(
    command: Sequence[str], disturb: Disturb | None = None, variables: Mapping[str, str] = {}
) -> tuple[int | None, str]:
    """Runs a command and disturbs it; its exit code, None for one that hangs, and its errors."""
    with tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=err,
            text=True,
            start_new_session=True,
            env={**os.environ, **variables},
        )
        if disturb is not None:
            disturb(process)
        try:
            code: int | None = process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        err.seek(0)
        return code, err.read()


def disturbed(
    world: World,
    disturb: Disturb | None,
    mend: Callable[[], object] = bool,
    output: Path | None = None,
    variables: Mapping[str, str] = {},
    refusal: str = "",
) -> str:
    """Disturbs a run, mends what was done, and runs the same command again; "" if handled.

    Args:
        world: what the cases share.
        disturb: takes the process of the run.
        mend: is called before the command is run again.
        output: folder of the outputs.
        variables: of the environment of the first run.
        refusal: words of a line with which a run of this group may refuse to work.
    """
    output = output or world.folder / "out"
    code, err = run([*world.command, str(output)], disturb, variables)
    if code != -signal.SIGKILL and (told := servers.fault(code, err, (0, 1, 2, 130))):
        return told
    if code == 0 and not (output.is_dir() and same_bytes(output, world.whole)):
        return "exit code 0 with other bytes"
    world.refused += bool(refusal) and refusal in err
    mend()
    code, err = run([*world.command, str(output)])
    if code == 2 and refusal and refusal in err:
        world.refused += 1
        return ""
    if told := servers.fault(code, err, (0,)):
        return f"again: {told}"
    return "" if same_bytes(output, world.whole) else "again: other bytes"


def kills(world: World) -> str:
    """SIGKILL to a run with many parts, with all of its processes."""
    after_s = world.moment()

    def disturb(process: subprocess.Popen[str]) -> None:
        time.sleep(after_s)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    return disturbed(world, disturb)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Callable[[str], None]]:
    """A file system of some bytes; gives a function that mounts it with other options."""
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    subprocess.run(options, check=True, capture_output=True)
    try:
        yield lambda more: subprocess.run(
            ["mount", "-o", f"remount,{more}", str(folder)], check=True, capture_output=True
        )
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def full_disk(world: World) -> str:
    """An output that does not fit."""
    size = sum(path.stat().st_size for path in world.whole.rglob("*") if path.is_file())
    room = int(size * world.draw.uniform(0.02, 1.2))
    with small_disk(world.folder / "disk", room) as remount:
        output = world.folder / "disk" / "out"
        return disturbed(world, None, lambda: remount(f"size={4 * size}"), output)


def read_only(world: World) -> str:
    """An output that becomes read-only at some moment."""
    after_s = world.moment()
    with small_disk(world.folder / "disk", 1 << 30) as remount:

        def disturb(_: subprocess.Popen[str]) -> None:
            time.sleep(after_s)
            with suppress(subprocess.CalledProcessError):  # a file is being written
                remount("ro")

        output = world.folder / "disk" / "out"
        return disturbed(world, disturb, lambda: remount("rw"), output)


def removed(world: World) -> str:
    """The output, or one of its folders, is removed while the run is at work."""
    after_s = min(world.moment(), 0.8 * world.whole_s)  # not behind its last look
    name = world.draw.choice(["", "documents", "entities", "examples", "corpus", "manifest.json"])

    def disturb(_: subprocess.Popen[str]) -> None:
        time.sleep(after_s)
        path = world.folder / "out" / name
        path.unlink(missing_ok=True) if path.is_file() else shutil.rmtree(path, ignore_errors=True)

    told = disturbed(world, disturb, refusal="not empty, and no run made it")
    return f"{name or 'all'}: {told}" if told else ""


def changed_dump(world: World) -> str:
    """The dump is changed at some moment, and is then as it was."""
    dump = world.folder / world.dump.name
    shutil.copy2(world.dump, dump)
    content, after_s = dump.read_bytes(), world.moment()
    kind = world.draw.choice(["appended", "cut", "flipped", "replaced", "touched", "removed"])

    def disturb(_: subprocess.Popen[str]) -> None:
        time.sleep(after_s)
        place = world.draw.randrange(1000, len(content))
        changed = {
            "appended": content + content[-1000:],
            "cut": content[:place],
            "flipped": content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :],
            "replaced": content[::-1],
        }
        if kind == "removed":
            dump.unlink()
        elif kind == "touched":
            os.utime(dump, (0, 0))
        else:
            dump.write_bytes(changed[kind])

    before = world.command
    world.command = [str(dump) if word == str(world.dump) else word for word in before]
    try:
        told = disturbed(
            world, disturb, lambda: dump.write_bytes(content), refusal="made from another dump"
        )
        return f"{kind}: {told}" if told else ""
    finally:
        world.command = before


def memory(world: World) -> str:
    """A limit of the address space."""
    limit = int(world.draw.uniform(900, 6000)) * _MB

    def disturb(process: subprocess.Popen[str]) -> None:
        resource.prlimit(process.pid, resource.RLIMIT_AS, (limit, limit))

    return disturbed(world, disturb, refusal="ulimit -v leaves")


def clock(world: World) -> str:
    """A clock that jumps by years."""
    (world.folder / "sitecustomize.py").write_text(_CLOCK)
    return disturbed(world, None, variables={"PYTHONPATH": str(world.folder)})


def world_of(folder: Path, slice: Path, copies: int, seed: int) -> World:
    """Makes the dump, and the undisturbed run."""
    dump = folder / "enwiki-multistream.xml.bz2"
    enlarge(slice, dump, copies)
    command = [sys.executable, "-m", "nerbert", "corpus", "--dump", str(dump), "--workers", "2"]
    command += ["--min-entities", "2", "--output"]
    began = time.monotonic()
    code, err = run([*command, str(folder / "whole")])
    if code:
        raise RuntimeError(f"the undisturbed run failed: {err}")
    draw = random.Random(seed)
    whole_s = time.monotonic() - began
    return World(folder, dump, folder / "whole", whole_s, draw, command)


def on_server(case: Callable[[Path, random.Random], str]) -> Callable[[World], str]:
    """A case that needs a folder and a draw only."""
    return lambda world: case(world.folder, world.draw)


GROUPS: dict[str, tuple[Callable[[World], str], int]] = {
    "kills, many parts": (kills, 3),
    "full disk": (full_disk, 1),
    "read-only disk": (read_only, 1),
    "output removed": (removed, 1),
    "dump changed": (changed_dump, 1),
    "memory limit": (memory, 1),
    "clock that jumps": (clock, 1),
    "s3: 403, lost connections": (on_server(servers.store), 1),
    "s3: two runs": (on_server(servers.two_runs), 1),
    "fetch: TLS": (on_server(servers.tls), 1),
    "fetch: a few bytes a minute": (on_server(servers.slow), 1),
    "hub: lost connections": (on_server(servers.hub), 1),
    "checkpoints of mixed files": (on_server(models.mixed), 5),
    "ONNX files of other taggers": (on_server(models.onnx), 1),
    "exports of odd texts": (on_server(models.exports), 1),
    **{name: (on_server(quiet.quiet(case)), 1) for name, case in quiet.CASES.items()},
}
"""Name -> a case, which returns what is wrong, and how many times `--cases` it is tried."""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a row for each group; returns 1 if a case failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", type=Path, required=True, help="a slice, .xml.bz2")
    parser.add_argument("--copies", type=int, default=2)
    parser.add_argument("--cases", type=int, default=20, help="of a group")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    failed: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        world = world_of(Path(temporary), options.dump, options.copies, options.seed)
        print(
            f"{world.whole_s:.1f} s undisturbed\n{'':36}{'tried':>7}{'handled':>9}{'refused':>9}",
            flush=True,
        )
        for name in options.only:
            case, times = GROUPS[name]
            failed[name], world.refused = [], 0
            for number in range(times * options.cases):
                world.folder = Path(temporary) / f"case-{number}"
                world.folder.mkdir()
                if told := case(world):
                    failed[name].append(f"{name}, case {number}: {told}")
                shutil.rmtree(world.folder)
            tried = times * options.cases
            handled = tried - len(failed[name])
            print(f"{name:36}{tried:7}{handled:9}{world.refused:9}", flush=True)
    for line in (line for told in failed.values() for line in told[:20]):
        print(line)
    return 1 if any(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
