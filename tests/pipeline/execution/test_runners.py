"""The same bytes on every runner, with `gs://` paths, and Dataflow's job built without Google."""

import bz2
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from tests.helpers import runs
from tests.helpers.runs import DEMO, ROOT, assert_same_bytes, start, tree

ARGUMENTS = ("--dump", DEMO, "--min-entities", "2")
REMOTE = (
    "--dump",
    "gs://bucket/dumps/demo.xml",
    "--min-entities",
    "2",
    "--output",
    "gs://bucket/out",
    "--types",
    "gs://bucket/types.nt.bz2",
)
TYPES = bz2.compress(
    b"<http://dbpedia.org/resource/Pisa> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
    b"<http://dbpedia.org/ontology/City> .\n"
)


def run(*arguments, cwd, **environment):
    process = start(*arguments, cwd=cwd, environment=environment)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def run_all(command_lines, cwd, **environment):
    """Several runs in one process: without credentials, Beam asks for some for 16 s in each."""
    script = (
        "import json, sys, run_pipeline\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    assert run_pipeline.main(arguments) == 0, arguments"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps([[*map(str, line)] for line in command_lines])],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def free_port():
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        return taken.getsockname()[1]


def wait_for(port, process):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None
        with socket.socket() as probe:
            if probe.connect_ex(("localhost", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nothing listens on {port}")


@pytest.fixture
def service(tmp_path):
    """Starts a Python module that serves a port, and ends it after the test."""
    started = []

    def serve(module, *arguments, port):
        # A worker pool starts its workers with the first `python` of the path.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with open(tmp_path / f"{module}.log", "w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdout=log,
                stderr=log,
                env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            )
        started.append(process)
        wait_for(port, process)

    yield serve
    for process in started:
        process.terminate()
        process.wait(timeout=30)


def test_the_bytes_and_the_screen_of_a_local_run(demo, tmp_path):
    folder, _, said = demo
    code, _, err = runs.run_apart("--output", "out", "--runner", "DirectRunner", cwd=tmp_path)
    assert code == 0, err
    assert_same_bytes(folder, tmp_path / "out")
    for stage in ("extract", "resolve", "corpus"):
        for line in (said, err, (tmp_path / "out" / "logs" / "run.log").read_text()):
            assert line.count(f"{stage}: done in") == 1


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["LOOPBACK", "EXTERNAL"])
def test_portable_job_service(demo, service, tmp_path, environment):
    port, pool = free_port(), free_port()
    service(
        "apache_beam.runners.portability.local_job_service_main", "--job_port", str(port), port=port
    )
    config = ()
    if environment == "EXTERNAL":
        service("nerbert", "worker", "--port", str(pool), port=pool)
        config = ("--environment_config", f"localhost:{pool}")
    code, _, err = run(
        *ARGUMENTS,
        "--output",
        "out",
        "--runner",
        "PortableRunner",
        "--job_endpoint",
        f"localhost:{port}",
        "--environment_type",
        environment,
        *config,
        cwd=tmp_path,
    )
    assert code == 0, err
    assert_same_bytes(tmp_path / "out", demo[0])


class Storage:
    """A Google Cloud Storage emulator in this process, and what lies in it."""

    def __init__(self, url):
        self.url = url
        self.environment = {"STORAGE_EMULATOR_HOST": url, "NO_GCE_CHECK": "True"}

    def names(self, bucket):
        listed = json.load(urllib.request.urlopen(f"{self.url}/storage/v1/b/{bucket}/o"))
        return sorted(item["name"] for item in listed.get("items", []))

    def read(self, bucket, name):
        quoted = urllib.parse.quote(name, safe="")
        return urllib.request.urlopen(
            f"{self.url}/download/storage/v1/b/{bucket}/o/{quoted}?alt=media"
        ).read()

    def write(self, bucket, name, data):
        query = urllib.parse.urlencode({"uploadType": "media", "name": name})
        request = urllib.request.Request(
            f"{self.url}/upload/storage/v1/b/{bucket}/o?{query}", data, method="POST"
        )
        urllib.request.urlopen(request).read()


@pytest.fixture
def storage():
    pytest.importorskip("apache_beam.io.gcp.gcsio", reason="the extra `gcp` is not installed")
    server = pytest.importorskip("gcp_storage_emulator.server")
    port = free_port()
    emulator = server.create_server("localhost", port, in_memory=True, default_bucket="bucket")
    emulator.start()
    filled = Storage(f"http://localhost:{port}")
    filled.write("bucket", "dumps/demo.xml", DEMO.read_bytes())
    filled.write("bucket", "types.nt.bz2", TYPES)
    yield filled
    emulator.stop()


@pytest.mark.slow
def test_gs_paths_in_and_out(storage, tmp_path):
    (tmp_path / "types.nt.bz2").write_bytes(TYPES)
    arguments = (*ARGUMENTS, "--types", "types.nt.bz2", "--output", "local")
    code, _, err = runs.run(*arguments, cwd=tmp_path)
    assert code == 0, err
    err = run_all([(*REMOTE, "--stage", "resolve"), REMOTE], tmp_path, **storage.environment)
    assert err.count("up to date") == 2
    local = {
        name: path.read_bytes()
        for name, path in tree(tmp_path / "local").items()
        if name != ".lock"
    }
    remote = {
        name.removeprefix("out/"): storage.read("bucket", name)
        for name in storage.names("bucket")
        if name.startswith("out/")
    }
    assert remote.keys() == local.keys()
    for name, content in local.items():
        # The identity of a remote file is the checksum of its store.
        if name.endswith("stage.json"):
            one, other = json.loads(content), json.loads(remote[name])
            assert one.get("sizes") == other.get("sizes")
            assert one.get("counts") == other.get("counts")
        elif name != "manifest.json":
            assert remote[name] == content, name


