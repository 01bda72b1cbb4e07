"""`nerbert train` as its users run it: a folder that other tools read, also after a kill."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from huggingface_hub import ModelCard

from finetune.data import conll
from finetune.options import TrainOptions
from finetune.scoring.calibration import Calibration, Reliability
from finetune.use.card import model_card
from nerbert.commands.table import main
from tests.helpers.hub import served_hub
from tests.helpers.lazy import lazy
from tests.helpers.runs import ROOT
from tests.helpers.toy import FLAGS, rows, write_set

torch = lazy("torch")
transformers = lazy("transformers")
tagger = lazy("finetune.tagger.tagger")

NERBERT = [sys.executable, "-m", "nerbert", "train"]


@pytest.fixture(scope="module")
def toy_set(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets") / "toy"
    write_set(folder)
    conll.write(rows(60, 40), folder / "valid.txt")  # mentions enough to calibrate scores
    return folder


def command(base, data, output, *flags):
    return [
        *NERBERT,
        "--base-model",
        base,
        "--data",
        str(data),
        "--output",
        str(output),
        *map(str, (*FLAGS, *flags)),
    ]


def train(base, data, output, *flags, **environment):
    done = subprocess.run(
        command(base, data, output, *flags),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=output.parent,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def trained(base, toy_set, tmp_path_factory):
    output = tmp_path_factory.mktemp("trained") / "tagger"
    code, out, err = train(base, toy_set, output, "--report-to", "tensorboard")
    assert code == 0, err
    return output, out, err


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("---\nlicense: apache-2.0\n---\nAn encoder.", "apache-2.0"),
        ("An encoder.", None),
        ("---\n: [\n---\n", None),
        ("---\n- a\n---\n", None),
        (None, None),
    ],
)
def test_a_card_has_the_licence_that_the_encoder_states(text, licence, tmp_path):
    if text is not None:
        (tmp_path / "README.md").write_text(text)
    options = TrainOptions(base_model=str(tmp_path), data=("crossner/ai",), output="tagger")
    record = {"data": ["crossner/ai"], "settings": {}}
    results = {"sentences": {"train": 1}, "steps": 1, "versions": {}}
    card = ModelCard(model_card(options, record, results, rows(1, 1)))
    assert (card.data.license, card.data.language) == (licence, ["en"])
    record["data"].append("a folder")
    assert ModelCard(model_card(options, record, results, rows(1, 1))).data.language is None


def test_an_ordinary_checkpoint(trained):
    output, out, _ = trained
    model = transformers.AutoModelForTokenClassification.from_pretrained(output)
    assert set(model.config.id2label.values()) == {"O", "B-city", "I-city", "B-person", "I-person"}
    pipe = transformers.pipeline("token-classification", str(output), aggregation_strategy="first")
    found = {(entity["entity_group"], entity["word"]) for entity in pipe("Ada Byron lived in Bern")}
    assert ("city", "bern") in {(kind, word.lower()) for kind, word in found}
    scores = json.loads((output / "metrics.json").read_text())
    own = tagger.Tagger.load(str(output))
    assert own.score(_rows(output)) == pytest.approx(scores["test"]["strict"]["f1"])
    assert f"F1 {scores['test']['strict']['f1']:.4f}" in out


def test_scores_are_calibrated_on_dev(trained, toy_set):
    """The configuration keeps what the dev set says; loading it scores the same."""
    output, out, _ = trained
    scores = json.loads((output / "metrics.json").read_text())["scores"]
    own = tagger.Tagger.load(str(output), backend="torch")
    assert own.min_score == scores["min_score"]
    assert own.model.config.mention_scores["slope"] == own.calibration.slope != 1
    assert (output / "reliability.png").read_bytes().startswith(b"\x89PNG")
    assert f"calibrated on dev by {scores['calibration_error']:.3f}" in out
    again = tagger.Tagger.load(str(output), backend="torch")
    again.calibrate(str(toy_set))
    assert again.calibration == own.calibration
    own.min_score = 0.0
    given, is_right = own.mention_scores(_rows(output))
    raw = [entity for one in own.predict([row.tokens for row in _rows(output)]) for entity in one]
    assert given == [entity.score for entity in raw]
    assert scores["calibration_error"] == round(Reliability.of(given, is_right).error, 4)
    # A new head has no part in the scores of the old one.
    fitted = tagger.Tagger(str(output), tagger.FitSettings(epochs=1)).fit(_rows(output), [])
    assert not hasattr(fitted.model.config, "mention_scores")
    assert (fitted.min_score, fitted.calibration) == (0, Calibration())


def _rows(output):
    record = json.loads((output / "training.json").read_text())
    (name,) = record["data"]
    from finetune.data.sets import DataSets

    return DataSets().sentences(name, "test")


def test_card_and_events(trained):
    output, _, _ = trained
    card = ModelCard.load(output / "README.md")
    assert card.data.pipeline_tag == "token-classification"
    assert {result.metric_type for result in card.data.eval_results} == {
        "f1",
        "precision",
        "recall",
    }
    assert "| city |" in card.text
    assert {"text": card.text.split('strategy="simple")("')[1].split('")')[0]} in card.data.widget
    assert "    nerbert train --base-model tiny --data " in card.text
    assert "`learning_rate` | 0.002" in card.text
    assert list((output / "events").rglob("events.out.tfevents.*"))
    assert not (output / ".training").exists()


@pytest.mark.parametrize(
    ("name", "reason"),
    [("tensorbord", "transformers knows azure_ml, "), ("neptune", "it is not installed here")],
)
def test_reports_go_to_tools_that_are_there(base, toy_set, tmp_path, capsys, name, reason):
    output = tmp_path / "tagger"
    assert main(command(base, toy_set, output, "--report-to", name)[3:]) == 2
    assert f"--report-to {name}: {reason}" in capsys.readouterr().err
    assert not output.exists()


def test_progress_lines(trained):
    _, _, err = trained
    assert "40 train and 60 dev sentences, 2 types: city, person" in err.splitlines()
    lines = [line for line in err.splitlines() if line.startswith("train: ")]
    assert re.fullmatch(
        r"train: 40 of 40 steps in \d+ s, loss \S+, dev F1 1.0000, best 1.0000", lines[-1]
    )


def test_again_and_with_other_settings(trained, base, toy_set, capsys):
    output, out, _ = trained
    before = (output / "model.safetensors").stat().st_mtime_ns
    assert main(command(base, toy_set, output, "--report-to", "tensorboard")[3:]) == 0
    assert capsys.readouterr().out == out
    assert (output / "model.safetensors").stat().st_mtime_ns == before
    assert main(command(base, toy_set, output, "--seed", 7)[3:]) == 2
    assert "made with seed 555, not 7; choose another --output" in capsys.readouterr().err


def test_a_folder_of_yours_is_left_alone(base, toy_set, tmp_path, capsys):
    output = tmp_path / "mine"
    output.mkdir()
    (output / "thesis.tex").write_text("mine")
    assert main(command(base, toy_set, output)[3:]) == 2
    assert "not empty, and no run made it" in capsys.readouterr().err
    assert [path.name for path in output.glob("[!.]*")] == ["thesis.tex"]


@pytest.mark.parametrize("name", [".training", ".training/mine.txt"])
def test_a_hidden_folder_of_yours_is_left_alone(base, toy_set, tmp_path, capsys, name):
    output = tmp_path / "mine"
    path = output / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert main(command(base, toy_set, output)[3:]) == 2
    assert (
        "/.training: not of a run; move it, or choose another --output" in capsys.readouterr().err
    )
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", None),
        ("config.json", b"{"),
        ("tokenizer.json", None),
        ("README.md", None),
        ("metrics.json", b"[]"),
    ],
)
def test_a_torn_folder_is_not_finished(trained, base, toy_set, tmp_path, capsys, name, content):
    output = tmp_path / "tagger"
    shutil.copytree(trained[0], output)
    (output / name).unlink() if content is None else (output / name).write_bytes(content)
    assert main(command(base, toy_set, output, "--report-to", "tensorboard")[3:]) == 0
    found = capsys.readouterr()
    assert "the result is made again" in found.err
    assert found.out == trained[1].replace(str(trained[0]), str(output))
    assert digest(output) == digest(trained[0])
    assert {path.name for path in output.iterdir()} == {path.name for path in trained[0].iterdir()}


def digest(output):
    return hashlib.sha256((output / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.slow
def test_killed_and_continued_to_the_same_weights(base, toy_set, tmp_path, trained):
    output = tmp_path / "tagger"
    process = subprocess.Popen(
        command(base, toy_set, output, "--report-to", "tensorboard"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    deadline = time.monotonic() + 120
    while not list((output / ".training").glob("checkpoint-*/trainer_state.json")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (output / "metrics.json").exists()
    code, _, err = train(base, toy_set, output, "--report-to", "tensorboard")
    assert code == 0, err
    assert "continues after step" in err
    assert digest(output) == digest(trained[0])
    one, other = (
        json.loads((folder / "metrics.json").read_text()) for folder in (output, trained[0])
    )
    assert one == other


@pytest.mark.slow
def test_push_to_the_hub(base, toy_set, trained, tmp_path):
    output, _, _ = trained
    with served_hub() as hub:
        environment = {"HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
        flags = ("--report-to", "tensorboard", "--push-to-hub", "me/tagger", "--private")
        code, out, err = train(base, toy_set, output, *flags, HF_TOKEN="right", **environment)
        assert code == 0, err
        assert "hub         me/tagger" in out
        assert "private" in str(hub.repositories["me/tagger"])
        assert {
            "README.md",
            "config.json",
            "metrics.json",
            "reliability.png",
            "model.safetensors",
            "tokenizer.json",
        } <= set(hub.files)
        assert not any(name.startswith((".training", "events", ".lock")) for name in hub.files)
        assert hub.files["README.md"] == (output / "README.md").read_bytes()
        assert hub.files["model.safetensors"] == digest(output)
        code, _, err = train(
            base, toy_set, tmp_path / "new", *flags, HF_TOKEN="wrong", **environment
        )
        assert code == 2
        assert len(err.strip().splitlines()) == 1
        assert err.startswith("--push-to-hub me/tagger: the hub refuses (")
        assert not (tmp_path / "new").exists()


def test_errors_in_the_data_are_said_before_torch_is_loaded(tmp_path):
    (tmp_path / "bad.txt").write_text("hello\n")
    code = (
        "import sys\nfrom nerbert.commands.table import run_command\n"
        "flags = ['--base-model', 'tiny', '--data', 'bad.txt', '--output', 'out']\n"
        "print(run_command('train', flags), 'torch' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "2 False\n"
    assert done.stderr.startswith("bad.txt: line 1: 'hello' is no token")
