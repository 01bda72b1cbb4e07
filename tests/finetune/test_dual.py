"""DualNER: the terms of its loss, the teacher, going on, and whether the idea works."""

import json
import math
import os
import shutil

import numpy as np
import pytest
import torch
from tongues import write_world
from transformers import AutoModelForTokenClassification

from finetune import conll, dual, dual_config, dual_data, dual_loss, dual_training, runs
from finetune.dual_config import VARIANTS, DualSettings
from finetune.labelmaps import View
from finetune.tagger import Tagger
from pipeline.errors import UserError

RECIPE = """epochs = {epochs}
batch_size = 16
second_batch_size = 32
device_batch_size = 32
learning_rate = 2e-3
warmup_steps = 10
eval_steps = {steps}
regularisation = 0.5
"""
TAGS = 3  # one type: O, B, I; then none and the type, for starts and for ends


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    torch.manual_seed(0)
    write_world(folder)
    (folder / "recipe.toml").write_text(RECIPE.format(epochs=20, steps=40))
    (folder / "short.toml").write_text(RECIPE.format(epochs=1, steps=6))
    return folder


@pytest.fixture
def teach(world, capsys):
    def called(*flags, recipe="short", targets=("second",)):
        runs.set_fingerprint.cache_clear()
        runs.model_fingerprint.cache_clear()
        command = ["--source", world / "first", "--targets", *(world / name for name in targets),
                   "--base-model", world / "base", "--recipe", world / f"{recipe}.toml", *flags]  # fmt: skip
        code = dual.main([str(word) for word in command])
        return code, *capsys.readouterr()

    return called


def result(output, variant, seed=555):
    return json.loads((output / f"seed-{seed}" / variant / "result.json").read_text())


def logsum(values):
    return math.log(sum(math.exp(value) for value in values))


SCORES = torch.tensor([[
    [0.0, 1.0, 2.0, 0.5, 1.5, 2.0, 0.0],
    [1.0, 0.0, 3.0, 1.0, 0.0, 0.0, 1.0],
    [2.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
]])  # fmt: skip
"""Three words: scores of O, B, I; of none and start; of none and end."""


def by_hand(labels):
    """Cross entropy of (tag, start, end) of each word."""
    total = 0.0
    for row, (tag, start, end) in zip(SCORES[0].tolist(), labels, strict=True):
        total += logsum(row[:3]) - row[tag]
        total += logsum(row[3:5]) - row[3 + start]
        total += logsum(row[5:]) - row[5 + end]
    return total


def test_multitask_loss_by_hand():
    """A mention of the first two words."""
    mask = torch.ones(1, 3, dtype=torch.bool)
    loss = dual_loss.gold_loss(SCORES, torch.tensor([[1, 2, 0]]), mask, ("sequence", "span"))
    assert loss.item() == pytest.approx(by_hand([(1, 1, 0), (2, 0, 1), (0, 0, 0)]), rel=1e-5)
    parts = [dual_loss.gold_loss(scores, torch.tensor([[1, 2, 0]]), mask, (head,)).item()
             for head, scores in (("sequence", SCORES[..., :3]), ("span", SCORES))]  # fmt: skip
    assert sum(parts) == pytest.approx(loss.item(), rel=1e-5)
    half = dual_loss.gold_loss(
        SCORES, torch.tensor([[1, 2, 0]]), mask & (SCORES[..., 0] < 2), ("span",)
    )
    assert half.item() < parts[1]
    assert (
        dual_loss.gold_loss(SCORES, torch.tensor([[1, 2, 0]]), mask & False, ("span",)).item() == 0
    )


def test_each_head_teaches_the_other():
    """By tags: I, I, O, so no mention. By spans: start at the first word, end at the second."""
    from finetune.span_head import labels_of

    tags, starts, ends = labels_of(SCORES, TAGS)
    assert tags.tolist() == [[1, 2, 0]]
    assert starts.tolist() == ends.tolist() == [[0, 0, 0]]
    mask = torch.ones(1, 3, dtype=torch.bool)
    loss = dual_loss.pseudo_loss(SCORES, (tags, starts, ends), mask)
    assert loss.item() == pytest.approx(by_hand([(1, 0, 0), (2, 0, 0), (0, 0, 0)]), rel=1e-5)


def test_self_teaching_is_the_divergence_of_each_head():
    mask = torch.ones(1, 3, dtype=torch.bool)
    teacher = SCORES.flip(1)
    wanted = 0.0
    for own, other in zip(SCORES[0].tolist(), teacher[0].tolist(), strict=True):
        for first, stop in ((0, 3), (3, 5), (5, 7)):
            one, two = own[first:stop], other[first:stop]
            for a, b in zip(one, two, strict=True):
                chance = math.exp(b - logsum(two))
                wanted += chance * ((b - logsum(two)) - (a - logsum(one)))
    assert dual_loss.self_loss(SCORES, teacher, mask).item() == pytest.approx(wanted, rel=1e-5)
    assert dual_loss.self_loss(SCORES, SCORES, mask).item() == pytest.approx(0, abs=1e-6)


def test_regularisation_by_hand():
    """One mention: the first two words. Its vector: the first word's, then the second's."""
    hidden = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    vectors, types, languages = dual_loss.entities(SCORES, hidden, mask, torch.tensor([4]))
    assert vectors.tolist() == [[1, 2, 3, 4]]
    assert (types.tolist(), languages.tolist()) == ([1], [4])
    assert dual_loss.entities(SCORES, hidden, mask & False, torch.tensor([4]))[0].shape == (0, 4)
    vectors = torch.tensor([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0], [5.0, 5.0]])
    types, languages = torch.tensor([1, 1, 1, 2]), torch.tensor([0, 0, 1, 1])
    # Type 1: the first language's mean is (1, 0), the second's (1, 2); type 2 is in one alone.
    assert dual_loss.regularisation(vectors, types, languages).item() == pytest.approx(2.0)
    assert dual_loss.regularisation(vectors, types, languages * 0).item() == 0


