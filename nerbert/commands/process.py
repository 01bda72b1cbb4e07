"""The process of a command: its signals, and the cores that it may use."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nerbert.errors import TooSlowError


@contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Makes SIGTERM end a command as Ctrl-C does, with one line.

    Python hands signals to its main thread; in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        # Beam's threads would print tracebacks after that line.
        logging.disable(logging.CRITICAL)
        threading.excepthook = lambda args: None
        raise KeyboardInterrupt

    def again(ignored: Any) -> None:
        """Python ignores an exception while it clears an object away; Ctrl-C must not be lost."""
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            # Not at once: what is raised in here would be ignored, too.
            timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
            timer.daemon = True
            timer.start()
        else:
            unraisable(ignored)

    hook, unraisable = threading.excepthook, sys.unraisablehook
    sys.unraisablehook = again
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        threading.excepthook = hook
        sys.unraisablehook = unraisable
        logging.disable(logging.NOTSET)


def cores() -> int:
    """Number of cores that this process may use."""
    # A container or a job of a cluster may use fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
