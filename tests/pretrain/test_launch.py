"""The launcher as a user starts it, on the demo corpus, with the tiny model."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.corpora import example, simple_corpus, write_part
from tests.helpers.runs import PRETRAIN, ROOT, call, run, run_apart, start

QUICK = ("--recipe", "paper-debug", "--logging-steps", 1)
TORCHRUN = (
    "-m",
    "torch.distributed.run",
    "--nproc-per-node",
    "2",
    "--no-python",
    sys.executable,
    *PRETRAIN,
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return {"HF_HOME": str(tmp_path_factory.mktemp("huggingface")), "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def launch(demo, cache):
    """Starts the launcher on the demo corpus, from the project's folder, into a folder."""

    def started(output, *flags, program=PRETRAIN, corpus=demo[0] / "corpus"):
        return start(
            "--corpus",
            corpus,
            "--output",
            output,
            *QUICK,
            *flags,
            cwd=ROOT,
            environment=cache,
            program=program,
            start_new_session=True,
        )

    return started


def finished(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


def losses(output):
    last = max(output.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    history = json.loads((last / "trainer_state.json").read_text())["log_history"]
    return {line["step"]: line["loss"] for line in history if "loss" in line}


@pytest.fixture(scope="module")
def here(demo, cache):
    """The same in this process, which has loaded torch; returns exit code, output and log."""

    def run_here(output, *flags, corpus=demo[0] / "corpus"):
        where = ("--corpus", corpus, "--output", output)
        return run(*where, *QUICK, *flags, cwd=ROOT, name="pretrain", environment=cache)

    return run_here


@pytest.fixture(scope="module")
def trained(here, tmp_path_factory):
    output = tmp_path_factory.mktemp("trained") / "demo-bert"
    flags = ("--max-steps", 60, "--eval-steps", 20, "--save-steps", 20)
    code, out, err = here(output, *flags)
    assert code == 0, err
    return output, out, err, flags


def test_loss_falls_and_the_log_is_json(trained):
    output, out, err, _ = trained
    found = losses(output)
    assert sorted(found) == list(range(1, 61))
    assert sum(found[i] for i in range(51, 61)) < 0.6 * sum(found[i] for i in range(1, 11))
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert {"step", "loss", "learning_rate", "subwords_per_s", "padding"} <= set(lines[5])
    record = json.loads((output / "pretrain.json").read_text())
    assert 0 < record["results"]["padding"] < 0.1
    assert record["settings"]["base_model"] == "tiny"
    scores = record["results"]["validation"]
    best = max(line["eval_f1"] for line in lines if "eval_f1" in line)
    assert scores["f1"] == pytest.approx(best, abs=1e-5)
    assert f"F1 {scores['f1']:.4f} (seqeval strict, IOB2)" in out
    card = (output / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlanguage: en\n")
    assert f"value: {scores['f1']:.4f}" in card
    assert "$" not in card


def test_checkpoint_is_an_ordinary_one(trained, demo):
    """Loads in a fresh process, without our code, and tags a sentence."""
    code = (
        "import json, sys\n"
        "from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline\n"
        "model = AutoModelForTokenClassification.from_pretrained(sys.argv[1])\n"
        "tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])\n"
        "tagger = pipeline('token-classification', model=model, tokenizer=tokenizer,\n"
        "                  ignore_labels=[])\n"
        "found = tagger('Albert Einstein studied in Zürich.')\n"
        "print(json.dumps([model.config.id2label, [word['entity'] for word in found],\n"
        "                  [name for name in sys.modules if name.split('.')[0] == 'pretrain']]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(trained[0])],
        capture_output=True,
        text=True,
        check=True,
        cwd=trained[0].parent,
    )
    names, entities, ours = json.loads(result.stdout)
    tags = json.loads((demo[0] / "corpus" / "labels.json").read_text())["tags"]
    assert list(names.values()) == tags
    assert len(entities) >= 6
    assert set(entities) <= set(tags)
    assert ours == []
    assert (trained[0] / "model.safetensors").is_file()


@pytest.mark.slow
def test_a_killed_run_goes_on_exactly(trained, launch, tmp_path):
    straight, _, _, flags = trained
    output = tmp_path / "killed"
    process = launch(output, *flags)
    deadline = time.monotonic() + 120
    while not (output / "checkpoint-20" / "trainer_state.json").is_file():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    # As if it had been killed while it wrote the next checkpoint.
    half = output / "checkpoint-59"
    half.mkdir()
    (half / "trainer_state.json").write_text('{"epoch": 1')
    _, err = finished(launch(output, *flags))
    assert f"continuing from {output / 'checkpoint-'}" in err
    assert losses(output) == losses(straight)
    weights = [path / "model.safetensors" for path in (output, straight)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.slow
def test_two_devices_take_the_same_steps(trained, launch, tmp_path):
    flags = ("--max-steps", 6, "--eval-steps", 3, "--save-steps", 3, "--use-cpu")
    finished(launch(tmp_path / "two", *flags, program=TORCHRUN))
    finished(launch(tmp_path / "one", *flags, "--per-device-train-batch-size", 8))
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    # Equal but for dropout: the first loss is of the same weights and pieces.
    assert one[1] == pytest.approx(two[1], rel=0.02)
    assert one[6] == pytest.approx(two[6], rel=0.1)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--learning-rate", "1e-9"], "made with learning_rate 0.001, not 1e-09"),
        (["--categories", "coarse4"], "made with categories 'corpus', not 'coarse4'"),
        (["--lerning-rate", "1"], "--lerning-rate: unknown flag; did you mean --learning-rate?"),
        (["--categoris", "1"], "--categoris: unknown flag; did you mean --categories?"),
        (["--learning-rate", "fast"], "invalid float value: 'fast'"),
        (["--max-subwords", "0"], "--max-subwords 0: give 8 or more"),
        (["--categories", "none"], "unknown category set 'none'"),
        (["--output_dir", "x"], "--output_dir: give --output instead"),
    ],
)
def test_bad_settings_are_one_line(trained, demo, capsys, flags, message):
    output, _, _, given = trained
    arguments = ["--corpus", demo[0] / "corpus", "--output", output, *QUICK, *given, *flags]
    assert call("pretrain", *arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1


def test_other_corpora_and_checkpoints_are_refused(trained, here, capsys, tmp_path):
    output, _, _, flags = trained
    corpus = simple_corpus(tmp_path / "corpus")
    write_part(
        corpus / "train" / "part-00002.parquet",
        [example(70, "a b"), {**example(71, "a b"), "ner_tags": [0, 2]}, example(72, "a b")],
    )
    cases = [
        (output, corpus, [], "made with other corpus; give another --output"),
        (
            tmp_path / "new",
            corpus,
            ["--resume-from-checkpoint", output / "checkpoint-60"],
            "its tags are not those of the corpus",
        ),
        (tmp_path / "new", corpus, [], "train: example 1:71:0: label id 2 of token 1"),
        (tmp_path / "new", corpus, ["--base-model", tmp_path / "none"], "none: no such folder"),
        (ROOT, corpus, [], "holds something else; give an empty --output"),
        (tmp_path / "new", tmp_path, [], "no corpus (labels.json is missing)"),
    ]
    for folder, source, more, message in cases:
        arguments = [
            "--corpus",
            source,
            "--output",
            folder,
            "--cache-dir",
            tmp_path / "cache",
            *QUICK,
            *flags,
            *more,
        ]
        assert call("pretrain", *arguments) == 2
        err = capsys.readouterr().err
        assert message in err
        assert len(err.splitlines()) == 1
    # What failed before its first step leaves nothing in the way.
    write_part(corpus / "train" / "part-00002.parquet", [example(70, "a b")])
    few = ("--max-steps", 1, "--eval-steps", 1, "--save-steps", 1)
    code, _, err = here(tmp_path / "new", *few, corpus=corpus)
    assert code == 0, err


@pytest.mark.slow
def test_ctrl_c_is_one_line(launch, tmp_path):
    process = launch(tmp_path / "stopped", "--max-steps", 50_000)
    for line in process.stderr:
        if '"loss"' in line:
            break
    err = ""
    for _ in range(4):  # Python drops an interrupt that comes while it clears an object away
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            _, err = process.communicate(timeout=20)
            break
    assert process.returncode == 130
    # A loader's worker may have something to say after it.
    assert (
        f"Stopped. Run the same command again to continue {tmp_path / 'stopped'}."
        in err.splitlines()
    )


def test_a_loss_that_is_no_number_names_step_and_examples(here, tmp_path):
    code, _, err = here(tmp_path / "nan", "--max-steps", 5, "--learning-rate", "1e38")
    assert code == 1
    last = err.splitlines()[-1]
    assert last.startswith("loss is nan in step 2; lower --learning-rate or look at the examples")
    assert last.count(":0") >= 16


@pytest.mark.gpu
def test_on_a_gpu_the_log_has_utilisation(launch, tmp_path):
    _, err = finished(launch(tmp_path / "gpu", "--max-steps", 20))
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert 0 < lines[-4]["mfu"] < 1


def test_help_is_quick_and_complete():
    code, out, _ = run_apart("--help", cwd=ROOT, program=PRETRAIN)
    assert code == 0
    assert "torchrun --nproc-per-node 8" in out
    loaded = "import sys, pretrain.launch; print('torch' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout == "False\n"


@pytest.mark.slow
def test_transformers_example_trains_on_the_corpus_folder(demo, tmp_path, cache):
    """Column names and label names as run_ner.py expects them; none of our code."""
    code = Path(__file__).with_name("plain_trainer.py")
    result = subprocess.run(
        [sys.executable, str(code), str(demo[0] / "corpus"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, **cache},
    )
    assert result.returncode == 0, result.stderr
    first, last, tags, ours = json.loads(result.stdout.splitlines()[-1])
    assert last < 0.7 * first
    assert tags == json.loads((demo[0] / "corpus" / "labels.json").read_text())["tags"]
    assert ours == []


@pytest.mark.unit
def test_what_is_no_corpus_is_said_before_torch_is_loaded(tmp_path):
    code = (
        "import sys; from nerbert.commands.table import run_command\n"
        f"code = run_command('pretrain', ['--corpus', {str(tmp_path)!r}, '--output', 'out'])\n"
        "assert code == 2 and 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "no corpus (labels.json is missing)" in done.stderr