def test_it_works(world, teach, tmp_path):
    """On the language without labels, dual teaching beats multitask alone."""
    code, out, err = teach(
        "--variant", "dual", "--seeds", 3, "--output", tmp_path / "out", recipe="recipe"
    )
    assert code == 0, err
    second = str(world / "second")
    gains = []
    for seed in (555, 666, 777):
        f1 = {name: result(tmp_path / "out", name, seed)["test"][second]["f1"]
              for name in ("multitask", "dual")}  # fmt: skip
        gains.append(f1["dual"] - f1["multitask"])
    assert sorted(gains)[1] > 0
    assert np.mean(gains) > 0.1
    assert "| dual |" in out
    tagger = Tagger.load(str(tmp_path / "out" / "seed-555" / "dual"))
    scores = result(tmp_path / "out", "dual")["test"]
    assert tagger.score(second) == pytest.approx(scores[second]["f1"])
    row = max(conll.read(str(world / "first" / "test.txt")), key=lambda row: len(row.tokens))
    (entity,) = tagger.predict([" ".join(row.tokens)])[0]
    assert [entity.type] == sorted({tag[2:] for tag in row.tags if tag != "O"})
    assert 0 < entity.score <= 1
    plain = AutoModelForTokenClassification.from_pretrained(tmp_path / "out" / "seed-555" / "dual")
    assert plain.classifier.out_features == 5


def test_same_numbers_twice_and_every_variant(world, teach, tmp_path):
    outs = []
    for name in ("one", "two"):
        code, out, err = teach("--variant", "all", "--output", tmp_path / name)
        assert code == 0, err
        outs.append(out)
    assert outs[0] == outs[1]
    for variant in VARIANTS:
        one, two = (result(tmp_path / name, variant) for name in ("one", "two"))
        assert {**one, "seconds": 0} == {**two, "seconds": 0}
        weights = [
            tmp_path / name / "seed-555" / variant / "model.safetensors" for name in ("one", "two")
        ]
        assert weights[0].read_bytes() == weights[1].read_bytes()
        assert not list(weights[0].parent.glob("checkpoint-*"))
    sizes = {name: result(tmp_path / "one", name)["unlabelled"] for name in VARIANTS}
    assert sizes == {
        **dict.fromkeys(VARIANTS, 300),
        "no-target": 0,
        "sequence": 0,
        "span": 0,
        "multitask": 0,
    }
    assert "| sequence |" in outs[0]
    assert "| no-regularisation |" in outs[0]
    assert "| self-teaching |" in outs[0]


class Stopped(Exception):
    """As if the process were killed."""


