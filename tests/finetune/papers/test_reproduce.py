"""Plans of papers: their commands are valid; claims by brute force; a run, stopped and continued."""

import json
import re
import shutil
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from finetune.papers.reproduce import run
from finetune.papers.reproduce.claims import judge_claim, rows_of
from finetune.papers.reproduce.plan import Claim, Paper, Plan, ReproduceOptions, Scale
from nerbert.commands.table import COMMANDS, main
from tests.helpers.toy import write_set

ALL = list(product(get_args(Paper), get_args(Scale)))


def options(paper, scale, **more):
    return ReproduceOptions(paper=paper, scale=scale, output="my out", **more)


@pytest.mark.parametrize(("paper", "scale"), ALL)
def test_every_command_is_valid(paper, scale):
    """Flags and values are known, inputs with spaces stay whole, and earlier outputs are used."""
    pytest.importorskip("torch")
    plan = Plan.of(options(paper, scale, dump=["a b.xml"], types=["t"], data_root="my sets"))
    assert len({step.name for step in plan.steps}) == len(plan.steps)
    written = set()
    for step in plan.steps:
        if step.why_not:
            continue
        name, *flags = step.command
        parsed = COMMANDS[name].command().parse(flags)
        assert not parsed.positionals or name in ("corpus", "pretrain", "dapt")
        output = parsed.output
        assert output.startswith(str(Path("my out").absolute()))
        for word in step.command:
            if word.startswith(str(Path("my out").absolute())) and not word.startswith(output):
                assert any(word.startswith(one) for one in written), word
        written.add(output)
    names = {step.name for step in plan.steps}
    assert {step for claim in plan.claims for step in claim.step.split()} <= names
    runs = {step.name for step in plan.steps if not step.why_not}
    assert all({*step.after} <= runs for step in plan.steps if not step.why_not)


def test_inputs_that_are_missing_are_said():
    plan = Plan.of(options("nerbert", "small", dump=["d"]))
    assert plan.steps[0].why_not == "needs --types"
    only = Plan.of(options("nerbert", "debug", only=["full"]))
    assert {s.name for s in only.steps if not s.why_not} == {"full"}
    with pytest.raises(Exception, match="no such step; there are run, full"):
        Plan.of(options("nerbert", "debug", only=["fulll"]))


def runs(folder, *facts):
    """A report with runs; the score is the last fact, in per cent."""
    folder.mkdir()
    entries = [
        {
            "model": model,
            "data": data,
            "shots": shots,
            "setting": "target",
            "source": [],
            "settings": {"seed": seed},
            "strict": {"f1": f1 / 100},
        }
        for model, data, shots, seed, f1 in facts
    ]
    (folder / "report.json").write_text(json.dumps({"runs": entries}), encoding="utf-8")
    return rows_of(folder)


def test_claims_compare_equal_runs_only(tmp_path):
    rows = runs(
        tmp_path / "step",
        ("a", "x", "all", 1, 50), ("b", "x", "all", 1, 48),
        ("a", "x", "all", 2, 52), ("b", "x", "all", 2, 49),
        ("a", "y", "all", 1, 90),  # the other side has not run
        ("b", "z", "all", 1, 10),
        ("a", "x", "10", 1, 40), ("b", "x", "10", 1, 30),
        ("a", "x", "10", 2, 41), ("b", "x", "10", 2, 32),
    )  # fmt: skip
    better, than = {"model": "a"}, {"model": "b"}
    found = judge_claim(Claim("", "", better | {"shots": "all"}, than | {"shots": "all"}), rows)
    assert (found.pairs, round(found.gain, 6), round(found.error, 6)) == (2, 2.5, 0.5)
    assert found.says == "holds"
    assert judge_claim(Claim("", "", than, better), rows).says == "does not hold"
    alone = {"data": "x", "seed": 1, "shots": "all"}
    assert judge_claim(Claim("", "", better | alone, than | alone), rows).says == "holds (one pair)"
    more = judge_claim(Claim("", "", better, than, {"shots": "10"}, {"shots": "all"}), rows)
    assert (more.pairs, round(more.gain, 6)) == (2, ((10 - 2) + (9 - 3)) / 2)
    assert judge_claim(Claim("", "", {"model": "c"}, than), rows).says == "not run"
    close = runs(
        tmp_path / "close",
        ("a", "x", "all", 1, 50), ("b", "x", "all", 1, 48),
        ("a", "x", "all", 2, 50), ("b", "x", "all", 2, 51),
    )  # fmt: skip
    assert judge_claim(Claim("", "", better, than), close).says == "not clear"
    assert judge_claim(Claim("", "", better, better), close).says == "not clear"


