"""Any job service that speaks Beam's job interface, at the address in `--job_endpoint`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from apache_beam.options.pipeline_options import PortableOptions

from pipeline.clusters.engine import Engine, check_address
from pipeline.clusters.flags import check_flags
from pipeline.clusters.job_server import JobService

_CANCEL_S = 10.0
_HERE = ("LOOPBACK", "PROCESS")
"""Types of environment whose workers this process, or the service, starts with our Python."""


class Portable(Engine):
    """`PortableRunner`."""

    in_thread = True

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
