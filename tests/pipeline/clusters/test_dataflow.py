from apache_beam.runners.runner import PipelineState

from pipeline.clusters import dataflow
from pipeline.clusters.dataflow import Dataflow

FLAGS = ["--runner=DataflowRunner", "--project=p", "--region=r"]


class Result:
    """A job of Dataflow that takes some looks to end."""

    has_job = True

    def __init__(self, looks):
        self.states = iter([PipelineState.CANCELLING] * looks + [PipelineState.CANCELLED] * 9)
        self.cancelled = False

    def cancel(self):
        self.cancelled = True

    @property
    def state(self):
        return next(self.states)


def test_cancel_waits_for_the_end(monkeypatch):
    monkeypatch.setattr(dataflow, "_PAUSE_S", 0.01)
    result = Result(3)
    assert Dataflow(FLAGS).cancel("job", result)
    assert result.cancelled


def test_cancel_says_when_the_end_does_not_come(monkeypatch):
    monkeypatch.setattr(dataflow, "_PAUSE_S", 0.01)
    monkeypatch.setattr(dataflow, "_CANCEL_S", 0.1)
    assert not Dataflow(FLAGS).cancel("job", Result(1000))
    assert Dataflow(FLAGS).address_of("job") == "Dataflow, project p, region r"


def test_what_is_left_to_the_user():
    assert Dataflow(FLAGS).waits
    assert not Dataflow([*FLAGS, "--no_wait_until_finish"]).waits
    assert Dataflow([*FLAGS, "--no_wait_until_finish"]).leftover == "job submitted"
    assert Dataflow([*FLAGS, "--template_location=gs://b/t"]).leftover == "template in gs://b/t"


def test_the_package_is_staged_unless_the_user_brings_it():
    with Dataflow(FLAGS).staged() as flags:
        assert flags[0] == "--setup_file"
    with Dataflow([*FLAGS, "--sdk_container_image=x"]).staged() as flags:
        assert flags == []
