"""A process that has loaded Beam and our stages, and forks workers.

It has one thread and no connection, so that a fork is safe. It ends when its standard input is
closed, and with it all workers.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import subprocess
import sys
import threading
import traceback
from importlib import import_module
from typing import Any

_LOADED = (
    "pipeline.clusters.check",
    "pipeline.execution.beam",
    "pipeline.documents.extract",
    "pipeline.entities.resolve",
    "pipeline.examples.corpus",
)
"""What the workers need."""
_LOOK_S = 1.0
_CACHE_BYTES = 100 << 20
"""For what a runner broadcasts, as in Beam's containers."""


class ForkServer:
    """The other side: starts and stops workers by messages to that process."""

    def __init__(self) -> None:
        """Starts the process, and waits until it has loaded everything.

        Raises:
            OSError: it ends before.
        """
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C in a terminal reaches it through us
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise OSError("a worker's process could not load Beam and nerbert; see above")

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *error: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def start(self, worker: str, endpoint: str) -> None:
        """Starts a worker, which connects to a runner. An earlier one of this id is killed.

        Args:
            worker: id of the worker.
            endpoint: HOST:PORT of the runner's control service.

        Raises:
            OSError: the process has ended.
        """
        self._send({"start": worker, "endpoint": endpoint})

    def stop(self, worker: str) -> None:
        """Kills a worker.

        Raises:
            OSError: the process has ended.
        """
        self._send({"stop": worker})

    def wait(self) -> int:
        """Waits for the end of the process; returns its exit code."""
        assert self._process.stdout is not None
        # In steps: a signal that comes just before a call that blocks would not end the call.
        while not select.select([self._process.stdout], [], [], _LOOK_S)[0]:
            pass
        return self._process.wait()

    def _send(self, message: dict[str, str]) -> None:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()


def _main() -> None:
    """Loads everything, then forks a worker for each message, until the input ends."""
    for module in _LOADED:  # only in this process: the other side must stay small
        import_module(module)
    gc.freeze()  # workers share what is loaded; a search for cycles would copy it
    print("ready", flush=True)
    workers: dict[str, int] = {}
    for line in sys.stdin:
        message = json.loads(line)
        for worker, number in list(workers.items()):
            if os.waitpid(number, os.WNOHANG)[0]:
                del workers[worker]
        # A runner that asks for a worker again has lost the one before.
        _kill(workers.pop(message.get("stop") or message["start"], None))
        if "stop" in message:
            continue
        if (number := os.fork()) == 0:
            _work(message["start"], message["endpoint"])
        else:
            workers[message["start"]] = number
    for number in workers.values():
        _kill(number)


def _kill(number: int | None) -> None:
    if number is not None:
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)


def _work(worker: str, endpoint: str) -> None:
    """Works for a runner until it closes the connection; never returns."""
    code = 1
    try:
        # It has been loaded before the fork.
        from apache_beam.runners.worker.sdk_worker import SdkHarness

        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(2, 1)
        SdkHarness(endpoint, worker_id=worker, state_cache_size=_CACHE_BYTES).run()
        code = 0
    except BaseException:  # the process must not return into the loop of its parent
        traceback.print_exc()
    finally:
        # At once: a unit whose runner is gone is not worth going on with.
        os._exit(code)


if __name__ == "__main__":
    _main()
