"""The driver of stages, with stages that only write a file."""

import pytest

from nerbert.errors import UserError
from nerbert.storage.folders import Folder
from nerbert.storage.places import Place
from pipeline.execution.executor import Executor
from pipeline.runs.driver import PlannedStage, drive


class Writes(Executor):
    """Runs stages that are functions; `only_submits` names those that it only hands over."""

    def __init__(self, only_submits=()):
        self.only_submits = only_submits

    def run(self, name, stage, folder):
        if name in self.only_submits:
            return False
        stage()
        return True


class Work:
    """Two stages, `first` and `second`, and what was done in which order."""

    def __init__(self, output):
        self.output, self.events = Place(output), []
        self.folders = {
            name: Folder.of(self.output / name, name, {"version": 1})
            for name in ("first", "second")
        }

    def write(self, name):
        self.events.append(f"run {name}")
        (self.folders[name].path / "part-00000.parquet").write_bytes(name.encode())
        self.folders[name].finish()

    def steps(self, harm=lambda: None):
        for name, folder in self.folders.items():
            yield PlannedStage(
                name,
                [folder],
                lambda name=name: lambda: self.write(name),
                lambda name=name: self.events.append(f"check {name}"),
            )
            self.events.append(f"after {name}")
        harm()

    def drive(self, runs=None, **how):
        def record():
            self.events.append("record")

        return drive(self.output, [], runs or Writes(), record, self.steps(**how))


def test_stages_run_in_order_and_only_once(tmp_path, caplog):
    caplog.set_level("INFO", "nerbert")
    work = Work(tmp_path)
    assert work.drive()
    first = ["record", "run first", "check first", "after first"]
    assert work.events == [*first, "run second", "check second", "after second", "record"]
    work.events.clear()
    caplog.clear()
    assert work.drive()
    assert work.events == ["record", "after first", "after second", "record"]
    assert caplog.messages == ["first: up to date", "second: up to date"]


def test_what_is_only_submitted_ends_the_run(tmp_path):
    work = Work(tmp_path)
    assert not work.drive(Writes(only_submits={"first"}))
    assert work.events == ["record"]
    assert not (tmp_path / "second").exists()


def test_an_output_that_changes_meanwhile_is_an_error_and_made_again(tmp_path):
    work = Work(tmp_path)
    part = tmp_path / "first" / "part-00000.parquet"
    with pytest.raises(UserError, match="first: changed while the run wrote; run the same"):
        work.drive(harm=part.unlink)
    work.events.clear()
    assert work.drive()  # and what was made from it
    assert [event for event in work.events if "run" in event] == ["run first", "run second"]
    assert part.read_bytes() == b"first"
