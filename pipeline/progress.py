"""Progress of a stage, read from the reports that appear as units are done."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

from pipeline import files, parts

_LOGGER = logging.getLogger(__name__)
_POLL_S = 0.5
_LINE_S = 15.0


def count_done(folder: str, seen: dict[str, int]) -> tuple[int, int]:
    """Units done and pages read, from the reports of a folder; `seen` remembers pages by file."""
    for path in files.find(files.join(folder, "reports", "part-*.json")):
        if path not in seen:
            report: parts.Report = files.read_json(path)
            seen[path] = report.get("pages", {}).get("read", 0)
    return len(seen), sum(seen.values())


@contextmanager
def shown(stage: str, folder: str, units: int) -> Iterator[None]:
    """Shows how far a stage is: a bar on a terminal, plain lines otherwise."""
    if files.is_remote(folder):
        yield
        return
    stop, started = threading.Event(), threading.Event()
    show = _bar if sys.stderr.isatty() else _lines
    thread = threading.Thread(target=show, args=(stage, folder, units, stop, started), daemon=True)
    thread.start()
    started.wait()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _poll(folder: str, stop: threading.Event, tell: Callable[[int, int, float], None]) -> None:
    seen: dict[str, int] = {}
    start = time.monotonic()
    _, before = count_done(folder, seen)  # what an earlier run did
    while True:
        finished = stop.wait(_POLL_S)
        done, pages = count_done(folder, seen)
        tell(done, pages - before, time.monotonic() - start)
        if finished:
            return


def _bar(
    stage: str, folder: str, units: int, stop: threading.Event, started: threading.Event
) -> None:
    # A descriptor of its own: a stage's workers write to file descriptor 2, which is put aside.
    with (
        os.fdopen(os.dup(2), "w") as terminal,
        tqdm(total=units, desc=f"{stage:8}", unit="unit", file=terminal) as bar,
    ):
        started.set()

        def tell(done: int, pages: int, elapsed_s: float) -> None:
            bar.n = done
            bar.set_postfix_str(f"{pages / max(elapsed_s, 1e-3):,.0f} pages/s" if pages else "")
            bar.refresh()

        _poll(folder, stop, tell)


def _lines(
    stage: str, folder: str, units: int, stop: threading.Event, started: threading.Event
) -> None:
    started.set()
    last = 0.0

    def tell(done: int, pages: int, elapsed_s: float) -> None:
        nonlocal last
        if elapsed_s - last < _LINE_S and not stop.is_set():
            return
        last = elapsed_s
        rate = f", {pages / max(elapsed_s, 1e-3):,.0f} pages/s" if pages else ""
        left = f", {elapsed_s * (units - done) / done:.0f} s left" if 0 < done < units else ""
        _LOGGER.info("%s: %d of %d units in %.0f s%s%s", stage, done, units, elapsed_s, rate, left)

    _poll(folder, stop, tell)
