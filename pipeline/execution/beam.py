"""A stage as a graph of Apache Beam."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsSingleton, PCollection
from apache_beam.utils.shared import Shared

from nerbert.storage import unfinished
from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from pipeline.execution.part_pass import Gather, Pass, Stage

_END = -1


class BeamStage(beam.PTransform[Any, Any]):
    """A stage as a graph: one chain, in which each step starts when the one before it is done.

    A pass deals its elements from one place, and its reports come together in one list. A chain
    needs few workers and buffers at a time; with one source for each step, engines start all of
    them at once.
    """

    def __init__(self, stage: Stage, work_folder: Place | None) -> None:
        """Takes the stage, and the folder of unfinished files if this process waits for its end."""
        super().__init__()
        self._stage, self._work_folder = stage, work_folder

    def expand(self, root: Any) -> PCollection[Any]:
        last = root | "Start" >> beam.Impulse()
        gathered: list[AsSingleton] = []
        are_reports = False
        for step in self._stage:
            if isinstance(step, Gather):
                combine = _Combine(step, self._work_folder, are_reports)
                last = last | step.name >> beam.ParDo(combine, *gathered)
                gathered = [AsSingleton(last)]
            else:
                dealt = last | f"Elements: {step.name}" >> beam.ParDo(_Deal(step))
                spread = dealt | f"Spread: {step.name}" >> beam.Reshuffle()
                reports = spread | step.name >> beam.ParDo(_Run(step, self._work_folder), *gathered)
                last = reports | f"Reports: {step.name}" >> beam.GroupByKey()
            are_reports = not isinstance(step, Gather)
        return last


class _Deal(beam.DoFn):
    """Deals the numbered elements of a pass, and an end, so that a pass without any has a list."""

    def __init__(self, step: Pass) -> None:
        self._step = step

    def process(self, last: Any) -> Iterator[tuple[int, Any]]:
        yield _END, None
        yield from enumerate(self._step.elements())


class _Combine(beam.DoFn):
    """Combines the reports of a pass, in the order of its elements."""

    def __init__(self, step: Gather, work_folder: Place | None, are_reports: bool) -> None:
        self._step, self._work_folder, self._are_reports = step, work_folder, are_reports

    def process(self, last: Any, gathered: Any = None) -> Iterator[Any]:
        reports = dict(last[1]) if self._are_reports else {}
        reports.pop(_END, None)
        with unfinished.kept_in(self._work_folder):
            yield self._step.combine([reports[number] for number in sorted(reports)], gathered)


class _Opened:
    """A pass whose `open` was called. Beam's `Shared` needs an object with weak references."""

    def __init__(self, step: Pass) -> None:
        step.open()
        self.step = step


class _Run(beam.DoFn):
    """Runs a pass on its elements. The threads of a process share what the pass opens."""

    def __init__(self, step: Pass, work_folder: Place | None) -> None:
        self._step, self._work_folder = step, work_folder
        self._shared = Shared()

    def setup(self) -> None:
        self._held: _Opened | None = None

    def _opened(self) -> _Opened:
        step = self._step
        self._held = self._held or self._shared.acquire(lambda: _Opened(step))
        return self._held

    def process(
        self, element: tuple[int, Any], gathered: Any = None
    ) -> Iterator[tuple[None, tuple[int, Report | None]]]:
        number, work = element
        report = None
        if number != _END:
            step = self._opened().step
            with unfinished.kept_in(self._work_folder):
                report = step.finished(work) or step.run(work, gathered)
        yield None, (number, report)
