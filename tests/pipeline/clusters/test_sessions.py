import logging
import threading
import time

import pytest

from nerbert.errors import HostLostError, RunError, UserError
from nerbert.storage.places import Place
from pipeline.clusters import session as sessions
from pipeline.clusters.beam_runner import Beam
from pipeline.clusters.engine import Engine
from pipeline.clusters.session import Session, _Submission
from pipeline.execution.part_pass import Gather

FLAGS = ["--runner=FnApiRunner"]


class Elsewhere(Engine):
    """An engine whose jobs run until they are cancelled."""

    in_thread = True

    def __init__(self, ends=True, error=None):
        super().__init__(FLAGS)
        self.ends, self.error = ends, error
        self.cancelled, self.left_out, self.looks = [], [], 0

    def cancel(self, job, result):
        self.cancelled.append(job)
        if self.error:
            raise self.error
        return self.ends

    def watch(self, job):
        self.looks += 1

    def leave_out(self, host):
        self.left_out.append(host)

    def address_of(self, job):
        return "the cluster"


class Job:
    """A job: runs until it is let go."""

    def __init__(self, error=None):
        self.go, self.error = threading.Event(), error

    def run(self):
        return self

    def wait_until_finish(self):
        self.go.wait(20)
        if self.error:
            raise self.error


def session(engine, tmp_path):
    return Session(engine, [], Place(tmp_path / "logs"))


def test_an_interrupt_cancels_the_job(tmp_path, monkeypatch):
    engine, job = Elsewhere(), Job()
    monkeypatch.setattr(sessions, "_LOOK_S", 0.01)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "watch", interrupt)
    with pytest.raises(KeyboardInterrupt, match=r"^Job nerbert-x-1 is cancelled\.$"):
        session(engine, tmp_path)._watched(job, "nerbert-x-1", None)
    assert engine.cancelled == ["nerbert-x-1"]
    job.go.set()


@pytest.mark.parametrize("engine", [Elsewhere(ends=False), Elsewhere(error=OSError("gone"))])
def test_a_job_that_goes_on_is_named(engine, tmp_path, monkeypatch):
    job = Job()
    monkeypatch.setattr(sessions, "_LOOK_S", 0.01)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "watch", interrupt)
    message = "^Job nerbert-x-1 may still run: cancel it at the cluster.$"
    with pytest.raises(KeyboardInterrupt, match=message):
        session(engine, tmp_path)._watched(job, "nerbert-x-1", None)
    job.go.set()


def test_no_answer_within_the_limit(tmp_path, monkeypatch):
    engine, job = Elsewhere(), Job()
    monkeypatch.setattr(sessions, "_LOOK_S", 0.01)
    start = time.monotonic()
    with pytest.raises(
        UserError, match=r"^--environment_type DOCKER: no worker answered within 0 s"
    ):
        session(engine, tmp_path)._watched(job, "nerbert-check-1", 0.1)
    assert time.monotonic() - start < 10
    assert engine.cancelled == ["nerbert-check-1"]
    assert engine.looks
    job.go.set()


def test_an_error_of_the_job_is_raised_where_it_is_awaited():
    job = Job(ValueError("3"))
    job.go.set()
    submission = _Submission(job, True)
    submission.start()
    with pytest.raises(ValueError, match=r"^3$"):
        submission.wait(10)


def stage(fail):
    def combine(_, __):
        fail()

    return [Gather("only", combine)]


def test_a_lost_host_starts_the_job_again(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "nerbert")
    engine, lost = Elsewhere(), iter([True, True, False])
    runs, rooms = session(engine, tmp_path), []

    def run(graph, name, limit_s=None):
        rooms.append(graph._work_folder)
        assert Place(graph._work_folder).exists()
        if next(lost):
            raise HostLostError("Flink lost TaskManager h", "h")

    monkeypatch.setattr(runs, "_run", run)
    assert runs.run(stage(None), "extract", Place(tmp_path))
    assert engine.left_out == ["h", "h"]
    assert len(set(rooms)) == 3
    assert [path.name for path in tmp_path.iterdir()] == []
    assert caplog.text.count("extract: Flink lost TaskManager h; starting again on ") == 2


def test_hosts_that_are_lost_again_and_again_end_the_run(tmp_path, monkeypatch):
    runs = session(Elsewhere(), tmp_path)

    def run(*_):
        raise HostLostError("Flink lost TaskManager h", "h")

    monkeypatch.setattr(runs, "_run", run)
    with pytest.raises(RunError, match="lost TaskManager h"):
        runs.run(stage(None), "extract", Place(tmp_path))
    assert len(runs._engine.left_out) == sessions._STARTS - 1


def test_unknown_errors_of_a_cluster_are_one_line_with_the_logs(tmp_path):
    engine = Elsewhere()
    engine.is_cluster = True
    java = "java.lang.Exception: one\n\tat a.b\nCaused by: org.x.DeepException: the cause\n\tat c.d"
    found = session(engine, tmp_path)._explained(RuntimeError(java), "extract")
    assert isinstance(found, RunError)
    assert str(found) == (
        f"extract: org.x.DeepException: the cause; see the logs in {tmp_path / 'logs'}"
    )


def test_a_full_disk_of_a_worker_stays_an_os_error(tmp_path):
    error = RuntimeError("OSError: [Errno 28] No space left on device [while running 'x']")
    found = session(Elsewhere(), tmp_path)._explained(error, "extract")
    assert isinstance(found, OSError)
    assert found.errno == 28


def test_logs_of_others_go_into_a_file_and_ours_stay(tmp_path, capsys):
    logging.basicConfig(level=logging.INFO, format="%(message)s", force=True)
    with Beam(Engine(FLAGS)).session(Place(tmp_path), []) as runs:
        logging.getLogger("apache_beam.x").info("noise")
        logging.getLogger().warning("more noise")
        logging.getLogger("nerbert").info("ours")
    logging.getLogger("apache_beam.x").info("afterwards")
    err = capsys.readouterr().err
    assert "noise" not in err
    assert "ours\n" in err
    assert err.endswith("afterwards\n")
    told = (tmp_path / "logs" / "beam.log").read_text()
    assert "apache_beam.x: noise" in told
    assert "more noise" in told
    assert "ours" not in told
    assert runs.folder == str(tmp_path / "logs")