def test_claims_compare_each_language(tmp_path):
    (tmp_path / "dual").mkdir()
    entries = [
        {"variant": name, "share": 1.0, "seed": 1, "languages": ["en", "es"], "mean_f1": 0.5,
         "test": {"en": {"f1": en / 100}, "es": {"f1": es / 100}}}
        for name, en, es in (("dual", 60, 50), ("multitask", 59, 43))
    ]  # fmt: skip
    (tmp_path / "dual" / "report.json").write_text(json.dumps({"results": entries}))
    rows = rows_of(tmp_path / "dual")
    found = judge_claim(Claim("", "", {"variant": "dual"}, {"variant": "multitask"}), rows)
    assert (found.pairs, round(found.gain, 6), round(found.error, 6)) == (2, 4.0, 3.0)


def test_the_time_before_a_stop_counts(tmp_path, monkeypatch, capsys):
    now, stops = iter(range(100, 1000, 10)), iter([True, *[False] * 9])
    monkeypatch.setattr(run.time, "monotonic", lambda: next(now))

    def failure(step, log):
        if next(stops):
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr(run, "_failure", failure)
    plan, record = Plan.of(options("dualner", "debug")), {"steps": {}}
    with pytest.raises(KeyboardInterrupt):
        list(run._run(plan, tmp_path, record))
    for _ in range(2):  # looking at what is done does not count
        done = {one.step.name: one.seconds for one in run._run(plan, tmp_path, record)}
        assert (done["dual"], done["share"]) == (20, 10)
    record = json.loads((tmp_path / run.STEPS).read_text())
    assert "dual: " in (outlook := run._outlook(plan, record, tmp_path))
    assert "nerbert dualner" not in outlook
    (tmp_path / "dual").mkdir()
    (tmp_path / "dual" / "new.json").write_text("{}")  # outputs that no step left
    assert run._outlook(plan, record, tmp_path).count("    nerbert dualner") == 1


def test_a_dry_run_names_the_steps_that_lack_an_earlier_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    flags = ["--scale", "small", "--base-model", "m", "--output", "out", "--dry-run"]
    assert main(["reproduce", "nerbert", *flags]) == 0
    out = capsys.readouterr().out
    assert "run: the corpus (section 2, Table 1) (needs --dump)\n" in out
    assert "full: pre-training with all categories (section 3) (needs the step run)\n" in out
    assert "nerbert pretrain" not in out
    assert not (tmp_path / "out").exists()


FLAGS = ["reproduce", "tner", "--scale", "debug", "--data-root", "sets", "--output", "out"]


