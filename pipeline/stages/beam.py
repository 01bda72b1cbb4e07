"""Runs a stage as a graph of Apache Beam, on the runner that Beam's flags name."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.options import pipeline_options
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
    _BeamArgumentParser,
)
from apache_beam.pvalue import AsIter, AsList, AsSingleton, PCollection
from apache_beam.runners.runner import create_runner
from apache_beam.utils.shared import Shared

from nerbert.errors import UserError
from nerbert.parts import Report
from pipeline.stages.part_pass import Gather, Pass, Stage
from pipeline.stages.staging import brings_package, write_source

REFUSED = {"DaskRunner": "it loses what a DoFn emits when a bundle ends"}
"""Runner -> how it loses data (seen on Beam 2.77)."""

_NOT_FETCHED = re.compile(r"Unable to fetch remote .*?([\w.-]+\.(?:jar|zip))\b")
_JARS = (
    "put it in ~/.apache_beam/cache/jars, name it with --flink_job_server_jar, "
    "--spark_job_server_jar or --prism_location, or start a job service and use PortableRunner"
)
_OS_ERROR = re.compile(r"\[Errno (\d+)\]")


@dataclass(frozen=True)
class BeamRunner:
    """Runs stages with the runner that Beam's flags name.

    Attributes:
        flags: flags of Beam, with `--runner`.
    """

    flags: tuple[str, ...]

    def __post_init__(self) -> None:
        """Checks the flags.

        Raises:
            UserError: Beam does not know a flag or the runner, or the runner loses data.
        """
        check_flags(self.flags)
        name = self.name
        if (reason := REFUSED.get(name.rpartition(".")[2])) is not None:
            raise UserError(f"--runner {name}: refused, {reason}; use another runner")
        _check_runner(name, self._options.view_as(PortableOptions).job_endpoint)
        _quiet()

    @property
    def _options(self) -> PipelineOptions:
        return PipelineOptions(list(self.flags))

    @property
    def name(self) -> str:
        """The runner, as the user typed it."""
        return self._options.view_as(StandardOptions).runner or ""

    @property
    def is_dataflow(self) -> bool:
        """Whether the graph runs on Google's machines."""
        return any("DataflowRunner" in flag for flag in self.flags)

    @property
    def template(self) -> str | None:
        """Path of the template that Dataflow writes instead of running the job; None if it runs."""
        location: str | None = self._options.view_as(GoogleCloudOptions).template_location
        return location

    def run(self, stage: Stage) -> None:
        """Runs a stage and waits until it is finished."""
        try:
            with self._staged() as options, beam.Pipeline(options=options) as pipeline:
                _ = pipeline | BeamStage(stage)
        except RuntimeError as error:  # Beam wraps the error that ended a bundle
            if "KeyboardInterrupt" in repr(error):
                raise KeyboardInterrupt from None
            if (found := _OS_ERROR.search(str(error))) is not None:
                raise OSError(int(found[1]), os.strerror(int(found[1]))) from None
            if (file := _NOT_FETCHED.search(str(error))) is not None:
                raise UserError(
                    f"--runner {self.name}: Beam cannot download {file[1]}; {_JARS}"
                ) from None
            raise

    @contextmanager
    def _staged(self) -> Iterator[PipelineOptions]:
        """The options; on Dataflow with our package for the workers, unless the user brings it."""
        if not self.is_dataflow or brings_package(self.flags):
            yield self._options
            return
        with tempfile.TemporaryDirectory() as folder:
            yield PipelineOptions([*self.flags, "--setup_file", write_source(folder)])


class BeamStage(beam.PTransform[Any, Any]):
    """A stage as a graph. Each element of a pass is one element of a collection."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage

    def expand(self, root: Any) -> PCollection[Any]:
        known = root | "Nothing known" >> beam.Create([None])
        reports = root | "No reports" >> beam.Create([])
        for step in self._stage:
            before = AsIter(reports)
            if isinstance(step, Gather):
                once = root | f"Once: {step.name}" >> beam.Create([None])
                gather = beam.Map(_gathered, AsList(reports), AsSingleton(known), step)
                known = once | step.name >> gather
            else:
                elements = root | f"Elements: {step.name}" >> beam.Create(list(step.elements()))
                spread = elements | f"Spread: {step.name}" >> beam.Reshuffle()
                reports = spread | step.name >> beam.ParDo(_Run(step), AsSingleton(known), before)
        return known


def _gathered(_: None, reports: list[Report], known: Any, step: Gather) -> Any:
    return step.combine(reports, known)


class _Opened:
    """A pass whose `open` was called. Beam's `Shared` needs an object with weak references."""

    def __init__(self, step: Pass) -> None:
        step.open()
        self.step = step


class _Run(beam.DoFn):
    """Runs a pass on its elements. The threads of a process share what the pass opens."""

    def __init__(self, step: Pass) -> None:
        self._step = step
        self._shared = Shared()

    def setup(self) -> None:
        step = self._step
        self._opened: _Opened = self._shared.acquire(lambda: _Opened(step))

    def process(self, element: Any, known: Any, before: Any) -> Iterator[Report]:
        # `before` is not read: it makes the runner finish the pass before this one.
        step = self._opened.step
        yield step.finished(element) or step.run(element, known)


def _check_runner(name: str, endpoint: str | None) -> None:
    """Checks that Beam has a runner of this name, and that it can be reached.

    Raises:
        UserError: it is not so.
    """
    try:
        create_runner(name)
    except ValueError as error:
        there = str(error).partition("Valid values are ")[2] or "see Beam's documentation"
        raise UserError(f"--runner {name}: no such runner; there are {there}") from None
    except ImportError:
        raise UserError(f"--runner {name}: pip install 'nerbert[gcp]'") from None
    if name.rpartition(".")[2] == "PortableRunner" and not endpoint:
        raise UserError(f"--runner {name}: add --job_endpoint HOST:PORT of a job service")


def check_flags(flags: Sequence[str]) -> None:
    """Checks that Beam knows its flags, and that a runner is among them.

    Raises:
        UserError: it is not so.
    """
    if unknown := unknown_flags(flags):
        raise UserError(f"{' '.join(unknown)}: neither our flag nor Beam's; see --help")
    if not any(flag.startswith("--runner") for flag in flags):
        raise UserError(f"{flags[0]}: Beam's flag, but there is no --runner; add it, or drop this")


def unknown_flags(flags: Sequence[str]) -> list[str]:
    """The flags that no options class of Beam knows."""
    parser = _BeamArgumentParser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    for cls in sorted(PipelineOptions.__subclasses__(), key=lambda c: c.__name__):
        if cls.__module__ == pipeline_options.__name__:
            cls._add_argparse_args(parser)
    try:
        return parser.parse_known_args(list(flags))[1]
    except SystemExit:
        return list(flags)


def _quiet() -> None:
    """Hides Beam's messages, and its warnings about extras that are not installed."""
    logging.getLogger("apache_beam").setLevel(logging.ERROR)
    # grpc logs a traceback for every closed channel.
    logging.getLogger("grpc").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: "apitools" not in record.getMessage())
