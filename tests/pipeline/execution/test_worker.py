"""The loop of a worker process, in a thread of this process."""

import os
import subprocess
import sys
import time
from multiprocessing.connection import Pipe
from threading import Event, Thread

import pytest

from nerbert.errors import UserError
from pipeline.execution import worker
from tests.helpers.runs import ROOT
from tests.helpers.toy_stage import Count, Fails, NumberReport, Numbers


@pytest.fixture
def parent(monkeypatch):
    """The parent's end of the connection to a worker; closing it ends the worker."""
    ended = Event()

    def leave(code):
        ended.set()
        Event().wait()  # like a process that has ended, this daemon thread does nothing more

    monkeypatch.setattr(worker.os, "_exit", leave)
    ours, theirs = Pipe()
    descriptor = os.dup(theirs.fileno())
    theirs.close()
    Thread(target=worker.main, args=(descriptor,), daemon=True).start()
    yield ours
    ours.close()
    assert ended.wait(10)


def test_elements_become_reports(parent, tmp_path):
    (tmp_path / "reports").mkdir()
    parent.send((Count(tmp_path, []), None))
    parent.send((0, 7))
    assert parent.recv() == (0, NumberReport(7), None)
    parent.send((Numbers(tmp_path, []), 10))  # another pass, which must be opened
    for number in (1, 2):
        parent.send((number, number))
        assert parent.recv() == (number, NumberReport(number + 10), None)
    assert (tmp_path / "part-2.parquet").read_text() == "12"


def test_an_error_goes_to_the_parent_and_the_worker_goes_on(parent, tmp_path):
    parent.send((Fails(tmp_path, [], "user"), None))
    parent.send((0, 5))
    number, report, error = parent.recv()
    assert (number, report) == (0, None)
    assert isinstance(error, UserError)
    assert "in run" in error.__notes__[0]
    parent.send((1, 6))
    assert parent.recv() == (1, NumberReport(6), None)


def test_an_exception_that_cannot_be_pickled_keeps_its_text(parent, tmp_path):
    parent.send((Fails(tmp_path, [], "odd"), None))
    parent.send((0, 5))
    _, _, error = parent.recv()
    assert type(error) is RuntimeError
    assert "Odd: cannot be pickled" in str(error)


def test_a_worker_that_still_loads_ends_with_its_parent():
    ours, theirs = Pipe()
    code = (
        "import sys, threading, time; from pipeline.execution import worker; "
        "threading.Thread(target=worker._end_with_parent, args=(int(sys.argv[1]),), daemon=True)"
        ".start(); print('up', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(theirs.fileno())]
    with subprocess.Popen(
        command, pass_fds=[theirs.fileno()], cwd=ROOT, stdout=subprocess.PIPE
    ) as process:
        theirs.close()
        assert process.stdout.readline() == b"up\n"
        ours.send("a message does not end it")
        time.sleep(0.2)
        assert process.poll() is None
        ours.close()
        assert process.wait(5) == 1
