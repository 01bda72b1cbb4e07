"""Beam's job server, what is asked of it, and any job service that speaks its interface."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import grpc
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions
from apache_beam.portability.api import beam_job_api_pb2 as api
from apache_beam.portability.api import beam_job_api_pb2_grpc as api_grpc
from apache_beam.runners.portability.portable_runner import TERMINAL_STATES

from nerbert.errors import UserError
from pipeline.clusters.engine import Engine, check_address, check_flags

_START_S = 60.0
_ASK_S = 5.0
_NOT_FETCHED = re.compile(r"Unable to fetch remote .*?([\w.-]+\.(?:jar|zip))\b")
_PATH_FLAGS = {"FlinkRunner": "--flink_job_server_jar", "SparkRunner": "--spark_job_server_jar"}
"""Others download Beam's Prism, if anything."""
_KEEPER = (
    "import select, subprocess, sys; process = subprocess.Popen(sys.argv[1:], stdin=-3)\n"
    "while process.poll() is None and not select.select([sys.stdin], [], [], 0.2)[0]: pass\n"
    "if process.poll() is None:\n"
    "    process.terminate()\n"
    "    try: process.wait(3)\n"
    "    except subprocess.TimeoutExpired: process.kill()\n"
    "sys.exit(process.wait())"
)
"""Starts a program, and ends it when the other end of standard input is closed: also when this
process is killed."""


@contextmanager
def started(command: Sequence[str], endpoint: str, log: str) -> Iterator[None]:
    """Runs a job server for the block.

    Args:
        command: its command line.
        endpoint: HOST:PORT where it will listen.
        log: file for what it prints.

    Raises:
        UserError: there is no Java, or the server does not start.
    """
    with open(log, "ab") as file:
        # Its own session: Ctrl-C in a terminal must not end the server before the job is cancelled.
        process = subprocess.Popen(
            [sys.executable, "-c", _KEEPER, *map(str, command)],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    assert process.stdin is not None
    try:
        _await(process, endpoint, command[0], log)
        yield
    finally:
        process.stdin.close()
        process.wait()


def _await(process: subprocess.Popen[bytes], endpoint: str, java: str, log: str) -> None:
    """Waits until the server answers."""
    with grpc.insecure_channel(endpoint) as channel:
        ready = grpc.channel_ready_future(channel)
        end = time.monotonic() + _START_S
        while time.monotonic() < end and process.poll() is None:
            try:
                ready.result(timeout=0.2)
                return
            except grpc.FutureTimeoutError:
                pass
        ready.cancel()
    printed = Path(log).read_text("utf-8", "replace")
    if f"'{java}'" in printed and "FileNotFoundError" in printed:
        raise UserError(
            f"{java}: not found; install Java 11 or newer, or give --job_server_java_launcher"
        )
    raise UserError(f"{log}: the job server of Beam did not start; its last line says why")


class JobService:
    """A job server that runs."""

    def __init__(self, endpoint: str) -> None:
        """Takes HOST:PORT of the server."""
        self.endpoint = endpoint
        self._stub = api_grpc.JobServiceStub(grpc.insecure_channel(endpoint))

    def options(self) -> set[str]:
        """Names of the options that the server knows.

        Raises:
            UserError: it does not answer.
        """
        try:
            answer = self._stub.DescribePipelineOptions(
                api.DescribePipelineOptionsRequest(), timeout=_START_S
            )
        except grpc.RpcError as error:
            raise UserError(f"--job_endpoint {self.endpoint}: {_details(error)}") from None
        return {option.name for option in answer.options}

    def running(self, job: str) -> list[str]:
        """Ids of the jobs of this name that run.

        Raises:
            grpc.RpcError: the server does not answer.
        """
        jobs = self._stub.GetJobs(api.GetJobsRequest(), timeout=_ASK_S).job_info
        return [
            info.job_id
            for info in jobs
            if info.job_name.startswith(job) and info.state not in TERMINAL_STATES
        ]

    def cancel(self, job: str, wait_s: float) -> bool:
        """Cancels the jobs of a name, and waits for their end.

        Returns:
            Whether none runs any more.
        """
        end = time.monotonic() + wait_s
        asked: set[str] = set()
        while time.monotonic() < end:
            try:
                running = self.running(job)
                for number in set(running) - asked:
                    self._stub.Cancel(api.CancelJobRequest(job_id=number), timeout=_ASK_S)
                    asked.add(number)
            except grpc.RpcError:
                time.sleep(0.5)
                continue
            if not running:
                return True
            time.sleep(0.2)
        return False


def not_fetched(runner: str, error: str) -> UserError | None:
    """The error for a job server that Beam cannot download; None if the text tells another one."""
    if (file := _NOT_FETCHED.search(error)) is None:
        return None
    flag = _PATH_FLAGS.get(runner.rpartition(".")[2], "--prism_location")
    return UserError(
        f"--runner {runner}: Beam cannot download {file[1]}; name it with {flag}, put it in "
        "~/.apache_beam/cache/jars, or start a job service and use PortableRunner"
    )


def _details(error: Any) -> str:
    return str(error.details() if hasattr(error, "details") else error)


_CANCEL_S = 10.0
_HERE = ("LOOPBACK", "PROCESS")
"""Types of environment whose workers this process, or the service, starts with our Python."""


class Portable(Engine):
    """`PortableRunner`."""

    in_thread = True

    @classmethod
    def suits(cls, options: PipelineOptions, name: str) -> bool:
        return bool(options.view_as(PortableOptions).job_endpoint)

    @property
    def is_cluster(self) -> bool:  # type: ignore[override]
        """Whether the workers are pools or containers, which may lack our package."""
        return self.options.view_as(PortableOptions).environment_type not in _HERE

    @cached_property
    def service(self) -> JobService:
        """The job service."""
        return JobService(self.endpoint or "")

    @property
    def is_spark(self) -> bool:
        """Whether the job service runs jobs on Spark."""
        return "spark_master" in self.service.options()

    def check(self) -> None:
        check_address(
            "--job_endpoint", self.endpoint or "", "start the job server, or correct the address"
        )
        check_flags(self.flags, self.service.options())

    def cancel(self, job: str, result: Any) -> bool:
        return self.service.cancel(job, _CANCEL_S)
