"""Spark 3.5 with two hosts of one core, behind Beam's job server."""

import signal
from collections import Counter

import pytest
from clusters import LEADER, SPARK, Run, arguments, counting, fixed, get, unfinished
from runs import assert_same_bytes, start

pytestmark = pytest.mark.cluster

EXTRACT = "documents/reports/part-*.json"


def applications():
    return get("8080/json/")["activeapps"]


@pytest.mark.parametrize(
    "flags", [("--stage", "extract"), pytest.param((), marks=pytest.mark.slow)]
)
def test_bytes_of_the_local_run_from_every_core(spark, dump, local, tmp_path, flags):
    spark.end_pools()
    for host in (1, 2):
        spark.start_pool(host, **counting(tmp_path))
    run = Run(dump, tmp_path / "out", *SPARK, *flags)
    run.await_files(EXTRACT)
    (application,) = get("4040/api/v1/applications")
    hosts = get(f"4040/api/v1/applications/{application['id']}/executors")
    busy = [host["totalTasks"] for host in hosts if host["id"] != "driver"]
    assert len(busy) == 2
    assert min(busy) > 0
    code, _, err = run.end()
    assert code == 0, err
    made = "documents" if flags else "."
    assert_same_bytes(tmp_path / "out" / made, local[0] / made)
    assert not unfinished(tmp_path / "out")
    # Spark may compute a part of its graph again; no part is made twice.
    starts = Counter((tmp_path / "starts").read_text().splitlines())
    assert sum(name.startswith("WriteDocuments") for name in starts) == 12
    assert set(starts.values()) == {1}
    said, expected = fixed(err), fixed(local[2])
    more = [line for line in said if line not in expected and "parts in N s" not in line]
    assert more == ["Spark at N:N: N cores, N a host at most; --sdk_worker_parallelism=N"]


@pytest.mark.slow
def test_a_signal_cancels_the_job(spark, dump, tmp_path):
    run = Run(dump, tmp_path / "out", *SPARK)
    run.await_files(EXTRACT)
    code, seconds, err = run.signal(signal.SIGTERM)
    assert code == 130, err
    assert seconds < 15
    assert "is cancelled. Run the same command again" in err
    assert applications() == []
    assert not unfinished(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["lose", "cut"])
@pytest.mark.parametrize("made", [EXTRACT, "examples/linked/reports/*"], ids=["extract", "corpus"])
def test_a_lost_host(spark, dump, local, tmp_path, how, made):
    run = Run(dump, tmp_path / "out", *SPARK)
    run.await_files(made)
    spark.harm(how)
    code, _, err = run.end(400)
    assert code == 0, err
    assert_same_bytes(tmp_path / "out", local[0])
    assert not unfinished(tmp_path / "out")
    spark.start()


def test_a_wrong_job_server(spark, dump, tmp_path):
    wrong = [flag.replace(":8099", ":8098") if ":8099" in flag else flag for flag in SPARK]
    wrong[wrong.index(f"{LEADER}:8098")] = f"{LEADER}:9"
    process = start(*arguments(dump, tmp_path / "out", *wrong), cwd=tmp_path)
    _, err = process.communicate(timeout=100)
    assert process.returncode == 2
    assert err.startswith(f"--job_endpoint {LEADER}:9: Connection refused; start the job server")
    assert len(err.splitlines()) == 1
