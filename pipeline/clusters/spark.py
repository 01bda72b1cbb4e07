"""Apache Spark, behind Beam's job server, whose Spark context counts cores and tasks."""

from __future__ import annotations

import re
from typing import Any

import requests
from apache_beam.options.pipeline_options import (
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
    SparkRunnerOptions,
)
from apache_beam.runners.portability.spark_runner import SparkJarJobServer

from nerbert.errors import UserError
from pipeline.clusters.engine import Rest, is_given
from pipeline.clusters.portable import Portable

_UI_PORTS = range(4040, 4045)
"""A context takes the first of these ports of its host that is free."""
_PARALLELISM = "spark.default.parallelism"


class Spark(Portable):
    """`SparkRunner`, or `PortableRunner` with the address of a job server for Spark."""

    @classmethod
    def suits(cls, options: PipelineOptions, name: str) -> bool:
        if options.view_as(PortableOptions).job_endpoint:
            return False  # `engine_of` asks the job service whether it runs jobs on Spark
        return (
            name == "SparkRunner" and "://" in options.view_as(SparkRunnerOptions).spark_master_url
        )

    def __init__(self, flags: Any) -> None:
        """Takes the user's flags of Beam."""
        super().__init__(flags)
        self._spark = self.options.view_as(SparkRunnerOptions)
        self._ui: Rest | None = None
        self._cores, self._cores_a_host, self._tasks = 0, 0, 0

    @property
    def master(self) -> str:
        """Address of the master, such as spark://HOST:7077, if this run starts the job server."""
        return str(self._spark.spark_master_url)

    def check(self) -> None:
        if self.endpoint:
            super().check()
            return
        page = _page(self.master)
        try:
            state = page.get("json/")
        except (requests.RequestException, ValueError):
            raise UserError(
                f"--spark_master_url {self.master}: no Spark master answers at {page.url}; give "
                "spark://HOST:PORT of a standalone cluster, or start Beam's job server, and give "
                "--job_endpoint"
            ) from None
        hosts = [host for host in state["workers"] if host["state"] == "ALIVE"]
        self._cores = sum(host["coresfree"] for host in hosts)
        self._cores_a_host = max((host["cores"] for host in hosts), default=0)
        if not self._cores:
            raise UserError(
                f"--spark_master_url {self.master}: no core of its {len(hosts)} workers is free; "
                "wait for other applications, or add workers"
            )

    def fitting_flags(self) -> list[str]:
        if not self._cores_a_host or is_given(self.flags, "sdk_worker_parallelism"):
            return []
        return [f"--sdk_worker_parallelism={self._cores_a_host}"]

    def job_server(self, options: PipelineOptions) -> SparkJarJobServer | None:
        if self.endpoint:
            return None
        java = options.view_as(JobServerOptions)
        if not any(f"-D{_PARALLELISM}=" in flag for flag in java.job_server_jvm_properties):
            jvm_property = f"-D{_PARALLELISM}={self._cores}"
            java.job_server_jvm_properties = [*java.job_server_jvm_properties, jvm_property]
        return SparkJarJobServer(options)

    def described(self) -> str:
        if not self._cores:
            return ""
        place = self.endpoint or self.master
        return f"Spark at {place}: {self._cores} cores, {self._cores_a_host} a host at most"

    def watch(self, job: str) -> None:
        try:
            if self._ui is None:
                self._ui = self._ui_of_application()
            if self._ui is None:
                return
            hosts = self._ui.get("executors")
            stages = self._ui.get("stages")
        except (requests.RequestException, ValueError, LookupError):
            self._ui = None  # it has ended
            return
        cores = [host["totalCores"] for host in hosts if host["id"] != "driver"]
        self._cores = max(self._cores, sum(cores))
        self._cores_a_host = max(self._cores_a_host, *cores, 0)
        self._tasks = max(self._tasks, *(stage["numTasks"] for stage in stages), 0)

    def warning(self) -> str:
        if not 0 < self._tasks < self._cores:
            return ""
        return (
            f"Spark runs {self._tasks} tasks at a time on {self._cores} cores; for all, start its "
            f"job server with -D{_PARALLELISM}={self._cores}"
        )

    def _ui_of_application(self) -> Rest | None:
        """The interface of the application that runs, on the host of the job server."""
        host = (self.endpoint or "localhost").rpartition(":")[0]
        for port in _UI_PORTS:
            root = Rest(f"http://{host}:{port}/api/v1/applications")
            try:
                for application in root.get(""):
                    if application["name"].startswith("nerbert"):
                        return Rest(f"{root.url}/{application['id']}")
            except requests.ConnectionError:
                continue
        return None


def _page(master: str) -> Rest:
    """The page of a master at spark://HOST:PORT; by default it is at port 8080."""
    host = re.sub(r"^spark://", "", master).partition(",")[0].rpartition(":")[0]
    return Rest(f"http://{host}:8080")
