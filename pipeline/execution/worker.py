"""A worker process of `pipeline.execution.local`: receives elements and sends reports."""

from __future__ import annotations

import pickle
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

from nerbert.storage.parts import Report
from pipeline.execution.part_pass import Pass


def main(descriptor: int) -> None:
    """Works until the connection is closed.

    Args:
        descriptor: file descriptor of the socket to the parent process.
    """
    connection: Connection[Any, Any] = Connection(descriptor)
    messages: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_listen, args=(connection, messages), daemon=True).start()
    step: Pass | None = None
    known: Any = None
    report: Report | None
    error: Exception | None
    opened = False
    while True:
        first, second = messages.get()
        if isinstance(first, Pass):
            step, known = first, second
            opened = False
            continue
        assert step is not None
        try:
            if not opened:
                step.open()
                opened = True
            report, error = step.run(second, known), None
        except Exception as raised:
            report, error = None, _sendable(raised)
        connection.send((first, report, error))


def _sendable(error: Exception) -> Exception:
    """The exception with its traceback as a note, because pickling loses the traceback."""
    text = "".join(traceback.format_exception(error))
    error.add_note(text)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # some exceptions cannot be pickled, or not be made from their arguments
        return RuntimeError(text)
    return error


def _listen(connection: Connection[Any, Any], messages: SimpleQueue[Any]) -> None:
    """Passes messages on, until the parent process ends; see `pipeline.execution.watch`."""
    with suppress(EOFError, OSError):
        while True:
            messages.put(connection.recv())
