"""A stage as a graph of Apache Beam."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsIter, AsList, AsSingleton, PCollection
from apache_beam.utils.shared import Shared

from nerbert import unfinished
from nerbert.parts import Report
from pipeline.stages.part_pass import Gather, Pass, Stage


class BeamStage(beam.PTransform[Any, Any]):
    """A stage as a graph. Each element of a pass is one element of a collection."""

    def __init__(self, stage: Stage, room: str | None) -> None:
        """Takes the stage, and the room of its unfinished files, if this process awaits its end."""
        super().__init__()
        self._stage, self._room = stage, room

    def expand(self, root: Any) -> PCollection[Any]:
        known = root | "Nothing known" >> beam.Create([None])
        reports = root | "No reports" >> beam.Create([])
        for step in self._stage:
            before = AsIter(reports)
            if isinstance(step, Gather):
                once = root | f"Once: {step.name}" >> beam.Create([None])
                gather = beam.Map(_gathered, AsList(reports), AsSingleton(known), step, self._room)
                known = once | step.name >> gather
            else:
                elements = root | f"Elements: {step.name}" >> beam.Create(list(step.elements()))
                spread = elements | f"Spread: {step.name}" >> beam.Reshuffle()
                reports = spread | step.name >> beam.ParDo(
                    _Run(step, self._room), AsSingleton(known), before
                )
        return known


def _gathered(_: None, reports: list[Report], known: Any, step: Gather, room: str | None) -> Any:
    with unfinished.kept_in(room):
        return step.combine(reports, known)


class _Opened:
    """A pass whose `open` was called. Beam's `Shared` needs an object with weak references."""

    def __init__(self, step: Pass) -> None:
        step.open()
        self.step = step


class _Run(beam.DoFn):
    """Runs a pass on its elements. The threads of a process share what the pass opens."""

    def __init__(self, step: Pass, room: str | None) -> None:
        self._step, self._room = step, room
        self._shared = Shared()

    def setup(self) -> None:
        step = self._step
        self._opened: _Opened = self._shared.acquire(lambda: _Opened(step))

    def process(self, element: Any, known: Any, before: Any) -> Iterator[Report]:
        # `before` is not read: it makes the runner finish the pass before this one.
        step = self._opened.step
        with unfinished.kept_in(self._room):
            report = step.finished(element) or step.run(element, known)
        yield report
