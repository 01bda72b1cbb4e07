"""A worker process of `pipeline.execution.local`: receives elements and sends reports.

Only the standard library is imported at the top: loading the others takes seconds, in which the
worker must already end with its parent.
"""

from __future__ import annotations

import os
import pickle
import select
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nerbert.storage.parts import Report
    from pipeline.execution.part_pass import Pass


def main(descriptor: int) -> None:
    """Works until the connection is closed.

    Args:
        descriptor: file descriptor of the socket to the parent process.
    """
    Thread(target=_end_with_parent, args=(descriptor,), daemon=True).start()
    # These load Arrow; see above.
    from nerbert.commands.process import no_cycle_search
    from pipeline.execution.part_pass import Pass

    connection: Connection[Any, Any] = Connection(descriptor)
    messages: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_listen, args=(connection, messages), daemon=True).start()
    step: Pass | None = None
    gathered: Any = None
    report: Report | None
    error: Exception | None
    opened = False
    while True:
        first, second = messages.get()
        if isinstance(first, Pass):
            step, gathered = first, second
            opened = False
            continue
        assert step is not None
        try:
            if not opened:
                step.open()
                opened = True
            with no_cycle_search():
                report, error = step.run(second, gathered), None
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
    """Passes messages on, until the parent process ends."""
    with suppress(EOFError, OSError):
        while True:
            messages.put(connection.recv())


def _end_with_parent(descriptor: int) -> None:
    """Ends this process as soon as the parent has closed its end of the socket."""
    poll = select.poll()
    poll.register(descriptor, 0)  # no event but the end of the other side
    poll.poll()
    # `sys.exit` would only end this thread, and an unfinished part is worth nothing.
    os._exit(1)