@pytest.fixture
def sets(tmp_path, monkeypatch):
    """The sets of T-NER at debug, with a type that is HTML."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def make():
        (tmp_path / "sets" / "crossner").mkdir(parents=True)
        for name in ("politics", "ai"):
            person = "<script>alert(1)</script>"
            folder = write_set(tmp_path / "sets" / "crossner" / name, person=person)
            (folder / "valid.txt").rename(folder / "dev.txt")

    return make


def test_each_step_looks_at_its_own_outputs(tmp_path, monkeypatch):
    """Every step is asked again; the page shows HTML of types as text, whatever a report has."""
    asked = []

    def step_done(step, log):
        asked.append(step.name)
        folder = tmp_path / "out" / step.name
        folder.mkdir(exist_ok=True)
        (folder / "matrix.json").write_text('{"cells": []}')
        (folder / "matrix.md").write_text("| <img src=x onerror=alert(1)> |\n|---|\n| <b>1</b> |\n")
        return ""

    monkeypatch.setattr(run, "_failure", step_done)
    monkeypatch.chdir(tmp_path)
    flags = ["reproduce", "dualner", "--scale", "debug", "--output"]
    assert main([*flags, "out"]) == 0
    (steps,) = [asked.copy()]
    html = (tmp_path / "out" / "report" / "index.html").read_text()
    assert "Content-Security-Policy" in html
    assert not re.search("<(img|b)[ >]", html.split("<body>")[1])
    record = json.loads((tmp_path / "out" / "steps.json").read_text())
    shutil.rmtree(tmp_path / "out" / steps[0])
    assert main([*flags, "../" + tmp_path.name + "/out"]) == 0
    assert asked == steps * 2
    assert (tmp_path / "out" / steps[0] / "matrix.json").is_file()
    again = json.loads((tmp_path / "out" / "steps.json").read_text())
    assert [s["command"] for s in again["steps"].values()] == [
        s["command"] for s in record["steps"].values()
    ]


@pytest.mark.slow
def test_a_run_goes_on_and_says_what_failed(sets, tmp_path, monkeypatch, capsys):
    """A failing step does not stop the others; each step looks at its own outputs."""
    assert main(FLAGS) == 1
    assert "out/report/index.html: matrix: " in capsys.readouterr().err
    page = (tmp_path / "out" / "report" / "report.md").read_text()
    assert "| A tagger is best in its own domain (Tables 3 and 7) | not run |" in page
    assert "out/logs/matrix.log)" in page
    sets()
    assert main(FLAGS) == 0
    out = capsys.readouterr().out
    assert "| A tagger is best in its own domain (Tables 3 and 7) | " in out
    html = (tmp_path / "out" / "report" / "index.html").read_text()
    assert "<table>" in html
    assert "Content-Security-Policy" in html
    assert "<script>" not in html.split("<body>")[1]
    for figure in (tmp_path / "out" / "matrix").glob("*.png"):
        assert f'src="../matrix/{figure.name}"' in html
    # Another spelling of the folder repeats nothing; what is gone is made again, from what is left.
    before = (tmp_path / "out" / "matrix" / "matrix.json").read_bytes()
    fits = [path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("row.json")]
    shutil.rmtree(tmp_path / "out" / "report")
    (tmp_path / "out" / "matrix" / "matrix.json").unlink()
    monkeypatch.chdir(tmp_path / "sets")
    assert main([*FLAGS[:5], str(tmp_path / "sets"), "--output", "../out"]) == 0
    assert "(Tables 3 and 7) | not run" not in capsys.readouterr().out
    assert (tmp_path / "out" / "matrix" / "matrix.json").read_bytes() == before
    assert [path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("row.json")] == fits


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"matrix": {"command": [], "done": true}}', '{"steps": [1]}']
)
def test_steps_of_another_shape_or_of_the_user(sets, tmp_path, capsys, content):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "steps.json").write_text(content)
    assert main(FLAGS) == 2
    assert "out: not empty, and no run made it" in capsys.readouterr().err
    assert (tmp_path / "out" / "steps.json").read_text() == content


def test_folders_and_pages_of_the_user_stay(sets, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "_failure", lambda step, log: "no sets")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("mine")
    assert main(FLAGS) == 2
    assert "out: not empty, and no run made it" in capsys.readouterr().err
    (tmp_path / "out" / "thesis.tex").unlink()
    assert main(FLAGS) == 1  # without the sets
    assert main([*FLAGS[:3], "small", *FLAGS[4:]]) == 2
    assert "holds tner at the scale debug; give another --output" in capsys.readouterr().err
    page = tmp_path / "out" / "report" / "index.html"
    page.write_text("<p>mine")
    assert main(FLAGS) == 2
    assert "index.html: nerbert reproduce did not write it" in capsys.readouterr().err
    page.unlink()
    page.symlink_to(tmp_path / "elsewhere.html")
    (tmp_path / "elsewhere.html").write_text("<p>mine")
    assert main(FLAGS) == 2
    assert (tmp_path / "elsewhere.html").read_text() == "<p>mine"
