"""Experiments as commands: results, going on, bad input, and whether the idea works."""

import json
import shutil

import pytest

from finetune.data import conll
from finetune.papers.dualner.settings import METHODS
from tests.helpers.lazy import lazy

dual_training = lazy("finetune.papers.dualner.training")
tagger_module = lazy("finetune.tagger.tagger")
report = lazy("finetune.papers.dualner.report")
transformers = lazy("transformers")

SAME = {"seconds": 0, "digest": ""}
"""What differs between two equal runs; the digest of a record is of its seconds, too."""


def result(output, method, seed=555):
    return json.loads((output / f"seed-{seed}" / method / "result.json").read_text())


@pytest.mark.slow
def test_it_works(world, teach, tmp_path):
    """On the language without labels, dual teaching beats multitask alone."""
    code, out, err = teach(
        "--method", "dual", "--seeds", 1, "--output", tmp_path / "out", recipe="recipe"
    )
    assert code == 0, err
    second = str(world / "second")
    f1 = {
        name: result(tmp_path / "out", name)["test"][second]["f1"] for name in ("multitask", "dual")
    }
    assert f1["dual"] - f1["multitask"] > 0.05
    assert "| dual |" in out
    tagger = tagger_module.Tagger.load(str(tmp_path / "out" / "seed-555" / "dual"))
    scores = result(tmp_path / "out", "dual")["test"]
    assert tagger.score(second) == pytest.approx(scores[second]["f1"])
    row = max(conll.read(str(world / "first" / "test.txt")), key=lambda row: len(row.tokens))
    (entity,) = tagger.predict([" ".join(row.tokens)])[0]
    assert [entity.type] == sorted({tag[2:] for tag in row.tags if tag != "O"})
    assert 0 < entity.score <= 1
    plain = transformers.AutoModelForTokenClassification.from_pretrained(
        tmp_path / "out" / "seed-555" / "dual"
    )
    assert plain.classifier.out_features == 5


@pytest.mark.slow
def test_same_numbers_twice_and_every_method(world, teach, tmp_path):
    outs = []
    for name in ("one", "two"):
        code, out, err = teach("--method", "all", "--output", tmp_path / name)
        assert code == 0, err
        outs.append(out)
    assert outs[0] == outs[1]
    for method in METHODS:
        one, two = (result(tmp_path / name, method) for name in ("one", "two"))
        assert {**one, **SAME} == {**two, **SAME}
        weights = [
            tmp_path / name / "seed-555" / method / "model.safetensors" for name in ("one", "two")
        ]
        assert weights[0].read_bytes() == weights[1].read_bytes()
        assert not list(weights[0].parent.glob("checkpoint-*"))
    sizes = {name: result(tmp_path / "one", name)["unlabelled"] for name in METHODS}
    assert sizes == {
        **dict.fromkeys(METHODS, 300),
        "no-target": 0,
        "multitask-long": 0,
        "sequence": 0,
        "span": 0,
        "multitask": 0,
    }
    assert "| sequence |" in outs[0]
    assert "| no-regularisation |" in outs[0]
    assert "| self-teaching |" in outs[0]


@pytest.mark.slow
def test_the_control_trains_for_as_many_steps_without_a_teacher(world, teach, tmp_path):
    code, out, err = teach("--method", "dual", "multitask-long", "--output", tmp_path / "out")
    assert code == 0, err
    lines = {name: result(tmp_path / "out", name) for name in ("multitask-long", "dual")}
    last = {name: one["dev"]["history"][-1]["step"] for name, one in lines.items()}
    assert last["multitask-long"] == last["dual"]
    assert lines["multitask-long"]["unlabelled"] == 0 < lines["dual"]["unlabelled"]
    assert out.count("| multitask-long |") == 2  # by language, and among the ablations


def test_published_scores_of_the_languages_that_the_paper_has():
    rows = report._published(["wikiann/en", "folder", "wikiann/es"])
    known = report._published(["wikiann/en", "wikiann/es"])
    assert rows
    for one, other in zip(rows, known, strict=True):
        assert [one[0], one[1], one[3]] == other[:3]
        assert (one[2], one[4]) == ("-", "-")
    assert report._published(["folder"]) == []


