"""The grid of CrossNER's experiments, on made-up data."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from finetune.experiments.runs import Run
from finetune.papers.crossner import grid as grid_module
from finetune.papers.crossner.cells import Cell, Encoder
from finetune.papers.crossner.report import (
    GridReport,
    person_share,
    published,
    published_f1,
    published_type,
)
from finetune.papers.crossner.settings import SYSTEMS, row_of
from nerbert.commands.values import Given
from nerbert.errors import UserError
from tests.helpers.domain import write_sentences
from tests.helpers.lazy import lazy
from tests.helpers.runs import call, parsed
from tests.helpers.toy import FLAGS, QUICK, rows, write_set

execution = lazy("finetune.experiments.execution")
torch = lazy("torch")

SMALL = """cache_dir = {cache}
batch_size = 8
max_subwords = 32
[training]
max_steps = 2
per_device_train_batch_size = 8
per_device_eval_batch_size = 8
eval_steps = 1
save_steps = 1
logging_steps = 50
"""
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Data root with a music set, a source, a domain corpus, and a small recipe."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "data" / "crossner").mkdir(parents=True)
    music = write_set(folder / "data" / "crossner" / "music", person="musicalartist")
    (music / "valid.txt").rename(music / "dev.txt")
    write_set(folder / "source")
    corpus = write_sentences(folder / "music-corpus")
    (corpus / "report.json").write_text(json.dumps({"domain": {"name": "music"}}))
    (folder / "small.toml").write_text(SMALL.format(cache=json.dumps(str(folder / "cache"))))
    return folder


@pytest.fixture
def grid(world, base, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NERBERT_DATA", str(world / "data"))

    def called(*flags):
        command = [
            "--base-model",
            base,
            "--domain",
            "music",
            "--source",
            world / "source",
            "--seeds",
            1,
            *FLAGS,
            "--output",
            tmp_path / "out",
            *flags,
        ]
        code = call("crossner", *command)
        return code, *capsys.readouterr()

    return called


@pytest.mark.slow
def test_the_grid_goes_on_after_a_kill(world, grid, tmp_path, monkeypatch):
    flags = (
        "--corpus",
        world / "music-corpus",
        "--new-head",
        "--dapt-recipe",
        world / "small.toml",
        "--masking",
        "token",
        "span",
        "--level",
        "entity",
        "--fraction",
        0.5,
        1,
        "--epochs",
        2,
    )
    made = []

    def killed(run, sets):
        if len(made) == 2:
            raise KeyboardInterrupt
        return counted(run, sets)

    def counted(run, sets):
        made.append(run)
        return execute(run, sets)

    execute = grid_module.execute_run
    monkeypatch.setattr(grid_module, "execute_run", killed)
    code, _, err = grid(*flags)
    assert code == 130
    assert f"Run the same command again to continue {tmp_path / 'out'}." in err
    monkeypatch.setattr(grid_module, "execute_run", counted)
    code, out, err = grid(*flags)
    assert code == 0, err
    assert len(made) == 3 * 5  # regimes, and no, token and span pre-training in two sizes
    assert len(set(made)) == 15
    assert "perplexity" not in out  # the checkpoints were there
    lines = out.splitlines()
    assert "| target | music |" in lines
    (none,) = (line for line in lines if line.startswith("| none |") and "(66.59)" in line)
    assert none.endswith("(66.59) |")
    assert sum(line.startswith("| span entity 0.5 |") for line in lines) == 3
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert len(report["cells"]) == 15
    assert {cell["domain"] for cell in report["cells"]} == {"music"}
    text = (tmp_path / "out" / "report.md").read_text()
    assert "music has 465 test sentences, not 456" in text
    assert "Persons predicted as special persons" in text
    assert (tmp_path / "out" / "figure-2-corpus-size-music.png").read_bytes()[:4] == PNG
    assert not (tmp_path / "out" / "figure-3-shots-music.png").exists()


def test_ready_checkpoints_and_few_shots(world, grid, base, tmp_path):
    folder = tmp_path / "adapted"
    folder.mkdir()
    record = {
        "domain": "music",
        "settings": {"masking": "span", "level": "integrated", "fraction": 1.0},
    }
    (folder / "pretrain.json").write_text(json.dumps(record))
    code, _, err = grid("--dapt", folder)
    assert (code, err.splitlines()[-1]) == (
        2,
        f"--dapt {folder}: not finished; run the command that makes it again",
    )
    record["results"] = {}
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((Path(base) / name).read_bytes())
    (folder / "pretrain.json").write_text(json.dumps(record))
    code, out, err = grid("--dapt", folder, "--regime", "target", "--shots", 4, 16)
    assert code == 0, err
    assert any(
        line.startswith("| span integrated |") and "(73.39)" in line for line in out.splitlines()
    )
    assert (tmp_path / "out" / "figure-3-shots-music.png").read_bytes()[:4] == PNG
    report = (tmp_path / "out" / "report.md").read_text()
    assert "in brackets. Ours are with 16 train sentences." in report
    assert "| regime | pre-training | 4 | 16 |" in report


def test_bad_input_is_one_line(grid, base, tmp_path, monkeypatch):
    cases = [
        (["--dapt", base], "not a checkpoint of nerbert dapt"),
        (["--corpus", tmp_path], "no sentences/part-*.parquet"),
        (["--shots", "x"], "--shots x: give numbers"),
        (["--domain", "ai"], "crossner/ai"),
        (["--source", tmp_path / "none"], "none"),
    ]
    for flags, message in cases:
        code, _, err = grid(*flags)
        assert code == 2
        assert message in err.splitlines()[-1]


def test_published_numbers():
    assert published_f1("target", "none", "music") == 66.59
    assert published_f1("joint", "span integrated", "ai") == 63.07
    assert published_f1("target", "span domain", "ai") is None
    assert published_type("source-target", "none", "music", "song") == 42.04
    assert published_type("target", "none", "ai", "song") is None
    averages = {"target": 66.55, "source-target": 69.63, "joint": 68.72}
    for regime, average in averages.items():
        scores = published()["crossner"][regime]["span integrated"]
        assert sum(scores) / 5 == pytest.approx(average, abs=0.006)


def test_person_share():
    confusion = {"person": {"person": 1, "musicalartist": 2, "O": 1}, "song": {"song": 3}}
    assert person_share(confusion, "music") == 0.5
    assert person_share({}, "music") is None


def fit_settings(*flags):
    _, settings = parsed("crossner", "--base-model", "m", "--domain", "ai", *flags)
    return settings


def test_recipes():
    code = fit_settings("--recipe", "crossner-code")
    assert (code.source_epochs, code.source_times, code.patience, code.epochs) == (2, 50, 8, 300)
    assert (code.carry_optimizer, code.attend_padding, code.first_shots) == (True, True, True)
    assert (code.max_grad_norm, code.head_dropout, code.scoring) == (0, 0, "crossner")
    paper = fit_settings("--recipe", "crossner-paper")
    assert paper.source_times == 0
    for few in (code, paper):  # ten sentences are one step an epoch
        assert (few.least_steps, few.eval_steps, few.stop_after) == (500, 7, 200)


def test_settings_of_systems_are_those_of_their_recipes_and_flags():
    given = {"epochs": Given(3, "--epochs"), "spelling": Given("lstm", "--spelling")}
    found = {name: system.settings(given) for name, system in SYSTEMS.items()}
    assert {settings.epochs for settings in found.values()} == {3}
    assert [settings.head for settings in found.values()] == [
        *("crf", "crf", "coach", "coach", "cdlm", "multicell", "multicell", "multicell")
    ]
    assert found["bilstm-crf-word"].spelling == "none"
    assert found["bilstm-crf"].source_times == 10
    rows = [system.row.removesuffix(", frozen encoder") for system in SYSTEMS.values()]
    assert set(rows) <= set(published()["crossner"]["joint"])


def test_a_system_as_base_model():
    words = fit_settings("--recipe", "bilstm-crf")
    assert row_of("bilstm", words) == "BiLSTM-CRF (word + char)"
    assert row_of("bilstm", replace(words, spelling="none")) == "BiLSTM-CRF (word)"
    assert row_of("words", fit_settings("--recipe", "cdlm")) == "CDLM"
    for base in ("words", "bert-base-cased"):
        assert row_of(base, fit_settings("--recipe", "multicell")) == "multi-cell LSTM"
    assert row_of("bert-base-cased", fit_settings()) == ""


@pytest.mark.slow
def test_all_rows_of_table_2(world, grid, tmp_path):
    flags = ("--regime", "joint", "--epochs", 1, "--word-size", 8, "--word-hidden", 8)
    code, out, err = grid("--systems", "bilstm-crf", "coach-word", "cdlm", "multicell", *flags)
    assert code == 0, err
    rows = [line.split("|")[1].strip() for line in out.splitlines() if line.startswith("| ")]
    assert rows == ["joint", *published()["crossner"]["joint"]]
    ours = {line.split("|")[1].strip() for line in out.splitlines() if line.startswith("| ")}
    ours -= {line.split("|")[1].strip() for line in out.splitlines() if "| - (" in line}
    assert {"none", "BiLSTM-CRF (word + char)", "Coach (word)", "CDLM", "multi-cell LSTM"} <= ours
    assert "Coach (word + char)" not in ours
    assert "Rows with - were not run" in out
    cells = json.loads((tmp_path / "out" / "report.json").read_text())["cells"]
    heads = {cell["pre-training"]: cell["settings"]["head"] for cell in cells}
    assert heads["CDLM"] == "cdlm"
    assert heads["none"] == "linear"


def test_text_for_cdlm_alone(world, grid, tmp_path):
    """It adapts no encoder; a row without text says so."""
    flags = ("--systems", "cdlm", "--regime", "target", "--epochs", 1, "--seeds", 1)
    flags += ("--word-size", 8, "--word-hidden", 8)
    code, out, err = grid(*flags)
    assert code == 0, err
    assert "CDLM read no domain text for music: --text gives it." in out
    code, out, err = grid(*flags, "--text", world / "music-corpus")
    assert code == 0, err
    assert "CDLM read no domain text" not in out
    assert not (tmp_path / "out" / "dapt").exists()
    cells = json.loads((tmp_path / "out" / "report.json").read_text())["cells"]
    texts = {cell["settings"]["head"]: cell["settings"]["lm_text"] for cell in cells}
    assert texts == {"linear": [], "cdlm": [str(world / "music-corpus")]}
    code, _, err = grid(*flags, "--text", tmp_path)
    assert (code, "is no corpus of music" in err) == (2, True)


@pytest.mark.slow
def test_the_frozen_encoder_is_the_base_model(world, grid, tmp_path):
    """Its row follows that of the published multi-cell LSTM."""
    flags = ("--systems", "multicell-code", "--regime", "target", "joint", "--epochs", 1)
    flags += ("--seeds", 1, "--word-size", 8, "--word-hidden", 8)
    code, out, err = grid(*flags)
    assert code == 0, err
    cells = json.loads((tmp_path / "out" / "report.json").read_text())["cells"]
    own = [cell["settings"] for cell in cells if cell["settings"]["word_encoder"]]
    assert [one["word_encoder"] for one in own] == [cells[0]["model"]] * 2
    assert {one["head"] for one in own} == {"multicell"}
    rows = [line.split("|")[1].strip() for line in out.splitlines() if line.startswith("| multi")]
    assert rows == [
        "multi-cell LSTM, frozen encoder", "multi-cell LSTM", "multi-cell LSTM, frozen encoder",
        "multi-cell LSTM, span integrated",
    ]  # fmt: skip


def test_two_checkpoints_of_one_kind_are_two_rows():
    cells = [
        Cell(encoder, "music", Run(encoder.model, "crossner/music", QUICK))
        for encoder in (
            Encoder("base"),
            Encoder("out/one", "music", "span", "integrated"),
            Encoder("out/two", "music", "span", "integrated"),
            Encoder("out/one", "music", "span", "integrated", system="multi-cell LSTM"),
        )
    ]
    results = [
        {
            "settings": {"scoring": "strict"},
            "strict": {"f1": f1},
            "train_sentences": 9,
            "confusion": {},
            "per_type": {},
        }
        for f1 in (0.5, 0.6, 0.8, 0.4)
    ]
    table = GridReport(cells, results, {}).table_2()
    assert "| span integrated (one) | 60.00 |" in table
    assert "| span integrated (two) | 80.00 |" in table
    assert "| multi-cell LSTM, span integrated | 40.00 |" in table
    assert "| span integrated | - (73.39) |" in table


def test_head_and_optimiser_are_carried_from_source_to_target(base, monkeypatch):
    """The second training begins with the first one's weights and moments."""
    from finetune.tagger import fitting as module

    calls = []
    trained = module.trained

    def watched(head, labels, given, splits, optimizer=None, work=None, kinds=()):
        start = head.model.classifier.weight.detach().clone()
        steps = optimizer and {float(state["step"]) for state in optimizer.state.values()}
        done = trained(head, labels, given, splits, optimizer)
        calls.append(
            (
                given.epochs,
                start,
                done.model.classifier.weight.detach().clone(),
                steps,
                labels.categories,
                len(splits),
            )
        )
        return done

    monkeypatch.setattr(module, "trained", watched)
    chosen = replace(QUICK, carry_optimizer=True, source_epochs=2)
    target = rows(24, person="musicalartist")
    tagger = execution.fit_in_regime(
        base, "source-target", target, rows(12, 24, person="musicalartist"), rows(40), chosen
    )
    assert tagger.score(rows(12, 48, person="musicalartist")) > 0.9
    first, second = calls
    assert (first[0], second[0]) == (2, QUICK.epochs)
    assert torch.equal(first[2], second[1])
    assert first[3] is None
    assert second[3] == {2 * 5.0}  # 40 sentences in batches of 8, twice
    assert first[4] == second[4] == ("city", "musicalartist", "person")
    assert (first[5], second[5]) == (1, 2)


def test_encoders_know_their_domain(world, grid, base, tmp_path):
    folder = tmp_path / "adapted"
    folder.mkdir()
    (folder / "pretrain.json").write_text(
        json.dumps(
            {
                "domain": "ai",
                "results": {},
                "settings": {"masking": "span", "level": "task", "fraction": 0.25},
            }
        )
    )
    assert Encoder.of(str(folder)).name == "span task 0.25"
    code, _, err = grid("--dapt", folder)
    assert code == 2
    assert "is of the domain ai; add it to --domain" in err
    with pytest.raises(UserError, match="not a checkpoint"):
        Encoder.of(base)
