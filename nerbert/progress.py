"""Progress of stages, fits and downloads: a bar on a terminal or in a notebook, else log lines."""

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
    """Counts what is done of some work, and says about how long the rest takes."""

    def __init__(self, total: int, done: int = 0) -> None:
        """Starts the clock.

        Args:
            total: number of all parts, runs, steps or bytes.
            done: number of those that were done before.
        """
        self.total, self.done = total, done
        self._first, self._start = done, time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def left_s(self) -> float:
        """Seconds for the rest, at the rate of what is done since the start."""
        return self.elapsed_s * (self.total - self.done) / max(self.done - self._first, 1)

    def __call__(self) -> str:
        """Counts a run; returns text such as "5 more in about 12 min", "" after the last."""
        self.done += 1
        n_left = self.total - self.done
        return f"{n_left} more in about {duration(self.left_s)}" if n_left > 0 else ""


class Progress(Countdown):
    """Shows work: a bar on a terminal or in a notebook, otherwise log lines. Threads may share it.

    A line is logged every 15 seconds, and at the end.
    """

    def __init__(
        self,
        name: str,
        total: int,
        unit: str = "part",
        done: int = 0,
        has_lines: bool = True,
        **bar: Any,
    ) -> None:
        """Shows that the work begins.

        Args:
            name: name of the work.
            total: number of all parts, steps or bytes; 0 if nobody knows.
            unit: what is counted.
            done: number of those that were done before.
            has_lines: whether there are log lines where there is no bar.
            bar: other arguments of tqdm.
        """
        super().__init__(total, done)
        self._name, self._unit, self._has_lines, self._note = name, unit, has_lines, ""
        self._said_s, self._said_done = 0.0, -1
        self._lock = threading.Lock()
        self._bar: Any = None
        if has_bars():
            self._bar = tqdm(total=total or None, initial=done, desc=name, unit=unit, **bar)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the bar, or logs the last line."""
        if self._bar is not None:
            self._bar.close()
        elif self._has_lines and self.done != self._said_done:
            self._say(is_last=True)

    def add(self, number: int = 1, note: str | None = None) -> None:
        """Counts what is done.

        Args:
            number: how much it is.
            note: what stands beside the numbers from now on; None for what stood there.
        """
        with self._lock:
            self.done += number
            self._note = self._note if note is None else note
            if self._bar is not None:
                self._bar.set_postfix_str(self._note, refresh=False)
                self._bar.update(number)
            elif self._has_lines and self.elapsed_s - self._said_s >= _LINE_S:
                self._say()

    def log(self, text: str) -> None:
        """Logs a line, which stands above the bar."""
        with self._lock:
            if self._bar is not None:
                self._bar.clear()
            _LOGGER.info("%s", text)

    def _say(self, is_last: bool = False) -> None:
        self._said_s, self._said_done = self.elapsed_s, self.done
        counted = f"{self.done:,} of {self.total:,} {self._unit}s in {self.elapsed_s:.0f} s"
        is_known = self._first < self.done < self.total and not is_last
        remaining = f"{duration(self.left_s)} left" if is_known else ""
        _LOGGER.info(
            "%s: %s", self._name, ", ".join(filter(None, (counted, self._note, remaining)))
        )


@contextmanager
def progress_bar(stage: str, parts: int) -> Iterator[Add]:
    """Shows the progress of a stage; the block calls the given function for each finished part."""
    n_pages = 0
    with Progress(f"{stage:8}" if has_bars() else stage, parts) as progress:

        def add(pages: int) -> None:
            nonlocal n_pages
            n_pages += pages
            rate = n_pages / max(progress.elapsed_s, 1e-3)
            progress.add(1, f"{rate:,.0f} pages/s" if n_pages else "")

        yield add


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