class Stopped(Exception):
    """As if the process were killed."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        "dual",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("multitask", "self-teaching")),
    ],
)
def test_a_killed_stage_goes_on_exactly(world, teach, tmp_path, monkeypatch, method):
    code, _, err = teach("--method", method, "--output", tmp_path / "straight")
    assert code == 0, err
    save = dual_training.DualTrainer._save_checkpoint
    pseudo = METHODS[method].pseudo

    def killed(self, model, trial):
        save(self, model, trial)
        if self.state.global_step == 12 and bool(self._pseudo) == bool(pseudo):
            raise Stopped

    monkeypatch.setattr(dual_training.DualTrainer, "_save_checkpoint", killed)
    with pytest.raises(Stopped):
        teach("--method", method, "--output", tmp_path / "killed")
    folder = tmp_path / "killed" / "seed-555" / method
    assert {path.name for path in folder.glob("checkpoint-*")} >= {"checkpoint-12"}
    # As if it had been killed while it wrote the next checkpoint.
    shutil.copytree(folder / "checkpoint-12", folder / "checkpoint-13")
    (folder / "checkpoint-13" / "trainer_state.json").unlink()
    monkeypatch.setattr(dual_training.DualTrainer, "_save_checkpoint", save)
    code, _, err = teach("--method", method, "--output", tmp_path / "killed")
    assert code == 0, err
    one, two = (result(tmp_path / name, method) for name in ("straight", "killed"))
    assert {**one, **SAME} == {**two, **SAME}
    weights = [
        tmp_path / name / "seed-555" / method / "model.safetensors"
        for name in ("straight", "killed")
    ]
    assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--recipe", "none"], "--recipe none: no such recipe; use dualner-base"),
        (["--source-share", "0"], "--source-share 0: give more than 0"),
        (["--epochs", "0"], "--epochs 0: give 1 or more"),
        (["--target-text", "x=y"], "--target-text x=y: write SET=PATH"),
        (["--target-text", "none.txt"], "--target-text none.txt: no text file, documents"),
        (["--seeds", "9"], "--seeds 9: give at most 5"),
    ],
)
def test_bad_input_is_one_line(teach, tmp_path, flags, message):
    code, _, err = teach(*flags, "--output", tmp_path / "out")
    assert code == 2
    assert message in err.splitlines()[-1]


def test_sets_that_do_not_fit(world, teach, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(world / "second", other)
    for path in other.iterdir():
        path.write_text(path.read_text().replace("person", "animal").replace("city", "plant"))
    code, _, err = teach("--output", tmp_path / "out", targets=(other,))
    assert code == 2
    assert "its types (animal, plant) are none of the source's" in err
    code, _, err = teach("--output", tmp_path / "out", targets=(world / "first",))
    assert code == 2
    assert "name a set twice" in err
    (tmp_path / "out" / "seed-555" / "multitask").mkdir(parents=True)
    (tmp_path / "out" / "seed-555" / "multitask" / "begun.json").write_text('{"key": "x"}')
    code, _, err = teach("--output", tmp_path / "out")
    assert code == 2
    assert "made with other settings or data; give another --output" in err


@pytest.mark.parametrize("method", ["dual", "self-teaching"])
def test_a_line_without_words_between_others(world, teach, tmp_path, method):
    """U+200B alone has no sub-word: its piece teaches nothing, and shifts no other one."""
    text = tmp_path / "text.txt"
    lines = ["ada lived in ulm"] * 9 + ["\u200b"] + ["emmy lived in rom"] * 9
    text.write_text("\n".join(lines), encoding="utf-8")
    flags = ("--method", method, "--target-text", text)
    code, _, err = teach(*flags, "--output", tmp_path / "out")
    assert code == 0, err
    assert result(tmp_path / "out", method)["unlabelled"] == 19
