"""The same stage of three steps on one process, on several, and as a graph of Beam."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from nerbert.errors import UserError, WorkerDiedError
from pipeline.execution import local
from pipeline.execution.part_pass import Gather, part_passes
from tests.helpers.toy_stage import Count, Fails, Numbers, toy_stage


@dataclass
class Seen:
    made: int = 0
    found: int = 0

    def __call__(self, report, made):
        self.made += made
        self.found += not made


def run_local(workers):
    def run(stage):
        local.run(stage, workers, lambda report, made: None)

    return run


def run_beam(stage):
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    from pipeline.execution.beam import BeamStage

    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        _ = pipeline | BeamStage(stage, None)


@pytest.mark.parametrize("runner", [run_local(1), run_local(2), run_beam], ids=["1", "2", "beam"])
def test_a_stage_gives_the_same_files(runner, tmp_path):
    runner(toy_stage(tmp_path, [3, 5, 7]))
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {
        *(f"part-{n}.json" for n in (3, 5, 7)),
        *(f"part-{n}.parquet" for n in (3, 5, 7)),
        "total.json",
    }
    # The second pass adds the total of the first one, 15, to each number.
    assert (tmp_path / "part-5.parquet").read_text() == "20"
    assert (tmp_path / "total.json").read_text() == "[18, 20, 22]"


@pytest.mark.parametrize("workers", [1, 2])
def test_finished_parts_are_not_made_again(workers, tmp_path):
    seen = Seen()
    local.run(toy_stage(tmp_path, [3, 5, 7]), workers, seen)
    assert (seen.made, seen.found) == (3, 0)
    (tmp_path / "reports" / "part-5.json").unlink()
    (tmp_path / "part-3.parquet").write_text("kept")
    seen = Seen()
    local.run(toy_stage(tmp_path, [3, 5, 7]), workers, seen)
    assert (seen.made, seen.found) == (1, 2)
    assert (tmp_path / "part-3.parquet").read_text() == "kept"
    assert (tmp_path / "total.json").read_text() == "[18, 20, 22]"


def test_reports_come_in_the_order_of_the_elements(tmp_path):
    order = []
    stage = [
        Count(tmp_path, list(range(20))),
        Gather("order", lambda reports, _: order.extend(reports)),
    ]
    local.run(stage, 2, lambda report, made: None)
    assert [report.number for report in order] == list(range(20))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ("user", UserError, "wrong input 5"),
        ("os", OSError, "No space left on device"),
        ("odd", Exception, "cannot be pickled"),
    ],
)
def test_an_error_in_a_worker_is_the_error_of_the_run(workers, how, kind, text, tmp_path):
    with pytest.raises(kind, match=text):
        local.run([Fails(tmp_path, [3, 5, 7], how)], workers, lambda report, made: None)


needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc to list processes")


@needs_proc
def test_a_worker_that_dies_is_named(tmp_path):
    with pytest.raises(
        WorkerDiedError, match=r"ended with code -9 .* --workers 1 needs less memory"
    ):
        local.run([Fails(tmp_path, [3, 5], "kill")], 2, lambda report, made: None)
    assert not children()


def children():
    own = os.getpid()
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if (
            int(fields[1]) == own
            and b"pipeline.execution.worker" in (stat.parent / "cmdline").read_bytes()
        ):
            found.append(stat.parent.name)
    return found


@needs_proc
def test_workers_end_with_the_stage(tmp_path):
    seen = []

    def look(report, made):
        seen.extend(children())
        if made:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        local.run(toy_stage(tmp_path, [1, 2, 3]), 2, look)
    assert len(seen) == 2
    assert not children()


def test_progress_counts_passes_that_write_parts(tmp_path):
    stage = toy_stage(tmp_path, [1])
    assert [type(step) for step in part_passes(stage)] == [Numbers]


def test_a_pass_on_beam_waits_for_the_pass_before_it(tmp_path):
    """Also if no gathering step stands between them."""
    import apache_beam as beam

    from pipeline.execution.beam import BeamStage

    first, second = (Numbers(tmp_path / name, [3, 5]) for name in ("one", "two"))
    first.name, second.name = "first", "second"
    graph = beam.Pipeline()
    _ = graph | BeamStage([first, second], None)
    inputs = {}

    class Visitor(beam.pipeline.PipelineVisitor):
        def visit_transform(self, node):
            values = [*node.inputs, *(side.pvalue for side in node.side_inputs)]
            inputs[node.full_label] = {v.producer.full_label for v in values if v.producer}

    graph.visit(Visitor())
    (label,) = [name for name in inputs if name.endswith("/second")]
    before, grouped = {label}, False
    while before:
        grouped |= any(name.endswith("/Reports: first") for name in before)
        before = set().union(*(inputs[name] for name in before))
    assert grouped
