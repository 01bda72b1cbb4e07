"""Apache Flink: a session cluster, known by its REST interface."""

from __future__ import annotations

import os
import re
import time
from functools import cached_property
from typing import Any

import requests
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions
from apache_beam.runners.portability.flink_runner import MAGIC_HOST_NAMES, FlinkJarJobServer

from nerbert.errors import RunError, UserError
from pipeline.runners.engine import Engine, Rest
from pipeline.runners.flags import is_given

_ENDED = {"FINISHED", "CANCELED", "FAILED", "SUSPENDED"}
_CANCEL_S = 10.0
_RETRIES = ("--number_of_execution_retries=3", "--execution_retry_delay=2000")


class Flink(Engine):
    """`FlinkRunner`, with the address of a cluster in `--flink_master`."""

    is_cluster = in_thread = True

    @property
    def master(self) -> str:
        """The address, as the user typed it."""
        return str(self.options.view_as(FlinkRunnerOptions).flink_master)

    @cached_property
    def _rest(self) -> Rest:
        url = self.master if re.match("https?://", self.master) else f"http://{self.master}"
        return Rest(url)

    @cached_property
    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._rest.get("overview")
        return state

    def check(self) -> None:
        jar = self.options.view_as(FlinkRunnerOptions).flink_job_server_jar
        if jar and "://" not in jar and not os.path.isfile(jar):
            raise UserError(
                f"--flink_job_server_jar {jar}: no such file; give the path or address of Beam's "
                "job server for Flink, or drop the flag, and Beam downloads it"
            )
        try:
            version = self._state["flink-version"]
        except (requests.RequestException, ValueError, KeyError) as error:
            raise UserError(
                f"--flink_master {self.master}: no Flink answers there ({_reason(error)}); give "
                "HOST:PORT of the JobManager's REST interface"
            ) from None
        wanted = str(self.options.view_as(FlinkRunnerOptions).flink_version)
        if is_given(self.flags, "flink_version") and not version.startswith(f"{wanted}."):
            raise UserError(f"--flink_version {wanted}: the cluster at {self.master} is {version}")
        if not self._state["slots-available"]:
            raise UserError(
                f"--flink_master {self.master}: none of its {self._state['slots-total']} slots is "
                f"free ({self._state['jobs-running']} jobs run); wait for them, or add TaskManagers"
            )

    def chosen(self) -> list[str]:
        version = ".".join(self._state["flink-version"].split(".")[:2])
        found = {
            "flink_version": [f"--flink_version={version}"],
            "parallelism": [f"--parallelism={self._state['slots-available']}"],
            "sdk_worker_parallelism": [f"--sdk_worker_parallelism={self._slots_a_host()}"],
        }
        if not self._restarts():
            found["number_of_execution_retries"] = list(_RETRIES)
        return [
            flag
            for name, flags in found.items()
            if not is_given(self.flags, name)
            for flag in flags
        ]

    def described(self) -> str:
        state = self._state
        return (
            f"Flink {state['flink-version']} at {self.master}: {state['taskmanagers']} "
            f"TaskManagers, {state['slots-available']} of {state['slots-total']} slots free"
        )

    def cancel(self, job: str, result: Any) -> bool:
        end = time.monotonic() + _CANCEL_S
        while time.monotonic() < end:
            try:
                running = self.running(job)
                for number, state in running.items():
                    if state != "CANCELLING":
                        self._rest.patch(f"jobs/{number}?mode=cancel")
            except requests.RequestException:
                time.sleep(0.5)
                continue
            if not running:
                return True
            time.sleep(0.2)
        return False

    def running(self, prefix: str) -> dict[str, str]:
        """State of each job that runs, by its id, if its name begins so.

        Raises:
            requests.RequestException: the cluster does not answer.
        """
        jobs = self._rest.get("jobs/overview")["jobs"]
        return {
            job["jid"]: job["state"]
            for job in jobs
            if job["name"].startswith(prefix) and job["state"] not in _ENDED
        }

    def place(self, job: str) -> str:
        return f"{self._rest.url} ({job})"

    def job_server(self, options: PipelineOptions) -> FlinkJarJobServer | None:
        return None if self.endpoint else FlinkJarJobServer(options)

    def explain(self, error: str) -> Exception | None:
        if (known := super().explain(error)) is not None:
            return known
        for pattern, message in _KNOWN:
            if (found := re.search(pattern, error)) is not None:
                text = message.format(*found.groups())
                return RunError(f"Flink at {self.master}: {text}; then run the same command again")
        return None

    def _slots_a_host(self) -> int:
        return max(host["slotsNumber"] for host in self._rest.get("taskmanagers")["taskmanagers"])

    def _restarts(self) -> bool:
        """Whether the cluster starts a job again when a host is lost."""
        config = {entry["key"]: entry["value"] for entry in self._rest.get("jobmanager/config")}
        kind = config.get("restart-strategy.type", config.get("restart-strategy", "none"))
        return kind not in ("none", "off", "disable")


def is_flink_cluster(options: Any) -> bool:
    """Whether the flags name a cluster, not Flink in one process of this machine."""
    return options.view_as(FlinkRunnerOptions).flink_master not in MAGIC_HOST_NAMES


def _reason(error: Exception) -> str:
    found = re.search(r"\[Errno -?\d+\] ([\w ]+)|(timed out)", str(error))
    return next(filter(None, found.groups())) if found else type(error).__name__


_KNOWN = (
    (
        r"Insufficient number of network buffers: required (\d+), but only (\d+) available",
        "a TaskManager has too few network buffers ({1} where {0} are needed); set "
        "taskmanager.memory.network.min: 256m there, or give a lower --parallelism",
    ),
    (
        r"NoResourceAvailableException",
        "no free slot came in time; add TaskManagers, or give a lower --parallelism",
    ),
    (
        r"(?s)Recovery is suppressed by (\w+BackoffTimeStrategy).*(?:[Hh]eartbeat of TaskManager|"
        r"TaskManager [^\n]* is no longer reachable|closed by remote task manager|"
        r"TaskExecutor [^\n]*(?:closed|disconnected))",
        "a host was lost, and Flink does not start the job again ({0}); set "
        "restart-strategy.type: fixed-delay in its configuration, or give "
        "--number_of_execution_retries 3",
    ),
)
"""What Flink says -> what it means, and the remedy."""
