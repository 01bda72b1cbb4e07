"""Plans of papers: their commands are valid; claims by brute force; a run, stopped and continued."""

import json
import random
import re
import shutil
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from finetune.papers.reproduce.claims import Verdict, judge_claim, read_runs
from finetune.papers.reproduce.plan import Claim, Paper, Plan, ReproduceOptions, Scale
from nerbert.commands import steps
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
        words = 2 if step.command[0] == "fetch" else 1
        name, flags = " ".join(step.command[:words]), step.command[words:]
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


def report(folder, *entries):
    """A report with runs; F1 in per cent."""
    folder.mkdir(exist_ok=True)
    rows = [
        {
            "setting": "target",
            "source": [],
            "shots": "all",
            "data": "x",
            **{name: value for name, value in facts.items() if name != "seed"},
            "settings": {"seed": facts.get("seed", 1), "head": facts.get("head", "linear")},
            "strict": {"f1": f1 / 100},
        }
        for facts, f1 in entries
    ]
    (folder / "report.json").write_text(json.dumps({"runs": rows}), encoding="utf-8")
    return read_runs(folder)


def claim(better, than, **more):
    return Claim("", "", "", better, than, **more)


A, B = {"model": "a"}, {"model": "b"}


def test_claims_compare_equal_runs_only(tmp_path):
    runs = report(
        tmp_path,
        *((A | {"seed": seed}, f1) for seed, f1 in ((1, 50), (2, 52), (3, 51))),
        *((B | {"seed": seed}, f1) for seed, f1 in ((1, 48), (2, 49), (3, 48.5))),
        (A | {"data": "y"}, 90),  # the other side has not run
        (B | {"data": "z"}, 10),
        (A | {"head": "crf"}, 90),
        *((A | {"seed": seed, "shots": "10"}, f1) for seed, f1 in ((1, 40), (2, 41), (3, 42))),
        *((B | {"seed": seed, "shots": "10"}, f1) for seed, f1 in ((1, 30), (2, 32), (3, 33))),
    )
    of_all = {"where": {"shots": "all"}}
    verdict = judge_claim(claim(A, B, **of_all), runs)
    assert verdict.gains == pytest.approx((2, 3, 2.5))
    assert verdict.margin == pytest.approx(4.302653 * 0.5 / 3**0.5)  # a table of t, two degrees
    assert verdict.says == "holds"
    assert judge_claim(claim(B, A, **of_all), runs).says == "does not hold"
    seed_of = {"where": {"shots": "all", "seed": (1, 2)}}
    assert judge_claim(claim(A, B, **seed_of), runs).says == "two seeds, say little"
    alone = judge_claim(claim(A, B, where={"shots": "all", "seed": 1}), runs)
    assert (alone.says, alone.gains, alone.margin) == (
        "one seed, says little", pytest.approx((2,)), None,
    )  # fmt: skip
    more = judge_claim(claim(A, B, large={"shots": "10"}, small={"shots": "all"}), runs)
    assert more.gains == pytest.approx((8, 6, 6.5))
    assert judge_claim(claim({"model": "c"}, B), runs).says == "not run"


def test_rows_beside_do_not_change_a_verdict(tmp_path):
    """Whatever the baselines do: BERT 66.6 -> 68.3 says that the source helps by 1.7."""
    source = {"setting": "source-target", "source": ["conll"]}
    bert = {"model": "bert", "pre-training": "none", "domain": "politics"}
    pairs = [(66.5, 68.1), (66.6, 68.3), (66.7, 68.5)]
    of_bert = [
        (bert | regime | {"seed": seed}, f1)
        for seed, pair in enumerate(pairs)
        for regime, f1 in zip(({}, source), pair, strict=True)
    ]
    beside = [
        (bert | regime | {"seed": seed, "pre-training": name, "head": head}, f1)
        for name, head in (("Coach (word)", "coach"), ("CDLM", "cdlm"), ("multi-cell LSTM", "x"))
        for seed in range(3)
        for regime, f1 in (({}, 60), (source, 40))
    ]
    plan = Plan.of(options("crossner", "paper"))
    (helps,) = [one for one in plan.claims if one.says == "The source helps BERT"]
    for rows in (of_bert, [*of_bert, *beside]):
        verdict = judge_claim(helps, report(tmp_path, *rows))
        assert verdict.gains == pytest.approx((1.6, 1.7, 1.8))
        assert (round(verdict.gain, 2), verdict.says) == (1.7, "holds")


def test_chance_alone_gives_a_verdict_in_one_of_twenty_cases(tmp_path):
    rng = random.Random(0)
    for seeds in (3, 5):
        verdicts = [
            Verdict(claim(A, B), tuple(rng.gauss(0, 1) for _ in range(seeds))).says
            for _ in range(2000)
        ]
        clear = sum(says != "not clear" for says in verdicts) / len(verdicts)
        assert 0.035 < clear < 0.065


def test_what_is_claimed_of_a_difference():
    for expects, of_gain, of_loss, of_none in (
        ("gain", "holds", "does not hold", "not clear"),
        ("no loss", "holds", "does not hold", "no clear difference, as claimed"),
        ("no difference", "does not hold", "does not hold", "no clear difference, as claimed"),
    ):
        of = claim(A, B, expects=expects)
        assert Verdict(of, (1.0, 1.1, 0.9)).says == of_gain
        assert Verdict(of, (-1.0, -1.1, -0.9)).says == of_loss
        assert Verdict(of, (1.0, -1.0, 0.1)).says == of_none
        assert Verdict(of, (0.0, 0.0, 0.0)).says == of_none


