"""Apache Flink: a session cluster, known by its REST interface."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from typing import Any

import requests
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions
from apache_beam.runners.portability.flink_runner import MAGIC_HOST_NAMES, FlinkJarJobServer

from nerbert.errors import HostLostError, RunError, UserError
from pipeline.clusters.engine import Engine, Rest, is_given

_ENDED = {"FINISHED", "CANCELED", "FAILED", "SUSPENDED"}
_CANCEL_S, _FREE_S = 10.0, 10.0


class Flink(Engine):
    """`FlinkRunner`, with the address of a cluster in `--flink_master`."""

    is_cluster = in_thread = True

    @classmethod
    def suits(cls, options: PipelineOptions, name: str) -> bool:
        if name not in ("FlinkRunner", "PortableRunner"):
            return False
        # The other values mean Flink in one process of this machine.
        return options.view_as(FlinkRunnerOptions).flink_master not in MAGIC_HOST_NAMES

    def __init__(self, flags: Sequence[str]) -> None:
        """Takes the user's flags of Beam."""
        super().__init__(flags)
        self._flink = self.options.view_as(FlinkRunnerOptions)
        self.master = str(self._flink.flink_master)
        with_scheme = re.match("https?://", self.master)
        self._rest = Rest(self.master if with_scheme else f"http://{self.master}")
        self._lost: set[str] = set()
        self._version, self._free_slots = "", 0

    def check(self) -> None:
        jar = self._flink.flink_job_server_jar
        if jar and "://" not in jar and not os.path.isfile(jar):
            raise UserError(
                f"--flink_job_server_jar {jar}: no such file; give the path or address of Beam's "
                "job server for Flink, or drop the flag, and Beam downloads it"
            )
        try:
            state = self._rest.get("overview")
            self._version = state["flink-version"]
        except (requests.RequestException, ValueError, KeyError) as error:
            raise UserError(
                f"--flink_master {self.master}: no Flink answers there ({_reason(error)}); give "
                "HOST:PORT of the JobManager's REST interface"
            ) from None
        version = str(self._flink.flink_version)
        if is_given(self.flags, "flink_version") and not self._version.startswith(f"{version}."):
            raise UserError(
                f"--flink_version {version}: the cluster at {self.master} is {self._version}"
            )
        # Counted before our first job, whose slots need a moment to be free again after its end.
        self._free_slots = sum(host["freeSlots"] for host in self._hosts())
        if not self._free_slots:
            raise UserError(
                f"--flink_master {self.master}: none of its {state['slots-total']} slots is free "
                f"({state['jobs-running']} jobs run); wait for them, or add TaskManagers"
            )

    def fitting_flags(self) -> list[str]:
        hosts = self._hosts()
        flags = {
            "flink_version": ".".join(self._version.split(".")[:2]),
            "parallelism": self._free_slots,
            "sdk_worker_parallelism": max(host["slotsNumber"] for host in hosts),
        }
        return [f"--{key}={value}" for key, value in flags.items() if not is_given(self.flags, key)]

    def described(self) -> str:
        hosts = self._hosts()
        slots = sum(host["slotsNumber"] for host in hosts)
        return (
            f"Flink {self._version} at {self.master}: {len(hosts)} TaskManagers, "
            f"{self._free_slots} of {slots} slots free"
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

    def watch(self, job: str) -> None:
        """Ends a job that Flink would start again, when a lost host left too few slots for it.

        Raises:
            HostLostError: it was so.
        """
        try:
            for number in self.running(job):
                error = self._rest.get(f"jobs/{number}/exceptions")["root-exception"]
                if error and self._too_few_slots(number):
                    self.cancel(job, None)
                    raise self._host_lost(error)
        except requests.RequestException:
            return  # it looks again in a second

    def _too_few_slots(self, number: str) -> bool:
        n_needed = self._rest.get(f"jobs/{number}/config")["execution-config"]["job-parallelism"]
        return sum(host["slotsNumber"] for host in self._hosts()) < int(n_needed)

    def _host_lost(self, error: str) -> HostLostError:
        match = _LOST.search(error) or _CLOSED.search(error)
        host = next(filter(None, match.groups())) if match else ""
        name = f"TaskManager {host}" if host else "a TaskManager"
        return HostLostError(f"Flink at {self.master} lost {name}", host)

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

    def address_of(self, job: str) -> str:
        return f"{self._rest.url} ({job})"

    def job_server(self, options: PipelineOptions) -> FlinkJarJobServer | None:
        return None if self.endpoint else FlinkJarJobServer(options)

    def explain(self, error: str) -> Exception | None:
        if (explained := super().explain(error)) is not None:
            return explained
        if _LOST.search(error) is not None:
            return self._host_lost(error)
        for pattern, message in _KNOWN:
            if (match := re.search(pattern, error)) is not None:
                text = message.format(*match.groups())
                return RunError(f"Flink at {self.master}: {text}; then run the same command again")
        return None

    def leave_out(self, host: str) -> None:
        self._lost.add(host)
        end = time.monotonic() + _FREE_S
        while time.monotonic() < end:
            try:
                hosts = self._hosts()
            except requests.RequestException:
                hosts = []  # `check` says so, if it stays away
            if hosts and all(host["freeSlots"] == host["slotsNumber"] for host in hosts):
                return
            time.sleep(0.2)

    def _hosts(self) -> list[dict[str, Any]]:
        """The TaskManagers, without those that were lost."""
        managers = self._rest.get("taskmanagers")["taskmanagers"]
        return [host for host in managers if host["id"] not in self._lost]


def _reason(error: Exception) -> str:
    match = re.search(r"\[Errno -?\d+\] ([\w ]+)|(timed out)", str(error))
    return next(filter(None, match.groups())) if match else type(error).__name__


_LOST = re.compile(
    r"TaskManager (?:with id )?'?([\w.:-]+)'? (?:timed out|is no longer reachable|disconnected)|"
    r"[Hh]eartbeat of TaskManager with id ([\w.:-]+) timed out"
)
_CLOSED = re.compile(r"closed by remote task manager '[^']*\[ *([\w.:-]+) *\]")
"""The error of a task whose neighbour is lost; it may also come from a lost connection."""

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
)
"""What Flink says -> what it means, and the remedy."""