@pytest.mark.parametrize("variant", ["multitask", "dual", "self-teaching"])
def test_a_killed_stage_goes_on_exactly(world, teach, tmp_path, monkeypatch, variant):
    code, _, err = teach("--variant", variant, "--output", tmp_path / "straight")
    assert code == 0, err
    save = dual_training.DualTrainer._save_checkpoint
    pseudo = VARIANTS[variant].pseudo

    def killed(self, model, trial):
        save(self, model, trial)
        if self.state.global_step == 12 and bool(self._pseudo) == bool(pseudo):
            raise Stopped

    monkeypatch.setattr(dual_training.DualTrainer, "_save_checkpoint", killed)
    with pytest.raises(Stopped):
        teach("--variant", variant, "--output", tmp_path / "killed")
    folder = tmp_path / "killed" / "seed-555" / variant
    assert {path.name for path in folder.glob("checkpoint-*")} >= {"checkpoint-12"}
    # As if it had been killed while it wrote the next checkpoint.
    shutil.copytree(folder / "checkpoint-12", folder / "checkpoint-13")
    (folder / "checkpoint-13" / "trainer_state.json").unlink()
    monkeypatch.setattr(dual_training.DualTrainer, "_save_checkpoint", save)
    code, _, err = teach("--variant", variant, "--output", tmp_path / "killed")
    assert code == 0, err
    one, two = (result(tmp_path / name, variant) for name in ("straight", "killed"))
    assert {**one, "seconds": 0} == {**two, "seconds": 0}
    weights = [
        tmp_path / name / "seed-555" / variant / "model.safetensors"
        for name in ("straight", "killed")
    ]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_better_student_becomes_the_teacher(world, tmp_path, monkeypatch):
    """Its weights are taken over, and it labels everything anew; a worse one changes nothing."""
    runs.set_fingerprint.cache_clear()
    settings = DualSettings(base_model=str(world / "base"), batch_size=32, second_batch_size=32)
    data = dual_data.read(str(world / "first"), [str(world / "second")], (), settings, View())
    from finetune.dual_runs import School

    school = School(tmp_path, str(world / "first"), (str(world / "second"),), (), settings, View())
    model, tokenizer = school._fresh(data, 0, spans=True)
    pieces = dual_training.pieces_of(data, tokenizer, settings, second=True)
    args = dual_training._arguments(tmp_path / "x", settings, pieces, 0, second=True)
    trainer = dual_training.DualTrainer(
        model, VARIANTS["dual"], data, dual_training.Best.of(model, 0.5), settings, True, args=args,
        train_dataset=pieces, eval_dataset=pieces, batch_size=32, processing_class=tokenizer,
        data_collator=dual_training.Collator(0),
    )  # fmt: skip
    before = [row.clone() for row in trainer._pseudo]
    assert len(before) == len(pieces)
    old = trainer.best.state["classifier.start.bias"].clone()
    with torch.no_grad():
        trainer.model.classifier.bias[1] += 50  # everything is a B- of the first type by its tags
    scores = {"f1": 0.4}
    monkeypatch.setattr(dual_training, "scores_by_language",
                        lambda *_: {"x": type("S", (), {"f1": scores["f1"]})()})  # fmt: skip
    trainer.evaluate()
    assert all(torch.equal(one, other) for one, other in zip(before, trainer._pseudo, strict=True))
    scores["f1"] = 0.6
    trainer.state.global_step = 7
    trainer.evaluate()
    assert (trainer.best.f1, trainer.best.steps) == (0.6, [7])
    tags, starts, ends = trainer._pseudo[3]
    assert set(starts.tolist()) == set(ends.tolist()) == {1}
    assert torch.equal(tags, before[3][0])  # what the spans say of the tags is what it was
    assert torch.equal(trainer.best.state["classifier.start.bias"], old)
    assert trainer.best.state["classifier.bias"][1] > 40


def test_text_of_the_target_and_shares_of_the_source(world, tmp_path):
    runs.set_fingerprint.cache_clear()
    names = str(world / "first"), [str(world / "second")]
    (tmp_path / "text.txt").write_text("Ein Satz, hier.\n\nNoch einer\n")
    data = dual_data.read(
        *names, [str(tmp_path / "text.txt")], DualSettings(), View(), 0.25, seed=3
    )
    assert len(data.labelled) == 75
    assert [number for number, _ in data.unlabelled] == [0] * 225 + [1] * 2
    assert data.unlabelled[-2][1] == ["Ein", "Satz", ",", "hier", "."]
    train = {tuple(row.tokens) for row in conll.read(str(world / "first" / "train.txt"))}
    assert {tuple(words) for _, words in data.unlabelled[:225]} <= train
    few = dual_data.read(
        *names, (), DualSettings(source_sentences=50, target_sentences=20, dev_sentences=5), View()
    )
    assert (len(few.labelled), len(few.unlabelled)) == (50, 20)
    assert [len(rows) for rows in few.dev.values()] == [5, 5]


def test_documents_of_the_pipeline_are_text(world, demo):
    settings = DualSettings(target_sentences=10)
    names = str(world / "first"), [str(world / "second")]
    data = dual_data.read(*names, [str(demo[0])], settings, View())
    assert len(data.unlabelled) == 10
    assert all(words for _, words in data.unlabelled)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--recipe", "none"], "--recipe none: no such recipe; use dualner-base"),
        (["--source-share", "0"], "--source-share 0: give more than 0"),
        (["--epochs", "0"], "epochs = 0: give 1 or more"),
        (["--target-text", "x=y"], "--target-text x=y: write SET=PATH"),
        (["--target-text", "none.txt"], "--target-text none.txt: no text file"),
        (["--seeds", "9"], "--seeds 9: give 1 to 5"),
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


def test_recipes_are_the_papers():
    base, large = (dual_config.read_recipe(f"dualner-{name}", {}) for name in ("base", "large"))
    for recipe in (base, large):
        assert (recipe.epochs, recipe.batch_size, recipe.learning_rate) == (8, 128, 2e-5)
        assert (recipe.warmup_steps, recipe.eval_steps, recipe.regularisation) == (300, 250, 0.5)
    assert (base.second_batch_size, large.second_batch_size) == (500, 128)
    assert base.base_model == "xlm-roberta-base"
    with pytest.raises(UserError, match="unknown key"):
        dual_config.read_recipe("dualner-base", {"foo": 1})
    assert os.path.basename(large.base_model) == "infoxlm-large"
