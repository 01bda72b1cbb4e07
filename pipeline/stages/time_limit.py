"""A limit of the time that a page may take."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TooSlowError(Exception):
    """The block took longer than its limit."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Ends the block after some seconds, also within a regular expression.

    Only the main thread of a process can be interrupted; other threads, such as those of Beam's
    workers, have no limit.

    Raises:
        TooSlowError: the block took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise TooSlowError(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
