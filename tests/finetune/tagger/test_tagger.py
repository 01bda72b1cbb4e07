"""Fine-tuning on a made-up set that a tiny model learns."""

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from finetune.data.registry import expand
from finetune.data.sets import DataSets, draw
from finetune.data.views import same_name
from finetune.settings import RECIPES, FitSettings, Regime
from finetune.tagger.entities import Entity
from nerbert.commands.table import main
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from tests.helpers.lazy import lazy
from tests.helpers.runs import ROOT, parsed, run
from tests.helpers.toy import FLAGS, QUICK, rows, write_set

execution = lazy("finetune.experiments.execution")
tagger_module = lazy("finetune.tagger.tagger")
tagging = lazy("pretrain.training.models")
torch = lazy("torch")


def test_fit_predict_score(fitted):
    assert fitted.score(rows(12, 60)) == 1
    (found,) = fitted.predict(["Ada Byron lived  in Ulm"])
    assert [(e.start, e.end, e.type, e.text) for e in found] == [
        (0, 9, "person", "Ada Byron"),
        (20, 23, "city", "Ulm"),
    ]
    assert all(0.3 < e.score <= 1 for e in found)
    assert fitted.predict(["", "Ada Byron lived  in Ulm"]) == [[], found]


def test_long_texts_are_not_cut(fitted):
    text = "Ada Byron lived in Ulm for years " * 60
    (found,) = fitted.predict([text])
    assert len([e for e in found if e.type == "city"]) > 50
    assert all(text[e.start : e.end] == e.text for e in found)
    assert found[-1].start > len(text) - 100


def test_save_and_load(fitted, tmp_path):
    fitted.save(str(tmp_path / "saved"))
    again = tagger_module.Tagger.load(str(tmp_path / "saved"))
    assert again.predict(["Emmy Noether lived in Rom"]) == fitted.predict(
        ["Emmy Noether lived in Rom"]
    )
    assert isinstance(again.predict(["Rom"])[0], list)


def test_same_numbers_twice(base):
    short = FitSettings(learning_rate=1e-3, epochs=2, batch_size=8)
    histories = [
        tagger_module.Tagger(base, short).fit(rows(16), rows(8, 16)).history for _ in range(2)
    ]
    losses = [[line["loss"] for line in history if "loss" in line] for history in histories]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 2


def test_head_rows_are_carried_by_name(fitted, base, tmp_path):
    fitted.save(str(tmp_path / "source"))
    labels = tagging.LabelSet(("city", "thing"))
    theirs = tagging.load_tagger(str(tmp_path / "source"))
    ours = tagging.load_model(str(tmp_path / "source"), labels, 64, same_name)
    fresh = tagging.load_model(str(tmp_path / "source"), labels, 64)
    names = tagging.tag_names(theirs)
    for index, name in enumerate(labels.tags):
        same = name in names
        weight = theirs.classifier.weight[names.index(name)] if same else None
        assert same == (name in ("O", "B-city", "I-city"))
        assert not same or bool((ours.classifier.weight[index] == weight).all())
        assert not same or not bool((fresh.classifier.weight[index] == weight).all())


def test_types_may_start_from_the_mean_of_several(saved):
    labels = tagging.LabelSet(("thing", "x"))
    theirs = tagging.load_tagger(saved)
    ours = tagging.load_model(saved, labels, 64, lambda name, types: types if name == "x" else [])
    rows_of = {
        name: theirs.classifier.weight[index]
        for index, name in enumerate(tagging.tag_names(theirs))
    }
    inside = ours.classifier.weight[labels.tags.index("I-x")]
    assert torch.allclose(inside, (rows_of["I-city"] + rows_of["I-person"]) / 2)
    assert torch.equal(ours.classifier.weight[0], rows_of["O"])
    assert not any(torch.allclose(ours.classifier.weight[1], row) for row in rows_of.values())


def test_a_carried_head_knows_its_types_before_it_learns(saved):
    """One step at a rate that changes nothing."""
    still = FitSettings(learning_rate=1e-12, epochs=1, carry_head=True)
    renamed = [
        Sentence(row.tokens, [tag.replace("person", "PER") for tag in row.tags]) for row in rows(12)
    ]
    assert tagger_module.Tagger(saved, still).fit(renamed).score(renamed) == 1
    fresh = FitSettings(learning_rate=1e-12, epochs=1)
    assert tagger_module.Tagger(saved, fresh).fit(renamed).score(renamed) < 0.5


