"""Google Cloud Dataflow: jobs cost money, so none is forgotten."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from apache_beam.options.pipeline_options import GoogleCloudOptions, StandardOptions
from apache_beam.runners.runner import PipelineState

from pipeline.runners.engine import Engine
from pipeline.runners.staging import brings_package, write_source

_CANCEL_S, _PAUSE_S = 120.0, 2.0


class Dataflow(Engine):
    """`DataflowRunner`."""

    in_thread = True

    @property
    def template(self) -> str | None:
        """Path of the template that is written instead of running the job; None if it runs."""
        location: str | None = self.options.view_as(GoogleCloudOptions).template_location
        return location

    @property
    def waits(self) -> bool:
        return not self.options.view_as(StandardOptions).no_wait_until_finish

    @contextmanager
    def staged(self) -> Iterator[list[str]]:
        if brings_package(self.flags):
            yield []
            return
        with tempfile.TemporaryDirectory() as folder:
            yield ["--setup_file", write_source(folder)]

    def cancel(self, job: str, result: Any) -> bool:
        if result is None or not result.has_job:
            return True
        result.cancel()
        end = time.monotonic() + _CANCEL_S
        while time.monotonic() < end:
            if PipelineState.is_terminal(result.state):
                return True
            time.sleep(_PAUSE_S)
        return False

    def place(self, job: str) -> str:
        cloud = self.options.view_as(GoogleCloudOptions)
        return f"Dataflow, project {cloud.project}, region {cloud.region}"
