import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from tests.helpers.runs import run

NERBERT = (sys.executable, "-m", "nerbert", "worker")


@contextmanager
def started(port):
    process = subprocess.Popen([*NERBERT, "--port", str(port)], stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    yield process, port, line
    process.kill()
    process.wait()
    process.stderr.close()


@pytest.fixture
def pool(free_port):
    """A pool that a test may end; Beam takes seconds to load."""
    with started(free_port) as pool:
        yield pool


@pytest.fixture(scope="module")
def lasting_pool():
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
    with started(port) as pool:
        yield pool


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(number) for number in file.read().split()]


def test_one_line_says_what_it_is(lasting_pool):
    _, port, line = lasting_pool
    assert line.startswith("nerbert 0.")
    assert f"Python {'.'.join(map(str, sys.version_info[:3]))}, Beam 2." in line
    assert line.endswith(f"workers at localhost:{port}\n")


def assert_taken(port):
    code, _, err = run("--port", port, cwd=".", name="worker")
    assert code == 2
    assert err == f"--port {port}: taken, or localhost is not this host; give another\n"


def test_a_port_that_is_taken(lasting_pool):
    assert_taken(lasting_pool[1])


def test_a_port_that_is_taken_at_one_address_by_who_does_not_listen(free_port):
    with socket.socket() as client:
        client.bind(("127.0.0.1", free_port))
        assert_taken(free_port)


def test_an_unknown_host():
    code, _, err = run("--host", "no.such", cwd=".", name="worker")
    assert code == 2
    assert err == "--port 50000: taken, or no.such is not this host; give another\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_its_end_ends_the_workers(pool, number):
    process = pool[0]
    (forks,) = children(process.pid)
    process.send_signal(number)
    process.wait(10)
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{forks}") and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{forks}")
    if number == signal.SIGTERM:
        assert process.returncode == 130


def test_it_starts_and_stops_workers(lasting_pool):
    grpc = pytest.importorskip("grpc")
    from apache_beam.portability.api import beam_fn_api_pb2 as api
    from apache_beam.portability.api import beam_fn_api_pb2_grpc as api_grpc

    (forks,) = children(lasting_pool[0].pid)
    with grpc.insecure_channel(f"localhost:{lasting_pool[1]}") as channel:
        stub = api_grpc.BeamFnExternalWorkerPoolStub(channel)
        for worker in ("1", "2"):
            request = api.StartWorkerRequest(worker_id=worker)
            request.control_endpoint.url = "localhost:1"
            assert not stub.StartWorker(request).error
        time.sleep(0.5)
        workers = children(forks)
        assert len(workers) == 2
        stub.StopWorker(api.StopWorkerRequest(worker_id="1"))
        stub.StopWorker(api.StopWorkerRequest(worker_id="never started"))
        time.sleep(0.5)
        assert children(forks) == workers[1:]


@pytest.mark.slow
def test_a_worker_that_is_started_again_replaces_the_first(pool):
    grpc = pytest.importorskip("grpc")
    from apache_beam.portability.api import beam_fn_api_pb2 as api
    from apache_beam.portability.api import beam_fn_api_pb2_grpc as api_grpc

    process, port, _ = pool
    (forks,) = children(process.pid)
    with (
        socket.create_server(("localhost", 0)) as runner,  # it accepts, and never answers
        grpc.insecure_channel(f"localhost:{port}") as channel,
    ):
        stub = api_grpc.BeamFnExternalWorkerPoolStub(channel)
        request = api.StartWorkerRequest(worker_id="1")
        request.control_endpoint.url = f"localhost:{runner.getsockname()[1]}"
        workers = []
        for _ in range(3):
            assert not stub.StartWorker(request).error
            time.sleep(0.5)
            workers.append(children(forks))
        assert [len(found) for found in workers] == [1, 1, 1]
        process.terminate()
        process.wait(20)
    time.sleep(0.5)
    assert not any(os.path.exists(f"/proc/{number}") for found in workers for number in found)
