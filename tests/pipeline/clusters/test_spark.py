import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from nerbert.errors import UserError
from pipeline.clusters import spark
from pipeline.clusters.beam_runner import engine_of
from pipeline.clusters.engine import Rest
from pipeline.clusters.spark import Spark


def own(master="spark://m:7077", *flags):
    return engine_of(["--runner=SparkRunner", f"--spark_master_url={master}", *flags])


@pytest.fixture
def page(rest, monkeypatch):
    monkeypatch.setattr(spark, "_page", lambda master: Rest(f"http://{rest.address}"))
    worker = {"state": "ALIVE", "cores": 4, "coresfree": 3}
    rest.answers["/json/"] = {"workers": [worker, {**worker, "coresfree": 4}, {"state": "DEAD"}]}
    return rest


def test_cores_of_a_master_become_tasks_and_processes(page, tmp_path):
    (tmp_path / "server.jar").touch()
    engine = own("spark://m:7077", f"--spark_job_server_jar={tmp_path / 'server.jar'}")
    engine.check()
    assert engine.fitting_flags() == ["--sdk_worker_parallelism=4"]
    assert engine.described() == "Spark at spark://m:7077: 7 cores, 4 a host at most"
    options = PipelineOptions([*engine.flags, "--job_server_jvm_properties=-Dx=1"])
    command, _ = engine.job_server(options).subprocess_cmd_and_endpoint()
    assert {"-Dspark.default.parallelism=7", "-Dx=1"} < set(command)
    assert command[command.index("--spark-master-url") + 1] == "spark://m:7077"


def test_a_parallelism_of_the_user_wins(page, tmp_path):
    (tmp_path / "server.jar").touch()
    engine = own(
        "spark://m:7077",
        "--job_server_jvm_properties=-Dspark.default.parallelism=2",
        f"--spark_job_server_jar={tmp_path / 'server.jar'}",
        "--sdk_worker_parallelism=1",
    )
    engine.check()
    command, _ = engine.job_server(engine.options).subprocess_cmd_and_endpoint()
    assert [word for word in command if "default.parallelism" in str(word)] == [
        "-Dspark.default.parallelism=2"
    ]
    assert engine.fitting_flags() == []


def test_no_core_is_free(page):
    page.answers["/json/"] = {"workers": [{"state": "ALIVE", "cores": 4, "coresfree": 0}]}
    with pytest.raises(UserError, match="no core of its 1 workers is free"):
        own().check()


def test_no_master(page):
    del page.answers["/json/"]
    message = "^--spark_master_url spark://m:7077: no Spark master answers at http://localhost"
    with pytest.raises(UserError, match=message):
        own().check()


def test_master_page_is_at_the_usual_port():
    assert spark._page("spark://one:7077,two:7077").url == "http://one:8080"


@pytest.mark.parametrize(("tasks", "warns"), [(2, True), (6, False), (0, False)])
def test_fewer_tasks_than_cores(rest, monkeypatch, tasks, warns):
    port = int(rest.address.partition(":")[2])
    monkeypatch.setattr(spark, "_UI_PORTS", [port])
    root = "/api/v1/applications"
    executors = [{"id": "driver", "totalCores": 0}]
    executors += [{"id": str(n), "totalCores": 3} for n in range(2)]
    rest.answers |= {
        f"{root}/": [{"id": "app-0", "name": "another"}, {"id": "app-1", "name": "nerbert-check"}],
        f"{root}/app-1/executors": executors,
        f"{root}/app-1/stages": [{"numTasks": 1}, {"numTasks": tasks}] if tasks else [],
    }
    engine = Spark(["--runner=PortableRunner", "--job_endpoint=localhost:1"])
    assert engine.described() == ""
    engine.watch("nerbert-extract")
    assert engine.described() == "Spark at localhost:1: 6 cores, 3 a host at most"
    assert engine.fitting_flags() == ["--sdk_worker_parallelism=3"]
    expected = "Spark runs 2 tasks at a time on 6 cores; for all, start its job server with "
    warning = engine.warning()
    assert warning == (f"{expected}-Dspark.default.parallelism=6" if warns else "")


def test_an_application_that_has_ended_is_no_error(rest, monkeypatch):
    monkeypatch.setattr(spark, "_UI_PORTS", [int(rest.address.partition(":")[2])])
    rest.answers["/api/v1/applications/"] = [{"id": "app-1", "name": "nerbert-check"}]
    engine = Spark(["--runner=PortableRunner", "--job_endpoint=localhost:1"])
    engine.watch("nerbert-extract")
    assert engine.fitting_flags() == []
