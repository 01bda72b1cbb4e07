"""The same corpus bytes from and to `s3://` and `https://`, and one line for every other address."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from nerbert.errors import RunError, UserError
from nerbert.storage.places import Place
from tests.helpers.mirror import CUT, EMPTY, served
from tests.helpers.runs import DEMO, ROOT, run_apart, tree
from tests.helpers.stores import arguments, assert_same, inputs, put_inputs, served_s3, stored


@pytest.fixture(scope="module")
def server():
    with served_s3() as served_bucket:
        yield served_bucket


@pytest.fixture
def s3(server):
    """The server with an empty bucket."""
    client, environment = server
    for entry in client.list_objects_v2(Bucket="bucket").get("Contents", ()):
        client.delete_object(Bucket="bucket", Key=entry["Key"])
    return client, environment


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """The folder of the inputs, and the files that a run on them leaves here."""
    folder = tmp_path_factory.mktemp("given")
    inputs(folder)
    code, _, err = run_apart(*arguments(""), "--output", "local", cwd=folder)
    assert code == 0, err
    local = tree(folder / "local").items()
    return folder, {name: path.read_bytes() for name, path in local if name != ".lock"}


@pytest.mark.slow
def test_s3_in_and_out(s3, given, tmp_path):
    client, environment = s3
    folder, local = given
    put_inputs(client, folder)
    command = (*arguments("s3://bucket/in/"), "--output", "s3://bucket/out")
    code, out, err = run_apart(*command, cwd=tmp_path, environment=environment)
    assert code == 0, err
    assert "parts in" in err
    assert_same(stored(client), local)
    code, again, err = run_apart(*command, cwd=tmp_path, environment=environment)
    assert (code, again) == (0, out)
    assert err.count("up to date") == 3
    code, _, err = run_apart(*command, "--alpha", "0.5", cwd=tmp_path, environment=environment)
    assert code == 0, err
    assert err.count("up to date") == 2


def test_https_in(given, tmp_path):
    pytest.importorskip("aiohttp", reason="the extra `http` is not installed")
    folder, local = given
    with served() as mirror:
        for name in ("demo.xml", "types.nt", "page_props.sql.gz"):
            mirror.files[f"/in/{name}"] = (folder / name).read_bytes()
        command = (*arguments(f"{mirror.url}/in/"), "--output", "out")
        code, _, err = run_apart(*command, cwd=tmp_path)
        assert code == 0, err
        found = {n: p.read_bytes() for n, p in tree(tmp_path / "out").items() if n != ".lock"}
        assert_same(found, local)
        code, _, err = run_apart(*command[:-1], f"{mirror.url}/out", cwd=tmp_path)
    assert code == 2
    assert "can only be read; give another --output" in err.splitlines()[-1]


def test_a_folder_on_s3(s3, tmp_path):
    client, environment = s3
    for name in ("enwiki-1.xml", "page_props.sql.gz", "enwiki-2-index.txt"):
        client.put_object(Bucket="bucket", Key=f"folder/{name}", Body=DEMO.read_bytes())
    command = ("--dump", "s3://bucket/folder/", "--output", "out", "--stage", "extract")
    code, _, err = run_apart(*command, cwd=tmp_path, environment=environment)
    assert code == 0, err
    assert "1 files that are no XML are left out, such as page_props.sql.gz" in err
    client.put_object(Bucket="bucket", Key="folder/enwiki-3.xml", Body=DEMO.read_bytes())
    command = ("--dump", "s3://bucket/folder/*3.xml", "--output", "out3", "--stage", "extract")
    code, _, err = run_apart(*command, cwd=tmp_path, environment=environment)
    assert code == 0, err


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://no-bucket/x.xml", r"no such file"),
        (
            "ftp2://host/x.xml",
            r"ftp2:// is not known; use a path, or gs://, s3://, hdfs:// and https://",
        ),
        ("http://127.0.0.1:9/x.xml", r"Cannot connect|Connect call failed|cannot be read"),
    ],
)
def test_wrong_addresses_are_one_line(s3, tmp_path, path, message):
    _, environment = s3
    code, _, err = run_apart("--dump", path, "--output", "o", cwd=tmp_path, environment=environment)
    assert code in (1, 2), err
    assert len(err.strip().splitlines()) == 1, err
    assert any(text in err for text in message.split("|")), err


def test_no_credentials(s3, tmp_path):
    _, environment = s3
    environment = {
        **environment,
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    code, _, err = run_apart(
        "--dump", "s3://bucket/x.xml", "--output", "o", cwd=tmp_path, environment=environment
    )
    assert code == 2
    assert (
        "s3://bucket/x.xml: Unable to locate credentials; check its address and your credentials"
        in err
    )


@pytest.mark.parametrize(
    ("path", "package", "extra"),
    [("s3://b/x", "s3fs", "s3"), ("gs://b/x", "gcsfs", "gcp"), ("https://h/x", "aiohttp", "http")],
)
def test_a_missing_extra_is_one_line(tmp_path, path, package, extra):
    """One process for all flags: its start takes longer than the commands."""
    runs = [
        [
            word
            for pair in {"--dump": str(DEMO), "--output": "o", flag: path}.items()
            for word in pair
        ]
        for flag in ("--dump", "--types", "--output")
    ]
    code = (
        f"import sys; sys.modules[{package!r}] = None; sys.argv[0] = 'run_pipeline.py'\n"
        f"import run_pipeline\n"
        f"for arguments in {runs!r}:\n"
        f"    code = run_pipeline.main(arguments)\n"
        f"    print('==', code, file=sys.stderr, flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    lines = done.stderr.splitlines()
    ends = [number for number, line in enumerate(lines) if line.startswith("==")]
    assert [lines[number] for number in ends] == ["== 2"] * 3, done.stderr
    for number in ends:
        assert f"-e '.[{extra}]' in the checkout of nerbert" in lines[number - 1]
        assert path in lines[number - 1]
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_lost_connection_is_no_damage(tmp_path):
    """The dump behind it is whole: nothing is counted as lost, and the run goes on or ends."""
    pytest.importorskip("aiohttp", reason="the extra `http` is not installed")
    with served() as mirror:
        mirror.files["/demo.xml"] = DEMO.read_bytes()
        command = ("--dump", f"{mirror.url}/demo.xml", "--stage", "extract", "--workers", "1")
        mirror.faults["/demo.xml"] = [None, None, None, CUT, EMPTY]
        code, _, err = run_apart(*command, "--output", "a", cwd=tmp_path)
        assert code == 0, err
        mirror.faults["/demo.xml"] = [None] * 3 + [CUT] * 99
        code, _, err = run_apart(*command, "--output", "b", cwd=tmp_path)
    assert code == 1, err
    assert "check the connection, then run the same command again" in err.splitlines()[-1]
    counts = json.loads((tmp_path / "a" / "documents" / "stage.json").read_text())["counts"]
    assert counts["damage"] == {}
    assert counts["pages"]["article"] == 123


BEAT = 0.3


@pytest.fixture
def place(tmp_path):
    """Path of a lock in a store of this process."""
    return f"memory://{tmp_path}/.lock"


@pytest.fixture
def lock(monkeypatch):
    """The module of locks, with short times."""
    from nerbert.storage import remote_lock

    monkeypatch.setattr(remote_lock, "BEAT_S", BEAT)
    monkeypatch.setattr(remote_lock, "_WAIT_S", 2.5 * BEAT)
    monkeypatch.setattr(remote_lock, "_LOOK_S", BEAT / 10)
    monkeypatch.setattr(remote_lock, "_SETTLE_S", BEAT / 10)
    return remote_lock


def test_a_second_run_on_a_remote_folder_is_refused(lock, place):
    refused = pytest.raises(UserError, match="another run is writing here")
    with lock.locked(place), refused, lock.locked(place):
        raise AssertionError("two runs hold the lock")
    assert not Place(place).exists()
    with lock.locked(place):
        assert Place(place).exists()


@pytest.mark.parametrize("host", [socket.gethostname(), "elsewhere"])
def test_the_lock_of_a_killed_run_is_taken(lock, place, host):
    Place(place).write_json({"run": "x", "host": host, "process": 2**22 + 1, "beat": 3})
    began = time.monotonic()
    with lock.locked(place):
        waited = time.monotonic() - began
    assert (waited > 2.5 * BEAT) == (host == "elsewhere")


def test_runs_that_begin_at_the_same_moment(lock, place, monkeypatch):
    """None sees the other's object before it writes its own: one of them goes on."""
    monkeypatch.setattr(lock, "_wait_for_end", lambda path: None)
    monkeypatch.setattr(lock, "_SETTLE_S", 1.0)
    held, refused = [], []

    def begin():
        try:
            with lock.locked(place):
                held.append(1)
                time.sleep(2)
        except UserError:
            refused.append(1)

    threads = [threading.Thread(target=begin) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 2)


def test_a_run_that_another_one_took_for_dead(lock, place):

    def begin():
        with lock.locked(place):
            Place(place).write_json({"run": "other"})
            time.sleep(3 * BEAT)

    with pytest.raises(RunError, match="another run began here"):
        begin()
    assert Place(place).read_json() == {"run": "other"}


def test_a_command_beside_a_run_on_another_host(s3, tmp_path):
    client, environment = s3
    ended = threading.Event()

    def live():
        beat = 0
        while not ended.wait(0.5):
            beat += 1
            content = json.dumps({"run": "x", "host": "elsewhere", "process": 7, "beat": beat})
            client.put_object(Bucket="bucket", Key="beside/.lock", Body=content.encode())

    other = threading.Thread(target=live)
    other.start()
    command = ("--dump", DEMO, "--output", "s3://bucket/beside")
    code, out, err = run_apart(*command, cwd=tmp_path, environment=environment)
    ended.set()
    other.join()
    assert (code, out) == (2, ""), err
    assert err.splitlines()[-1] == (
        "s3://bucket/beside: another run is writing here (on elsewhere, process 7); wait for its end, "
        "or choose another --output"
    )