def template(stage, folder, setup=True):
    """The command line that writes the Dataflow template of a stage."""
    ours = (f"--setup_file={ROOT / 'pyproject.toml'}",) if setup else ()
    return (
        *REMOTE,
        "--stage",
        stage,
        "--runner=DataflowRunner",
        "--project=my-project",
        "--region=europe-west4",
        "--temp_location=gs://bucket/tmp",
        "--staging_location=gs://bucket/staging",
        f"--template_location={folder / stage}.json",
        "--sdk_location=container",
        *ours,
    )


def staged_package(path, storage):
    """The package that a template makes Dataflow's workers install."""
    job = json.loads(path.read_text())
    packages = {p["name"]: p["location"] for p in job["environment"]["workerPools"][0]["packages"]}
    assert job["environment"]["sdkPipelineOptions"]["options"]["sdk_location"] == "container"
    _, bucket, name = packages["workflow.tar.gz"].split("/", 2)
    return storage.read(bucket, name)


@pytest.mark.slow
def test_dataflow_templates_of_every_stage(storage, tmp_path):
    """Without a checkout: the package is made from what is installed; a user's own one is taken."""
    stages = ("extract", "resolve", "corpus")
    # What a template would do is done here, so that the next stage's can be built.
    here = [(*REMOTE, "--stage", stage) for stage in stages]
    lines = [
        line
        for s, run_here in zip(stages, here, strict=True)
        for line in (template(s, tmp_path, setup=s == "corpus"), run_here)
    ]
    err = run_all(lines, tmp_path, **storage.environment)
    for stage in stages:
        assert f"{stage}: template in {tmp_path / stage}.json" in err
        package = staged_package(tmp_path / f"{stage}.json", storage)
        with tarfile.open(fileobj=io.BytesIO(package)) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
            (needed,) = [name for name in archive.getnames() if name.endswith("requires.txt")]
            required = archive.extractfile(needed).read().decode()
        assert package_files() <= names
        assert "apache-beam" in required
        own = stage == "corpus"
        assert ("run_pipeline.py" in names) == own
        assert any(name.startswith(("pretrain", "finetune")) for name in names) == own
        if not own:
            assert "gcsfs" in required
            assert not any(name in required for name in ("torch", "moto", "pytest"))


def package_files():
    """The files of our packages that workers need."""
    kinds = {".py", ".toml", ".tsv", ".xml", ".typed"}
    return {
        str(file.relative_to(ROOT))
        for path in ("pipeline", "nerbert", "ontology")
        for file in (ROOT / path).rglob("*")
        if file.is_file() and file.suffix in kinds
    }


@pytest.mark.slow
@pytest.mark.network
def test_staged_package_installs_and_imports_alone(storage, tmp_path):
    """The package that is made from what is installed, without a checkout."""
    run_all([template("extract", tmp_path, setup=False)], tmp_path, **storage.environment)
    package = staged_package(tmp_path / "extract.json", storage)
    (tmp_path / "nerbert-0.tar.gz").write_bytes(package)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    install = [
        "-m",
        "pip",
        "install",
        "-q",
        "-c",
        str(ROOT / "constraints.txt"),
        "nerbert-0.tar.gz",
    ]
    subprocess.run([python, *install], cwd=tmp_path, check=True, capture_output=True)
    code = (
        "import pipeline.documents.extract, pipeline.entities.resolve, pipeline.runs.corpus, importlib.metadata as m;"
        "print(pipeline.__file__); print(sorted(d.name.lower() for d in m.distributions()))"
    )
    done = subprocess.run(
        [python, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    place, names = done.stdout.splitlines()
    assert place.startswith(str(tmp_path / "venv"))
    assert "'nerbert'" in names
    assert not any(f"'{name}'" in names for name in ("torch", "transformers", "datasets"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runner=NoRunner"], "--runner NoRunner: no such runner; there are DataflowRunner,"),
        (["--runner", "PortableRunner"], "--runner PortableRunner: add --job_endpoint HOST:PORT"),
        (["--project", "p"], "--project: Beam's flag, but there is no --runner; add it, or drop"),
    ],
)
def test_wrong_runners_are_one_line(tmp_path, flags, message):
    code, _, err = runs.run(*ARGUMENTS, "--output", "out", *flags, cwd=tmp_path)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert err.startswith(message)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["FlinkRunner", "SparkRunner", "PrismRunner"])
def test_a_runner_that_beam_cannot_download(tmp_path, runner):
    """Addresses lead nowhere here, as on machines without internet."""
    script = (
        "import sys, apache_beam.utils.subprocess_server as s, urllib.error, urllib.request\n"
        "def nowhere(*_, **__): raise urllib.error.URLError('no internet')\n"
        "urllib.request.urlopen = s.urlopen = nowhere\n"
        "import apache_beam.runners.portability.prism_runner as p; p.urlopen = nowhere\n"
        "import run_pipeline; sys.exit(run_pipeline.main(sys.argv[1:]))"
    )
    command = [*map(str, ARGUMENTS), "--output", "out", "--runner", runner]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script, *command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 2, done.stderr
    assert last.startswith(f"--runner {runner}: Beam cannot download ")
    assert "job service" in last
    assert "Traceback" not in done.stderr


def test_dataflow_refuses_files_of_this_disk(tmp_path):
    code, _, err = runs.run(
        *ARGUMENTS,
        "--output",
        "gs://bucket/out",
        "--runner=DataflowRunner",
        "--project=my-project",
        "--region=europe-west4",
        cwd=tmp_path,
    )
    assert code == 2
    assert "demo.xml: Dataflow's workers do not see this disk; give a gs:// path" in err
