import tempfile
from contextlib import contextmanager

import pytest
from apache_beam.runners.portability.job_server import JavaJarJobServer

from nerbert.errors import HostLostError, RunError, UserError
from nerbert.storage.places import Place
from pipeline.clusters import portable
from pipeline.clusters.beam_runner import Beam, engine_of
from pipeline.clusters.flink import Flink


def host(name, slots, free):
    return {"id": name, "slotsNumber": slots, "freeSlots": free}


@pytest.fixture
def cluster(rest):
    rest.answers |= {
        "/overview": {"flink-version": "1.19.3", "slots-total": 5, "jobs-running": 0},
        "/taskmanagers": {"taskmanagers": [host("a:1-x", 2, 2), host("b:1-y", 3, 1)]},
    }
    return rest


def flink(cluster, *flags):
    found = engine_of(["--runner=FlinkRunner", "--flink_master", cluster.address, *flags])
    assert isinstance(found, Flink)
    found.check()
    return found


def test_every_free_slot_and_a_process_for_each(cluster):
    engine = flink(cluster)
    assert engine.fitting_flags() == [
        "--flink_version=1.19",
        "--parallelism=3",
        "--sdk_worker_parallelism=3",
    ]
    assert engine.described() == (
        f"Flink 1.19.3 at {cluster.address}: 2 TaskManagers, 3 of 5 slots free"
    )


def test_slots_of_our_own_first_job_count(cluster):
    engine = flink(cluster)
    cluster.answers["/taskmanagers"] = {"taskmanagers": [host("a:1-x", 2, 0), host("b:1-y", 3, 0)]}
    assert "--parallelism=3" in engine.fitting_flags()
    assert "3 of 5 slots free" in engine.described()


def test_the_flags_of_the_user_win(cluster):
    engine = flink(cluster, "--parallelism=7")
    assert engine.fitting_flags() == ["--flink_version=1.19", "--sdk_worker_parallelism=3"]


def test_a_job_server_that_beam_cannot_download_is_told_before_a_run(cluster, monkeypatch):
    def fetch(url, *_):
        raise RuntimeError(f"Unable to fetch remote job server jar at {url}: no internet")

    monkeypatch.setattr(JavaJarJobServer, "local_jar", staticmethod(fetch))
    message = (
        r"cannot download beam-runners-flink-1\.19-job-server-[\d.]+\.jar; name it with --flink"
    )
    with pytest.raises(UserError, match=message):
        Beam.of(["--runner=FlinkRunner", "--flink_master", cluster.address])


def test_temporary_files_of_the_job_server_end_with_it(cluster, monkeypatch, tmp_path):
    (tmp_path / "server.jar").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = flink(cluster, f"--flink_job_server_jar={tmp_path / 'server.jar'}")
    commands = []

    @contextmanager
    def started(command, endpoint, log):
        commands.append(command)
        tempfile.mkdtemp()
        yield

    monkeypatch.setattr(portable, "started", started)
    monkeypatch.setattr(portable.JobService, "options", lambda self: set())
    with Beam(engine)._served(Place(tmp_path)) as flags:
        (folder,) = tmp_path.glob("nerbert-*")
        assert flags[-1].startswith("--job_endpoint=localhost:")
    assert f"-Djava.io.tmpdir={folder}" in commands[0]
    artifacts = commands[0][commands[0].index("--artifacts-dir") + 1]
    assert artifacts.startswith(f"{folder}/")
    assert [path.name for path in tmp_path.iterdir()] == ["server.jar"]


def test_a_lost_host_is_left_out(cluster):
    engine = flink(cluster)
    cluster.answers["/taskmanagers"] = {"taskmanagers": [host("a:1-x", 2, 2), host("b:1-y", 3, 3)]}
    engine.leave_out("b:1-y")
    engine.check()
    assert "--parallelism=2" in engine.fitting_flags()
    assert "1 TaskManagers, 2 of 2" in engine.described()


LOST = "TimeoutException: Heartbeat of TaskManager with id b:1-y timed out.\n\tat x"


CLOSED = "Connection unexpectedly closed by remote task manager '10.7.0.1:3 [ b:1-y ] '."


@pytest.mark.parametrize(("wanted", "error"), [(3, LOST), (3, CLOSED), (2, LOST), (3, None)])
def test_a_job_that_cannot_start_again_is_ended(cluster, wanted, error):
    engine = flink(cluster)
    states = iter(["RUNNING", "RUNNING", "CANCELED"])
    cluster.answers |= {
        "/taskmanagers": {"taskmanagers": [host("a:1-x", 2, 0)]},
        "/jobs/overview": lambda: {
            "jobs": [{"jid": "4", "name": "nerbert-x-1", "state": next(states)}]
        },
        "/jobs/4/exceptions": {"root-exception": error},
        "/jobs/4/config": {"execution-config": {"job-parallelism": wanted}},
        "/jobs/4": {},
    }
    if wanted == 2 or error is None:  # the slots are enough, or nothing has happened
        engine.watch("nerbert-x-1")
        assert not any(line.startswith("PATCH") for line in cluster.asked)
        return
    with pytest.raises(HostLostError, match=r"lost TaskManager b:1-y$") as raised:
        engine.watch("nerbert-x-1")
    assert raised.value.host == "b:1-y"
    assert "PATCH /jobs/4?mode=cancel" in cluster.asked