def test_seeds_are_compared_by_what_all_have(tmp_path):
    runs = report(
        tmp_path,
        *((A | {"seed": seed}, 50 + seed) for seed in (1, 2, 3)),
        *((B | {"seed": seed}, 50) for seed in (1, 2, 3)),
        (A | {"seed": 1, "data": "y"}, 90),
        (B | {"seed": 1, "data": "y"}, 10),
    )
    assert judge_claim(claim(A, B), runs).gains == pytest.approx((1, 2, 3))


def test_languages_of_a_run_are_no_seeds_of_their_own(tmp_path):
    entries = [
        {"variant": name, "share": 1.0, "seed": 1, "languages": ["en", "es"], "mean_f1": 0.5,
         "test": {"en": {"f1": en / 100}, "es": {"f1": es / 100}}}
        for name, en, es in (("dual", 60, 50), ("multitask", 59, 43))
    ]  # fmt: skip
    (tmp_path / "report.json").write_text(json.dumps({"results": entries}))
    verdict = judge_claim(claim({"variant": "dual"}, {"variant": "multitask"}), read_runs(tmp_path))
    assert (verdict.gains, verdict.says) == (pytest.approx((4.0,)), "one seed, says little")


def test_tner_is_judged_by_its_own_score(tmp_path):
    """Types are ignored in its tables; the tagger of all sets is no tagger of another domain."""
    plan = Plan.of(options("tner", "small"))
    cells = [
        {"model": "m", "data": data, "source": source, "setting": "zero-shot", "view": {},
         "settings": {"seed": seed}, "strict": {"f1": 0.01}, "tner_span_f1": score}
        for seed in (1, 2, 3)
        for data, source, score in (
            ("x", ["x"], 0.8 + seed / 1000), ("x", ["y"], 0.5), ("x", ["z"], 0.3),
            ("x", ["x", "y", "z"], 0.9),
        )
    ]  # fmt: skip
    (tmp_path / "matrix.json").write_text(json.dumps({"cells": cells}))
    verdict = judge_claim(plan.claims[0], read_runs(tmp_path))
    assert verdict.gains == pytest.approx((40.1, 40.2, 40.3))


def test_every_claim_cites_the_paper_and_a_step_gives_its_scores():
    for paper in get_args(Paper):
        plan = Plan.of(options(paper, "paper"))
        assert len({one.says for one in plan.claims}) == len(plan.claims) > 2
        assert all(one.cites for one in plan.claims)


def test_the_time_before_a_stop_counts(tmp_path, monkeypatch, capsys):
    now, stops = iter(range(100, 1000, 10)), iter([True, *[False] * 9])
    monkeypatch.setattr(steps.time, "monotonic", lambda: next(now))

    def failure(step, log):
        if next(stops):
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr(steps, "_failure", failure)
    plan, record = Plan.of(options("dualner", "debug")), {"steps": {}}
    with pytest.raises(KeyboardInterrupt):
        list(steps.run_steps(plan.steps, tmp_path, record))
    for _ in range(2):  # looking at what is done does not count
        done = {one.step.name: one.seconds for one in steps.run_steps(plan.steps, tmp_path, record)}
        assert (done["dual"], done["share"]) == (20, 10)
    lines = "\n".join(steps.outlook(plan.steps, tmp_path, "two cores"))
    assert "dual: " in lines
    assert "nerbert dualner" not in lines
    (tmp_path / "dual").mkdir()
    (tmp_path / "dual" / "new.json").write_text("{}")  # outputs that no step left
    lines = "\n".join(steps.outlook(plan.steps, tmp_path, "two cores"))
    assert lines.count("    nerbert dualner") == 1


def test_a_dry_run_names_the_steps_that_lack_an_earlier_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    flags = ["--scale", "small", "--base-model", "m", "--output", "out", "--dry-run"]
    assert main(["reproduce", "nerbert", *flags]) == 0
    out = capsys.readouterr().out
    assert "run: the corpus (section 2, Table 1, Figures 1 and 8) (needs --dump)\n" in out
    assert "full: pre-training with all categories (section 3) (needs the step run)\n" in out
    assert "nerbert pretrain" not in out
    assert not (tmp_path / "out").exists()


def test_a_dump_that_is_not_there_is_said_before_anything_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    flags = ["--dump", "nosuch.xml", "--types", "nosuch.ttl", "--output", "out", "--dry-run"]
    assert main(["reproduce", "nerbert", *flags]) == 2
    assert "--dump nosuch.xml: no such file" in capsys.readouterr().err
    (tmp_path / "nosuch.xml").touch()
    assert main(["reproduce", "nerbert", *flags]) == 2
    assert "--types nosuch.ttl: no such file" in capsys.readouterr().err


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

    monkeypatch.setattr(steps, "_failure", step_done)
    monkeypatch.chdir(tmp_path)
    flags = ["reproduce", "dualner", "--scale", "debug", "--output"]
    assert main([*flags, "out"]) == 0
    (names,) = [asked.copy()]
    html = (tmp_path / "out" / "report" / "index.html").read_text()
    assert "Content-Security-Policy" in html
    assert not re.search("<(img|b)[ >]", html.split("<body>")[1])
    record = json.loads((tmp_path / "out" / "steps.json").read_text())
    shutil.rmtree(tmp_path / "out" / names[0])
    assert main([*flags, "../" + tmp_path.name + "/out"]) == 0
    assert asked == names * 2
    assert (tmp_path / "out" / names[0] / "matrix.json").is_file()
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
    assert re.search(r"Tables 3 and 7 \| not run \|", page)
    assert "out/logs/matrix.log)" in page
    sets()
    assert main(FLAGS) == 0
    out = capsys.readouterr().out
    assert "Tables 3 and 7 | no verdict at debug | " in out
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
    assert "Tables 3 and 7 | not run" not in capsys.readouterr().out
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
    monkeypatch.setattr(steps, "_failure", lambda step, log: "no sets")
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
