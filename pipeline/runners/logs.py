"""What Beam and the engines log goes into files, so that the screen is that of a local run."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nerbert import files

NAME = "logs"
_OURS = logging.getLogger("nerbert")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@contextmanager
def kept_apart(output: str) -> Iterator[str]:
    """Sends all log lines but ours into `beam.log`; yields the folder, for other logs.

    Errors that end a thread go there, too: Beam's threads end so when a job is cancelled.

    Args:
        output: folder of the run. Beside a remote one the logs go to a temporary folder, which
            stays.
    """
    folder = tempfile.mkdtemp(prefix="nerbert-logs-")
    if not files.is_remote(output):
        os.rmdir(folder)
        folder = files.join(output, NAME)
        os.makedirs(folder, exist_ok=True)
    root = logging.getLogger()
    handlers, propagate, own = root.handlers[:], _OURS.propagate, _OURS.handlers[:]
    into = logging.FileHandler(files.join(folder, "beam.log"), encoding="utf-8")
    into.setFormatter(logging.Formatter(_FORMAT))
    root.handlers = [into]
    _OURS.handlers, _OURS.propagate = own or handlers, False
    hook, threading.excepthook = threading.excepthook, _log_thread
    try:
        yield folder
    finally:
        root.handlers, _OURS.handlers, _OURS.propagate = handlers, own, propagate
        threading.excepthook = hook
        into.close()


def _log_thread(end: threading.ExceptHookArgs) -> None:
    name = end.thread.name if end.thread else "unknown"
    logging.getLogger("apache_beam").error("thread %s ended", name, exc_info=end.exc_value)


def quiet() -> None:
    """Silences the C part of gRPC, which writes to the terminal for every closed channel.

    It takes effect if gRPC has not been loaded.
    """
    if "grpc" not in sys.modules:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
