"""Progress of a stage: a bar on a terminal or in a notebook, log lines otherwise."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm.auto import tqdm

_LOGGER = logging.getLogger(__name__)
_LINE_S = 15.0

Add = Callable[[int], None]
"""Called for each finished part with the number of pages that were read for it."""


def has_bars() -> bool:
    """Whether progress is a bar: on a terminal, and in a notebook."""
    # It is there if Python runs in it, and costs seconds to load.
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return (shell is not None and "IPKernelApp" in shell.config) or sys.stderr.isatty()


def duration(seconds: float) -> str:
    """A time in whole seconds or minutes, such as "90 s" or "12 min"."""
    return f"{seconds / 60:.0f} min" if seconds > 120 else f"{seconds:.0f} s"


class Countdown:
    """Says after each of some long runs how many there are still, and about how long they take."""

    def __init__(self, runs: int) -> None:
        """Starts the clock.

        Args:
            runs: number of runs.
        """
        self._left, self._done, self._start = runs, 0, time.monotonic()

    def __call__(self) -> str:
        """Counts a run; returns text such as "5 more in about 12 min", "" after the last."""
        self._done, self._left = self._done + 1, self._left - 1
        if self._left < 1:
            return ""
        rate = (time.monotonic() - self._start) / self._done
        return f"{self._left} more in about {duration(rate * self._left)}"


class _Bar:
    """A progress bar over parts."""

    def __init__(self, stage: str, parts: int) -> None:
        self._bar: Any = tqdm(total=parts, desc=f"{stage:8}", unit="part")
        self._start, self._pages = time.monotonic(), 0

    def add(self, pages: int) -> None:
        """Counts a part."""
        self._pages += pages
        if self._pages:
            rate = self._pages / max(time.monotonic() - self._start, 1e-3)
            self._bar.set_postfix_str(f"{rate:,.0f} pages/s", refresh=False)
        self._bar.update()

    def close(self) -> None:
        """Ends the bar; it stays visible."""
        self._bar.close()


class _Lines:
    """A log line every 15 seconds, and one at the end."""

    def __init__(self, stage: str, parts: int) -> None:
        self._stage, self._parts = stage, parts
        self._start, self._told = time.monotonic(), 0.0
        self._done = self._pages = 0

    def add(self, pages: int) -> None:
        """Counts a part."""
        self._done += 1
        self._pages += pages
        if self._elapsed_s() - self._told >= _LINE_S:
            self._log()

    def close(self) -> None:
        """Logs the last line."""
        self._log()

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._start

    def _log(self) -> None:
        elapsed_s = self._told = self._elapsed_s()
        rate = f", {self._pages / max(elapsed_s, 1e-3):,.0f} pages/s" if self._pages else ""
        remaining = ""
        if 0 < self._done < self._parts:
            remaining = f", {duration(elapsed_s * (self._parts - self._done) / self._done)} left"
        _LOGGER.info(
            "%s: %d of %d parts in %.0f s%s%s",
            self._stage,
            self._done,
            self._parts,
            elapsed_s,
            rate,
            remaining,
        )


@contextmanager
def progress_bar(stage: str, parts: int) -> Iterator[Add]:
    """Shows the progress of a stage; the block calls the given function for each finished part."""
    display = (_Bar if has_bars() else _Lines)(stage, parts)
    try:
        yield display.add
    finally:
        display.close()


@contextmanager
def polled(
    stage: str, parts: int, count: Callable[[], int], pause_s: float = 0.5
) -> Iterator[None]:
    """Shows the progress of a stage that runs outside this process.

    Args:
        stage: name of the stage.
        parts: number of its parts.
        count: returns the number of finished parts.
        pause_s: seconds between two looks.
    """
    stop = threading.Event()

    def watch(add: Add) -> None:
        n_reported = 0
        while True:
            finished = stop.wait(pause_s)
            parts_done = count()
            for _ in range(parts_done - n_reported):
                add(0)
            n_reported = max(n_reported, parts_done)
            if finished:
                return

    with progress_bar(stage, parts) as add:
        thread = threading.Thread(target=watch, args=(add,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