@pytest.mark.parametrize("regime", get_args(Regime))
def test_every_regime_learns_the_target(base, regime):
    source = [
        Sentence(row.tokens, [tag.replace("city", "place") for tag in row.tags]) for row in rows(40)
    ]
    tagger = execution.fit_in_regime(base, regime, rows(24), rows(12, 24), source, QUICK)
    if regime == "zero-shot":  # it has not seen a city
        assert {tag for tags in tagger.tag([row.tokens for row in rows(4)]) for tag in tags} >= {
            "B-place",
            "B-person",
        }
    else:
        assert tagger.score(rows(12, 48)) > 0.9


def test_a_source_is_learnt_once_for_all_targets(base, monkeypatch):
    """The second target gets the same weights as if it were alone."""
    source = [
        Sentence(row.tokens, [tag.replace("city", "place") for tag in row.tags]) for row in rows(40)
    ]
    fits = []
    fit = tagger_module.Tagger.fit
    monkeypatch.setattr(
        tagger_module.Tagger,
        "fit",
        lambda self, *a, **k: (fits.append(self), fit(self, *a, **k))[1],
    )

    def weights(target):
        tagger = execution.fit_in_regime(base, "source-target", target, [], source, QUICK)
        return {name: value.tolist() for name, value in tagger.model.state_dict().items()}

    execution._SOURCE_TAGGERS._base = ""  # forgets what another test has trained
    weights(rows(24))
    second = weights(rows(24, 48))
    assert len(fits) == 3
    execution._SOURCE_TAGGERS._base = ""
    assert weights(rows(24, 48)) == second
    assert len(fits) == 5


def test_what_is_not_fitted_or_no_tagger(base, tmp_path):
    with pytest.raises(RuntimeError, match="call fit"):
        tagger_module.Tagger(base).predict(["x"])
    with pytest.raises(UserError, match="none"):
        tagger_module.Tagger.load(str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"no such file, folder or set.*crossner/politics"):
        tagger_module.Tagger(base).fit("crossner/politic")


def test_entity_is_plain():
    assert Entity(0, 1, "A", 0.5, "x").text == "x"


def test_joined_repeats_the_target():
    source, target = rows(20), rows(3, 20)
    assert execution.joined(source, target) == [*source, *target * 7]
    assert execution.joined(source, target, 2) == [*source, *target * 2]
    assert len(execution.joined(rows(2), target)) == 5


def test_shots_are_nested():
    few, more = draw(rows(40), 5, 1), draw(rows(40), 9, 1)
    assert len(few) == 5
    assert all(row in more for row in few)
    assert draw(rows(40), 40, 1) == rows(40) == draw(rows(40), 99, 1)
    assert few != draw(rows(40), 5, 2)


def fit_settings(*flags):
    _, settings = parsed("evaluate", "--model", "m", "--data", "d", *flags)
    return settings


@pytest.mark.parametrize("name", RECIPES.names)
def test_recipes(name):
    words = ("bilstm-crf", "lample", "coach", "cdlm", "multicell-code")
    lengths = {"crossner-code": 512, "nerbert": None, **dict.fromkeys(words, 4096)}
    assert fit_settings("--recipe", name).max_subwords == lengths.get(name, 128)
    assert fit_settings("--recipe", name, "--epochs", "3").epochs == 3


def test_bad_recipes_and_settings(tmp_path):
    with pytest.raises(UserError, match="--recipe paper: no such recipe; use bilstm-crf, cdlm"):
        fit_settings("--recipe", "paper")
    with pytest.raises(UserError, match="--epochs 0: give 1 or more"):
        fit_settings("--epochs", "0")
    (tmp_path / "own.toml").write_text("epoch = 1\n")
    with pytest.raises(UserError, match=r"own.toml: unknown key 'epoch'; did you mean epochs\?"):
        fit_settings("--recipe", str(tmp_path / "own.toml"))


def test_evaluate_and_predict_as_commands(base, tmp_path):
    folder = write_set(tmp_path / "toy")
    command = (
        "--model",
        base,
        "--data",
        folder,
        "--seeds",
        2,
        *FLAGS,
        "--output",
        tmp_path / "report",
    )
    code, out, err = run(*command, cwd=ROOT, name="evaluate")
    assert code == 0, err
    assert f"| {Path(base).name} | " in out
    assert "F1 (seqeval strict, IOB2)" in out
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert [row["settings"]["seed"] for row in report["runs"]] == [555, 666]
    assert all(row["strict"]["f1"] > 0.8 for row in report["runs"])
    assert report["runs"][0]["errors"]["right"] == report["runs"][0]["strict"]["right"]
    # One run is lost: only that is done again, with the same numbers.
    kept = sorted((tmp_path / "report" / "runs").glob("*.json"))
    kept[0].unlink()
    code, again, err = run(*command, cwd=ROOT, name="evaluate")
    assert (code, again) == (0, out)
    assert err.count("F1 0.") + err.count("F1 1.") == 1
    code, out, err = run("--model", base, "--data", tmp_path, cwd=ROOT, name="evaluate")
    assert code == 2
    assert err.splitlines() == [f"--data {tmp_path}: it has no file train.*"]


