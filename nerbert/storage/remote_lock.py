"""A lock on a folder in a store: an object that its run writes again and again.

Stores have no locks that end with a process. A second run watches the object: as long as it
changes, its run lives, and the second one is refused. Clocks are not compared.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from nerbert.errors import RunError, UserError
from nerbert.storage import stores

BEAT_S = 15.0
"""Time between two writes of the object, seconds."""
_WAIT_S, _LOOK_S = 2.5 * BEAT_S, 0.5
_SETTLE_S = 1.0
"""Time after which a run looks whether another one began at the same moment, seconds."""


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Holds the lock at a remote path until the block ends.

    Raises:
        UserError: another run holds it.
        RunError: another run has taken it, because it saw no sign of life of this one.
    """
    _wait_for_end(path)
    lock = _Lock(path)
    lock.write()
    time.sleep(_SETTLE_S)
    if _read(path).get("run") != lock.run:
        raise _locked_error(path, _read(path))
    lock.start()
    try:
        yield
    finally:
        lock.stop()
    if lock.is_taken:
        raise RunError(
            f"{path.rpartition('/')[0]}: another run began here, because the store could not be "
            "reached for a while; run the same command again when it has ended"
        )


class _Lock:
    """The object of this run, and the thread that writes it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.run = secrets.token_hex(8)
        self.is_taken = False
        self._beat = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)

    def write(self) -> None:
        self._beat += 1
        content = {"run": self.run, "host": socket.gethostname(), "process": os.getpid()}
        stores.put_bytes(self._path, json.dumps({**content, "beat": self._beat}).encode())

    def start(self) -> None:
        self._thread.start()

    def _live(self) -> None:
        while not self._ended.wait(BEAT_S):
            # A store that cannot be reached now may be later; the run itself says what it lacks.
            with suppress(OSError, UserError, RunError):
                self.is_taken = self.is_taken or _read(self._path).get("run") != self.run
                if not self.is_taken:
                    self.write()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(OSError, UserError, RunError):
            if _read(self._path).get("run") == self.run:
                stores.remove([self._path])


def _read(path: str) -> dict[str, Any]:
    """The content of the object; empty if there is none."""
    try:
        content = json.loads(stores.read_whole(path))
    except (FileNotFoundError, ValueError):  # torn, where a store shows a part of a file
        return {}
    return content if isinstance(content, dict) else {}


def _wait_for_end(path: str) -> None:
    """Waits until there is no object, or its run shows no sign of life.

    Raises:
        UserError: its run lives.
    """
    first = _read(path)
    if not first or _has_ended(first):
        return
    end = time.monotonic() + _WAIT_S
    while time.monotonic() < end:
        time.sleep(_LOOK_S)
        content = _read(path)
        if not content:
            return
        if content != first:
            raise _locked_error(path, content)


def _has_ended(content: dict[str, Any]) -> bool:
    """Whether the run of an object was on this host, and has ended."""
    if content.get("host") != socket.gethostname():
        return False
    try:
        os.kill(int(content.get("process", 0)), 0)
    except (ProcessLookupError, ValueError):
        return True
    except PermissionError:
        return False
    return False


def _locked_error(path: str, content: dict[str, Any]) -> UserError:
    folder = path.rpartition("/")[0]
    return UserError(
        f"{folder}: another run is writing here (on {content.get('host', 'another host')}, process "
        f"{content.get('process', '?')}); wait for its end, or choose another --output"
    )
