import json
import platform

import pytest

from nerbert import __version__
from nerbert.errors import UserError
from nerbert.storage.places import Place
from pipeline.clusters import check
from pipeline.clusters.check import CheckJob, Wanted, facts, raise_problem

HERE = ".".join(platform.python_version_tuple()[:2])


@pytest.fixture
def wanted(tmp_path):
    (tmp_path / "dump.xml").write_text("<mediawiki/>")
    (tmp_path / ".check").mkdir()
    (tmp_path / ".check" / "proof").write_text("token")
    return Wanted.of([Place(tmp_path / "dump.xml")], Place(tmp_path / ".check" / "proof"), "token")


def problem(wanted):
    (found,) = facts(wanted)
    return found[1:]


def changed(wanted, **values):
    return Wanted(**{**vars(wanted), **values})


def test_a_fit_host(wanted, tmp_path):
    assert problem(wanted)[0] == ""
    assert len(list(tmp_path.glob(".check/proof.*"))) == 1


def test_what_can_be_wrong(wanted, tmp_path):
    assert problem(changed(wanted, python="3.9")) == ("python", f"Python {HERE}", "Python 3.9")
    ours = f"nerbert {__version__}"
    other = changed(wanted, package=("9.9", wanted.package[1]))
    assert problem(other) == ("package", ours, "nerbert 9.9")
    edited = changed(wanted, package=(__version__, "0"))
    assert problem(edited) == ("package", ours, "other code")
    nowhere = Place(tmp_path / "nowhere.xml")
    assert problem(changed(wanted, inputs=((nowhere, 3),))) == (
        *("input", nowhere, "No such file or directory"),
    )
    (path, size) = wanted.inputs[0]
    assert problem(changed(wanted, inputs=((path, 1234),))) == (
        *("input", path, f"{size} bytes there, 1,234 here"),
    )
    assert problem(changed(wanted, content="of another folder")) == (
        *("output", Place(tmp_path), "another folder of the same name"),
    )
    assert problem(changed(wanted, proof=nowhere))[0] == "output"


def test_of_many_inputs_some_are_looked_at(tmp_path):
    paths = [tmp_path / f"{number:03d}" for number in range(100)]
    for path in paths:
        path.touch()
    looked = [path for path, _ in Wanted.of(list(map(Place, paths)), Place(""), "").inputs]
    assert 10 < len(looked) < 20
    assert (looked[0], looked[-1]) == (str(paths[0]), str(paths[-1]))


def answers(*problems):
    class Counter:
        def __init__(self, name):
            self.key = self
            self.metric = self
            self.name = name

    class Result:
        def metrics(self):
            return self

        def query(self, _):
            return {"counters": [Counter(json.dumps(p)) for p in problems]}

    return Result()


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            ["python", "Python 3.9", "Python 3.11"],
            "-x y: host h has Python 3.9, here is Python 3.11;",
        ),
        (
            ["package", "nerbert 1", "nerbert 2"],
            "-x y: host h has nerbert 1, here is nerbert 2; inst",
        ),
        (
            ["package", "nerbert 1", "other code"],
            "-x y: host h has nerbert 1, but with other code; ",
        ),
        (
            ["input", "/d.xml", "No such file"],
            "--dump /d.xml: host h does not see it (No such file);",
        ),
        (
            ["output", "/out", "Read-only"],
            "--output /out: host h does not see it (Read-only); workers ",
        ),
    ],
)
def test_messages_name_flag_host_and_remedy(found, message):
    with pytest.raises(UserError) as raised:
        raise_problem(answers(["g", "", "1", ""], ["h", *found]), "-x y")
    assert str(raised.value).startswith(message)
    if found[0] in ("input", "output"):
        assert str(raised.value).endswith("a shared disk, or s3://, gs://, hdfs://")


def test_counts_who_answered():
    assert raise_problem(answers(["g", "", "1", ""], ["g", "", "2", ""]), "-x") == 2


def test_the_job_brings_the_answers_back(wanted):
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
    _ = pipeline | CheckJob(changed(wanted, content="other"), 2)
    result = pipeline.run()
    result.wait_until_finish()
    with pytest.raises(UserError, match="another folder of the same name"):
        raise_problem(result, "-x")


def test_the_graph_holds_no_function_by_value(wanted):
    """A worker with another Python must be able to read it, and say so."""
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
    _ = pipeline | CheckJob(wanted, 2)
    proto = pipeline.to_runner_api()
    payloads = [t.spec.payload for t in proto.components.transforms.values()]
    assert payloads
    assert not any(b"_make_function" in payload for payload in payloads)


def test_the_code_of_workers_has_a_digest(monkeypatch):
    version, digest = check.package()
    assert (version, len(digest)) == (__version__, 32)
