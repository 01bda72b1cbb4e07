"""Flink 1.19 with two hosts of two slots."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from nerbert import load_corpus
from nerbert.text.corpus import SPLITS
from tests.helpers import stores
from tests.helpers.clusters import (
    EXTRACTED,
    FLINK,
    LEADER,
    LINKED,
    Run,
    arguments,
    assert_same_bytes,
    fixed,
    get,
    unfinished,
)
from tests.helpers.runs import ROOT, run_apart, start, tree

pytestmark = pytest.mark.cluster


def jobs(prefix):
    found = get("8081/jobs/overview")["jobs"]
    return [job for job in found if job["name"].startswith(prefix)]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_job(flink, dump, tmp_path, number):
    run = Run(dump, tmp_path / "out", *FLINK)
    run.await_files(EXTRACTED)
    code, seconds, err = run.signal(number)
    assert code == 130, err
    assert seconds < 60  # a line, not a run that hangs
    assert err.splitlines()[-1].startswith("Stopped. Job nerbert-extract-")
    assert "is cancelled. Run the same command again" in err
    assert all(job["state"] in ("FINISHED", "CANCELED") for job in jobs(""))
    assert not unfinished(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cut", "lose"])
def test_a_host_lost_in_extract(flink, dump, local, tmp_path, how):
    run = Run(dump, tmp_path / "out", *FLINK, "--stage", "extract")
    _, err = run.end_harmed(flink, how, EXTRACTED, local[0], "documents")
    assert f"extract: Flink at {LEADER}:8081 lost " in err
    flink.repair(how)


@pytest.mark.slow
def test_a_host_cut_off_in_corpus(flink, dump, local, documents):
    _, err = Run(dump, documents, *FLINK).end_harmed(flink, "cut", LINKED, local[0])
    assert f"corpus: Flink at {LEADER}:8081 lost " in err
    flink.repair("cut")


@pytest.mark.slow
def test_an_object_store(flink_pools, tmp_path):
    stores.inputs(tmp_path)
    code, _, err = run_apart(*stores.arguments(""), "--output", "local", cwd=tmp_path)
    assert code == 0, err
    with stores.served_s3("10.77.0.1") as (client, environment):
        stores.put_inputs(client, tmp_path)
        flink_pools.renew_pools(**environment)
        inputs = stores.arguments("s3://bucket/in/")[:-2]  # no --workers
        command = (*inputs, "--output", "s3://bucket/out", *FLINK)
        code, _, err = run_apart(*command, cwd=tmp_path, environment=environment)
        assert code == 0, err
        local = {
            name: path.read_bytes()
            for name, path in tree(tmp_path / "local").items()
            if name != ".lock"
        }
        stores.assert_same(stores.stored(client), local)


def refused(dump, tmp_path, *flags):
    """Runs a command that is refused; returns its code, its last line and its seconds."""
    begin = time.monotonic()
    process = start(*arguments(dump, tmp_path / "out", *flags), cwd=tmp_path)
    _, err = process.communicate(timeout=200)
    lines = [
        line
        for line in err.splitlines()
        if not line.startswith(("language en", "Flink ", "types: "))
    ]
    assert len(lines) == 1, err
    return process.returncode, lines[0], time.monotonic() - begin


def test_a_wrong_master_and_a_missing_jar(flink, dump, tmp_path):
    wrong = [flag.replace(":8081", ":8082") for flag in FLINK]
    code, line, seconds = refused(dump, tmp_path, *wrong)
    assert code == 2
    assert line.startswith(f"--flink_master {LEADER}:8082: no Flink answers there (Connection ref")
    assert seconds < 60  # a line, not a run that hangs
    missing = [flag.replace("beam-job-server.jar", "no.jar") for flag in FLINK]
    code, line, seconds = refused(dump, tmp_path, *missing)
    assert code == 2
    assert "no.jar: no such file; give the path or address of Beam's job server" in line
    assert seconds < 60  # a line, not a run that hangs
    assert not (tmp_path / "out").exists()


def test_an_option_of_the_job_server(flink, dump, tmp_path):
    code, line, _ = refused(dump, tmp_path, *FLINK, "--no_such_option=3")
    assert code == 2
    assert line == "--no_such_option=3: neither our flag nor Beam's; see --help"


@pytest.mark.slow
def test_another_version_of_the_package(flink_pools, dump, tmp_path):
    for name in ("nerbert", "ontology", "pipeline"):
        shutil.copytree(ROOT / name, tmp_path / "other" / name)
    metadata = tmp_path / "other" / "nerbert-0.0.9.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: nerbert\nVersion: 0.0.9\n")
    flink_pools.end_pools()
    flink_pools.start_pool(1)
    flink_pools.start_pool(2, PYTHONPATH=str(tmp_path / "other"))
    code, line, seconds = refused(dump, tmp_path, *FLINK)
    assert code == 2
    assert line.startswith("--environment_config localhost:50000: host ")
    assert "has nerbert 0.0.9, here is nerbert 0.1.0; install the same package" in line
    assert seconds < 90


@pytest.mark.slow
def test_a_pool_that_is_not_there(flink_pools, dump, tmp_path):
    flink_pools.end_pools()
    flink_pools.start_pool(1)
    code, line, seconds = refused(dump, tmp_path, *FLINK)
    assert code == 2
    assert line == (
        "--environment_config localhost:50000: no worker pool answers there on one host or more; "
        "start `nerbert worker` on each"
    )
    assert seconds < 90


@pytest.mark.slow
def test_a_pool_whose_python_cannot_start(flink_pools, dump, tmp_path):
    """Beam's own pool starts the first `python` of the PATH."""
    broken = tmp_path / "bin" / "python"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    pool = (sys.executable, "-m", "apache_beam.runners.worker.worker_pool_main")
    flink_pools.end_pools()
    for host in (1, 2):
        flink_pools.start_pool(host, (*pool, "--service_port", "50000"), PATH=str(broken.parent))
    code, line, seconds = refused(dump, tmp_path, *FLINK)
    assert code == 2
    assert "no worker answered within 60 s" in line
    assert seconds < 120
    assert all(job["state"] != "RUNNING" for job in jobs(""))