def test_a_lost_host_without_a_name(cluster):
    lost = flink(cluster)._host_lost("java.lang.Exception: something else")
    assert str(lost).endswith(" lost a TaskManager")


def test_no_free_slot(cluster):
    cluster.answers["/taskmanagers"] = {"taskmanagers": [host("a:1-x", 2, 0)]}
    cluster.answers["/overview"]["jobs-running"] = 3
    message = r"^--flink_master localhost:\d+: none of its 5 slots is free \(3 jobs run\); wait"
    with pytest.raises(UserError, match=message):
        flink(cluster)


@pytest.mark.parametrize("answer", [None, {"something": "else"}])
def test_what_answers_is_no_flink(cluster, answer):
    cluster.answers["/overview"] = answer
    with pytest.raises(UserError, match=r"^--flink_master localhost:\d+: no Flink answers there"):
        flink(cluster)


def test_nothing_answers(free_port):
    engine = engine_of(["--runner=FlinkRunner", f"--flink_master=localhost:{free_port}"])
    message = (
        rf"^--flink_master localhost:{free_port}: no Flink answers there \(Connection refused\)"
    )
    with pytest.raises(UserError, match=message):
        engine.check()


def test_jar_and_version(cluster, tmp_path):
    missing = tmp_path / "server.jar"
    with pytest.raises(UserError, match=rf"^--flink_job_server_jar {missing}: no such file"):
        flink(cluster, f"--flink_job_server_jar={missing}")
    with pytest.raises(UserError, match=r"^--flink_version 1.20: the cluster at \S+ is 1.19.3$"):
        flink(cluster, "--flink_version=1.20")


def test_cancel_waits_until_the_job_has_ended(cluster):
    states = iter(["RUNNING", "CANCELLING", "CANCELED", "CANCELED"])

    def overview():
        other = {"jid": "7", "name": "of-somebody-else", "state": "RUNNING"}
        return {"jobs": [{"jid": "4", "name": "nerbert-x-1", "state": next(states)}, other]}

    cluster.answers |= {"/jobs/overview": overview, "/jobs/4": {}}
    assert flink(cluster).cancel("nerbert-x-1", None)
    patched = [line for line in cluster.asked if line.startswith("PATCH")]
    assert patched == ["PATCH /jobs/4?mode=cancel"]


def test_cancel_says_when_it_cannot(cluster, monkeypatch):
    monkeypatch.setattr("pipeline.clusters.flink._CANCEL_S", 0.5)
    engine = flink(cluster)
    cluster.close()
    assert not engine.cancel("nerbert-x-1", None)


JAVA = "java.lang.Exception: x\n\tat org.apache.flink.Runtime.run(Runtime.java:3)\n"


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            "JobMasterException: TaskManager with id 10.77.0.12:41785-03ac05 is no longer reachable.",
            HostLostError,
            "lost TaskManager 10.77.0.12:41785-03ac05",
        ),
        (
            "TimeoutException: Heartbeat of TaskManager with id 10.7.0.1:37381-76c0e9 timed out.",
            HostLostError,
            "lost TaskManager 10.7.0.1:37381-76c0e9",
        ),
        (
            "IOException: Insufficient number of network buffers: required 512, but only 499 available",
            RunError,
            r"too few network buffers \(499 where 512 are needed\); set "
            "taskmanager.memory.network.min",
        ),
        ("NoResourceAvailableException: Could not acquire", RunError, "no free slot came in time"),
        (
            "ModuleNotFoundError: No module named 'pipeline'",
            UserError,
            r"^--environment_type DOCKER: the Python of its workers has no pipeline; install nerbert",
        ),
        (
            "io.grpc.StatusRuntimeException: UNAVAILABLE: io exception\nCaused by: "
            "ConnectException: Connection refused: localhost/127.0.0.1:50000",
            UserError,
            "no worker pool answers at localhost:50000 of a host; start `nerbert worker --port 50000`",
        ),
        (
            "failed in state FAILED: java.net.ConnectException: finishConnect(..) failed: "
            "Connection refused",
            UserError,
            "^--environment_type DOCKER: no worker pool answers there on one host or more; start",
        ),
        (
            "RuntimeError: nerbert.errors.UserError: types.ttl: no such file [while running 'x']",
            RunError,
            "^types.ttl: no such file",
        ),
    ],
)
def test_errors_of_the_engine_are_one_line(cluster, error, kind, message):
    found = flink(cluster).explain(JAVA + error + "\n" + JAVA)
    assert type(found) is kind
    with pytest.raises(kind, match=message):
        raise found
    assert len(str(found).splitlines()) == 1


def test_other_errors_are_not_explained(cluster):
    assert flink(cluster).explain(JAVA + "ValueError: 3") is None


def test_a_wrong_value_of_a_flag_is_one_line(cluster, capsys):
    flags = ["--runner=DirectRunner", "--flink_version=0.9"]
    with pytest.raises(UserError, match=r"^--flink_version: invalid choice: '0.9' \(choose from"):
        engine_of(flags)
    assert capsys.readouterr().err == ""