def test_missing_sets_say_what_to_put_where(monkeypatch, tmp_path):
    monkeypatch.setenv("NERBERT_DATA", str(tmp_path))
    sets = DataSets()
    with pytest.raises(
        UserError,
        match=r"wnut17: .*wnut17train.conll is missing; get it with: nerbert fetch sets wnut17 --output",
    ):
        sets.sentences("wnut17", "train")
    with pytest.raises(
        UserError, match=r"wikiann/de: .*wikiann/de/train\.conllu is missing; get it with: nerbert"
    ):
        sets.sentences("wikiann/de", "train")
    with pytest.raises(UserError, match="wikigold: this set has no train split"):
        sets.sentences("wikigold", "train")
    assert sets.sentences("wikigold", "dev", needed=False) == []
    assert len(expand(["crossner/*"])) == 5
    assert expand(["crossner/[am]*", "x"]) == ["crossner/ai", "crossner/music", "x"]
    with pytest.raises(UserError, match="no set has such a name"):
        expand(["cross*/none"])


@pytest.mark.slow
def test_the_package_loads_torch_only_for_a_model():
    code = (
        "import sys, finetune, nerbert.commands.table, finetune.options\n"
        "from finetune import Entity, Tagger\n"
        "assert 'torch' not in sys.modules\n"
        "import finetune.tagger.models\n"
        "trains = {'datasets', 'peft', 'sklearn', 'transformers.trainer'}\n"
        "assert not trains & set(sys.modules)\n"
        "assert not hasattr(finetune, 'Taggers')\n"
        "import pretrain.tagging.run, pretrain.mlm.run, finetune.experiments.execution\n"
        "assert not [name for name in sys.modules if name.startswith('apache_beam')]\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_device_and_half_precision(saved):
    texts = ["Ada Byron lived in Bern", "Emmy Noether lived in Rom for years"]
    whole = tagger_module.Tagger.load(saved, device="cpu").predict(texts)
    half = tagger_module.Tagger.load(saved, device="cpu", half=True)
    assert half._model.dtype == torch.bfloat16
    spans = [[(entity.start, entity.end, entity.type) for entity in found] for found in whole]
    assert [[(e.start, e.end, e.type) for e in found] for found in half.predict(texts)] == spans
    with pytest.raises(UserError, match=r"nowhere: .*give cpu, cuda or auto"):
        tagger_module.Tagger.load(saved, device="nowhere")


def test_context_is_seen_and_only_the_own_words_are_tagged(saved):
    """By hand: the sentences joined by blanks are tagged whole, and the words in between taken."""
    sentences = [row.tokens for row in rows(5, 40)]
    alone = tagger_module.Tagger.load(saved)
    near = tagger_module.Tagger.load(saved, FitSettings(context=1))
    found = near.predictions(sentences, probabilities=True)
    assert [list(one.tags) for one in found] == near.tag(sentences)
    differs = False
    for place, one in enumerate(found):
        parts = sentences[max(place - 1, 0) : place + 2]
        (whole,) = alone.predictions([[w for part in parts for w in part]], probabilities=True)
        first = len(parts[0]) if place else 0
        own = whole.probabilities[first : first + len(sentences[place])]
        np.testing.assert_allclose(one.probabilities, own, atol=1e-5)
        (single,) = alone.predictions([sentences[place]], probabilities=True)
        differs |= not np.allclose(one.probabilities, single.probabilities, atol=1e-4)
    assert differs
    # Texts are no neighbours of each other; the sentences of one are.
    text = " ".join(sentences[0]).rstrip(" .") + ". Then came rain."
    both, by_itself = near.predictions([text, text]), near.predictions([text])
    assert both[0] == both[1] == by_itself[0]
    assert near.predictions([[], ["Ulm"], []])[1].words == ["Ulm"]


def test_predict_with_context(saved, capsys):
    assert main(["predict", "--model", str(saved), "--context", "2", "Ana came. Bob left."]) == 0
    assert capsys.readouterr().out.startswith('{"id": 1, "text": "Ana came. Bob left."')
