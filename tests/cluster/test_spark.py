"""Spark 3.5 with two hosts of one core, behind Beam's job server."""

import signal
from collections import Counter

import pytest

from tests.helpers.clusters import (
    EXTRACTED,
    LEADER,
    LINKED,
    SPARK,
    Run,
    arguments,
    counting,
    fixed,
    get,
    unfinished,
)
from tests.helpers.runs import assert_same_bytes, start

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def applications():
    return get("8080/json/")["activeapps"]


def test_bytes_of_the_local_run_from_every_core(spark_pools, dump, local, tmp_path):
    """Of `extract`; the bytes of the other stages are those of the run that loses a host there."""
    spark_pools.renew_pools(**counting(tmp_path))
    run = Run(dump, tmp_path / "out", *SPARK, "--stage", "extract")
    run.await_files(EXTRACTED)
    (application,) = get("4040/api/v1/applications")
    hosts = get(f"4040/api/v1/applications/{application['id']}/executors")
    busy = [host["totalTasks"] for host in hosts if host["id"] != "driver"]
    assert len(busy) == 2
    assert min(busy) > 0
    code, _, err = run.end()
    assert code == 0, err
    assert_same_bytes(tmp_path / "out" / "documents", local[0] / "documents")
    assert not unfinished(tmp_path / "out")
    # Spark may compute a part of its graph again; no part is made twice.
    starts = Counter((tmp_path / "starts").read_text().splitlines())
    assert sum(name.startswith("WriteDocuments") for name in starts) == 12
    assert set(starts.values()) == {1}
    said, expected = fixed(err), fixed(local[2])
    more = [line for line in said if line not in expected and "parts in N s" not in line]
    assert more == ["Spark at N:N: N cores, N a host at most; --sdk_worker_parallelism=N"]


def test_a_signal_cancels_the_job(spark, dump, tmp_path):
    run = Run(dump, tmp_path / "out", *SPARK)
    run.await_files(EXTRACTED)
    code, seconds, err = run.signal(signal.SIGTERM)
    assert code == 130, err
    assert seconds < 15
    assert "is cancelled. Run the same command again" in err
    assert applications() == []
    assert not unfinished(tmp_path / "out")


@pytest.mark.parametrize("how", ["cut", "lose"])
def test_a_host_lost_in_extract(spark, dump, local, tmp_path, how):
    run = Run(dump, tmp_path / "out", *SPARK, "--stage", "extract")
    run.end_harmed(spark, how, EXTRACTED, local[0], "documents")
    spark.repair(how)


@pytest.mark.parametrize("how", ["cut", "lose"])
def test_a_host_lost_in_corpus(spark, dump, local, documents, how):
    Run(dump, documents, *SPARK).end_harmed(spark, how, LINKED, local[0])
    spark.repair(how)


def test_a_wrong_job_server(spark, dump, tmp_path):
    wrong = [flag.replace(":8099", ":8098") if ":8099" in flag else flag for flag in SPARK]
    wrong[wrong.index(f"{LEADER}:8098")] = f"{LEADER}:9"
    process = start(*arguments(dump, tmp_path / "out", *wrong), cwd=tmp_path)
    _, err = process.communicate(timeout=100)
    assert process.returncode == 2
    assert err.startswith(f"--job_endpoint {LEADER}:9: Connection refused; start the job server")
    assert len(err.splitlines()) == 1
