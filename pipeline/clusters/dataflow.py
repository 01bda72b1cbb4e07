"""Google Cloud Dataflow: its jobs, and our package for its workers."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import requires
from pathlib import Path
from typing import Any

from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.runners.runner import PipelineState

from nerbert import __version__
from pipeline.clusters.engine import Engine

_CANCEL_S, _PAUSE_S = 120.0, 2.0


class Dataflow(Engine):
    """`DataflowRunner`."""

    in_thread = True

    @classmethod
    def suits(cls, options: PipelineOptions, name: str) -> bool:
        return name == "DataflowRunner"

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

    def address_of(self, job: str) -> str:
        cloud = self.options.view_as(GoogleCloudOptions)
        return f"Dataflow, project {cloud.project}, region {cloud.region}"


_PACKAGES = ("nerbert", "ontology", "pipeline")
"""Packages that workers import."""
_OWN = ("--setup_file", "--extra_package", "--requirements_file", "--sdk_container_image")
"""Flags by which the user brings the package to the workers."""

_PYPROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"
[project]
name = "nerbert"
version = "{version}"
dependencies = {dependencies}
[tool.setuptools]
include-package-data = false
packages.find = {{include = {packages}, namespaces = false}}
[tool.setuptools.package-data]
"*" = ["data/*", "recipes/*", "*.toml", "py.typed"]
"""


def brings_package(flags: Sequence[str]) -> bool:
    """Whether flags of Beam say how workers get our package."""
    return any(flag.startswith(_OWN) for flag in flags)


def write_source(folder: str) -> str:
    """Writes the source of a package with what workers need.

    Args:
        folder: an empty folder.

    Returns:
        Path of its `pyproject.toml`, for Beam's `--setup_file`.
    """
    home = Path(__file__).resolve().parent.parent.parent
    for name in _PACKAGES:
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(home / name, Path(folder) / name, ignore=leave)
    needed = [text for text in requires("nerbert") or () if "extra ==" not in text]
    path = Path(folder) / "pyproject.toml"
    path.write_text(
        _PYPROJECT.format(
            version=__version__,
            dependencies=json.dumps([*needed, *_of_extra("gcsfs")]),
            packages=json.dumps([f"{name}*" for name in _PACKAGES]),
        ),
        encoding="utf-8",
    )
    return str(path)


def _of_extra(package: str) -> list[str]:
    """The requirement for a package of an extra, without the name of the extra."""
    requirements = (text.partition(";")[0].strip() for text in requires("nerbert") or ())
    return sorted({text for text in requirements if text.startswith(package)})
