"""Runs a stage on this machine: in this process, or in several worker processes.

A worker is a plain Python process that receives elements and sends reports through a socket. It is
not a process of `multiprocessing`, which would run the user's own script again in every worker, and
would leave semaphores behind if a run is killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Pipe, wait
from typing import Any

from nerbert import progress
from nerbert.commands.process import cores, no_cycle_search
from nerbert.errors import WorkerDiedError
from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from pipeline.execution.executor import Executor
from pipeline.execution.part_pass import Gather, PartPass, Pass, Stage, part_passes

Done = Callable[[Report, bool], None]
"""Called for each part with its report, and with whether it was made in this run."""

# The import path is passed on, so that a worker imports the same packages, even if the current
# folder holds others of the same names.
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from pipeline.execution.worker import main; main(int(sys.argv[2]))"
)


class Local(Executor):
    """Runs stages in processes of this machine."""

    def __init__(self, workers: int | None) -> None:
        """Takes the number of worker processes; None for one a core."""
        self._workers = workers or cores()

    def run(self, name: str, stage: Stage, folder: Place) -> bool:
        """Runs a stage to its end."""
        sizes = [len(step.elements()) for step in part_passes(stage)]
        with progress.progress_bar(name, sum(sizes)) as add:

            def done(report: Report, is_new: bool) -> None:
                pages = getattr(report, "pages", {}).get("read", 0)
                add(pages if is_new else 0)

            run(stage, max(1, min(self._workers, max(sizes))), done)
        return True


def run(stage: Stage, workers: int, done: Done) -> None:
    """Runs the steps of a stage, one after the other.

    Args:
        stage: the stage.
        workers: number of worker processes; 1 runs everything in this process.
        done: called with each report.

    Raises:
        WorkerDiedError: a worker process was killed or crashed.
    """
    gathered: Any = None
    reports: list[Report] = []
    with _processes(workers) as processes:
        for step in stage:
            if isinstance(step, Gather):
                with no_cycle_search():
                    gathered = step.combine(reports, gathered)
            else:
                reports = _reports(step, gathered, processes, done)


def _reports(step: Pass, gathered: Any, processes: _Here | _Several, done: Done) -> list[Report]:
    """Runs a pass on the elements without a report; returns all reports in the elements' order."""
    elements = list(step.elements())
    reports = {
        n: earlier for n, element in enumerate(elements) if (earlier := step.finished(element))
    }
    report_done = done if isinstance(step, PartPass) else lambda report, is_new: None
    for report in reports.values():
        report_done(report, False)
    missing = [(n, element) for n, element in enumerate(elements) if n not in reports]
    for number, report in processes.run(step, gathered, missing) if missing else ():
        reports[number] = report
        report_done(report, True)
    return [reports[number] for number in range(len(elements))]


Numbered = Sequence[tuple[int, Any]]
"""Elements with their numbers."""


class _Here:
    """Runs passes in this process."""

    def run(self, step: Pass, gathered: Any, elements: Numbered) -> Iterator[tuple[int, Report]]:
        """Yields number and report of each element, as they are finished."""
        step.open()
        for number, element in elements:
            with no_cycle_search():
                report = step.run(element, gathered)
            yield number, report


class _Worker:
    """A worker process, and the connection to it."""

    def __init__(self) -> None:
        self.connection, child_end = Pipe()
        # Its own process group, so that Ctrl-C in a terminal does not interrupt the worker.
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(sys.path), str(child_end.fileno())],
            pass_fds=[child_end.fileno()],
            stdin=subprocess.DEVNULL,
            process_group=0,
        )
        child_end.close()

    def receive(self) -> Any:
        """Receives the answer of the worker.

        Raises:
            WorkerDiedError: the process has ended.
        """
        try:
            return self.connection.recv()
        except (EOFError, ConnectionResetError):
            raise self.death() from None

    def send(self, message: Any) -> None:
        """Sends a message.

        Raises:
            WorkerDiedError: the process has ended.
        """
        try:
            self.connection.send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self.death() from None

    def death(self) -> WorkerDiedError:
        """The error that says how the process ended."""
        return WorkerDiedError(
            f"A worker process ended with code {self.process.wait()} (killed, or out of memory?); "
            "run the same command again to continue; --workers 1 needs less memory"
        )


class _Several:
    """Runs passes in worker processes."""

    def __init__(self, workers: Sequence[_Worker]) -> None:
        self._workers = workers

    def run(self, step: Pass, gathered: Any, elements: Numbered) -> Iterator[tuple[int, Report]]:
        """Yields number and report of each element, as they are finished.

        Raises:
            WorkerDiedError: a worker has ended.
            Exception: the exception that a pass raised on an element.
        """
        waiting = iter(elements)
        at_work: dict[Any, _Worker] = {}

        def give(worker: _Worker) -> None:
            """Sends the next element to a worker, if there is one."""
            if (element := next(waiting, None)) is not None:
                worker.send(element)
                at_work[worker.connection] = worker

        for worker in self._workers[: len(elements)]:
            worker.send((step, gathered))
            give(worker)
        while at_work:
            for connection in wait(list(at_work)):
                worker = at_work.pop(connection)
                number, report, error = worker.receive()
                if error is not None:
                    raise error
                give(worker)
                yield number, report


@contextmanager
def _processes(workers: int) -> Iterator[_Here | _Several]:
    """Starts the worker processes of a stage; they are ended after the block in any case."""
    if workers == 1:
        yield _Here()
        return
    started: list[_Worker] = []
    try:
        for _ in range(workers):
            started.append(_Worker())
        yield _Several(started)
    finally:
        # Every file is written whole or not at all, so a worker may be killed at any moment.
        for worker in started:
            worker.process.kill()
        for worker in started:
            worker.process.wait()
            worker.connection.close()