@pytest.mark.slow
def test_a_host_lost_in_corpus(flink, dump, local, tmp_path):
    _, err = Run(dump, tmp_path / "out", *FLINK).end_harmed(flink, "lose", LINKED, local[0])
    said, expected = fixed(err), fixed(local[2])
    _, lost = [line for line in said if line not in expected and "parts in N s" not in line]
    assert re.match("corpus: Flink at N:N lost (TaskManager N:N-|a TaskManager)", lost)
    assert lost.endswith("; starting again on Flink N at N:N: N TaskManagers, N of N slots free")
    flink.repair("lose")


def test_bytes_of_the_local_run_from_every_slot(flink, dump, local, tmp_path):
    run = Run(dump, tmp_path / "out", *FLINK)
    code, out, err = run.end()
    assert code == 0, err
    assert_same_bytes(run.output, local[0])
    assert not unfinished(run.output)
    # Every slot had units.
    job = max(jobs("nerbert-extract"), key=lambda job: job["start-time"])
    vertices = get(f"8081/jobs/{job['jid']}")["vertices"]
    (works,) = [v["id"] for v in vertices if "BeamStage/extract)" in v["name"]]
    subtasks = get(f"8081/jobs/{job['jid']}/vertices/{works}")["subtasks"]
    read = [task["metrics"]["read-records"] for task in subtasks]
    assert len(read) == 4
    assert min(read) > 0
    # The screen is that of a local run, and a line for the cluster.
    said, expected = fixed(err), fixed(local[2])
    assert [line for line in said if line not in expected and "parts in N s" not in line] == [
        "Flink N at N:N: N TaskManagers, N of N slots free; --flink_version=N "
        "--parallelism=N --sdk_worker_parallelism=N"
    ]
    assert fixed(out)[:-1] == fixed(local[1])[:-1]
    # One job server for the check and three stages.
    log = (tmp_path / "out" / "logs" / "job-server.log").read_text()
    assert log.count("Job server now running") == 1


def test_no_slot(flink, dump, tmp_path):
    for host in (1, 2):
        flink.harm("lose", host)
    for _ in range(300):
        if not get("8081/overview")["slots-total"]:
            break
        time.sleep(0.1)
    code, line, seconds = refused(dump, tmp_path, *FLINK)
    assert code == 2
    assert "none of its 0 slots is free (0 jobs run); wait for them, or add TaskManagers" in line
    assert seconds < 60  # a line, not a run that hangs
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_pipeline_of_ones_own(flink, tmp_path):
    """The pipeline of docs/beam.md writes the same rows on Flink as in one process."""
    code, _, err = run_apart(cwd=tmp_path)
    assert code == 0, err
    text = (ROOT / "docs" / "beam.md").read_text(encoding="utf-8")
    script = re.search("```python\n(.*?)```", text, re.DOTALL)[1]
    (tmp_path / "own.py").write_text(script, encoding="utf-8")
    inputs = str(ROOT / "pipeline" / "data" / "demo.xml"), str(tmp_path / "demo-corpus")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    corpora = []
    for name, flags in (("here", ()), ("there", FLINK)):
        command = [sys.executable, "own.py", *inputs, str(tmp_path / name), *flags]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=300)
        corpus = load_corpus(tmp_path / name)
        rows = (row for split in SPLITS for row in corpus.table(split).to_pylist())
        corpora.append({row["id"]: row for row in rows})
    assert len(corpora[0]) == 373
    assert corpora[0] == corpora[1]
