"""Ends a worker process with its parent, from its first moment on. Standard library only."""

from __future__ import annotations

import os
import select
from threading import Thread


def end_with_parent(descriptor: int) -> None:
    """Ends this process as soon as the parent has closed its end of a socket.

    Loading the libraries takes a worker seconds, in which it does not read from the socket.
    """
    Thread(target=_watch, args=(descriptor,), daemon=True).start()


def _watch(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, 0)  # no event but the end of the other side
    poll.poll()
    # `sys.exit` would only end this thread, and an unfinished part is worth nothing.
    os._exit(1)
