"""Damaged checkpoints, changed inputs and second runs of a pre-training."""

import json
import shutil

import pytest

from finetune.experiments.runs import model_fingerprint
from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.corpus import load_corpus
from pretrain.training.checkpoints import damage, last_whole
from pretrain.training.features import open_parts
from pretrain.training.models import load_model
from pretrain.training.tokenizer import load_tokenizer
from tests.helpers.corpora import example, simple_corpus, write_part
from tests.helpers.runs import call

FLAGS = ("--recipe", "paper-debug", "--batch-size", 2, "--num-train-epochs", 9)
FLAGS += ("--max-steps", 3, "--save-steps", 1, "--eval-steps", 1, "--save-total-limit", 3)


def corpus_in(folder, word="c"):
    corpus = simple_corpus(folder)
    rows = [example(50 + n, f"a b {word} d") for n in range(9)]
    write_part(corpus / "train" / "part-00002.parquet", rows)
    return corpus


def pretrain(corpus, output, cache, *more):
    arguments = ["--corpus", corpus, "--output", output, "--cache-dir", cache, *FLAGS, *more]
    return call("pretrain", *arguments)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Corpus, output and cache of a run that ended within an epoch."""
    folder = tmp_path_factory.mktemp("made")
    corpus = corpus_in(folder / "corpus")
    assert pretrain(corpus, folder / "bert", folder / "cache") == 0
    return corpus, folder / "bert", folder / "cache"


def test_a_finished_run_is_not_trained_any_more(made, tmp_path, capsys):
    corpus, output, cache = made
    again = shutil.copytree(output, tmp_path / "again")
    assert pretrain(corpus, again, cache) == 0
    out = capsys.readouterr().out
    assert "steps       3 of 2 pieces" in out
    assert sorted(path.name for path in again.glob("checkpoint-*")) == [
        f"checkpoint-{step}" for step in (1, 2, 3)
    ]
    weights = [(path / "model.safetensors").read_bytes() for path in (output, again)]
    assert weights[0] == weights[1]
    # What was measured is that of the training, not of the second look at it.
    before, after = (
        json.loads((path / "pretrain.json").read_text())["results"] for path in (output, again)
    )
    measured = ("train_s", "subwords_per_s", "padding")
    assert {name: after[name] for name in measured} == {name: before[name] for name in measured}
    assert f"sub-words   {before['subwords_per_s']:,} a second" in out
    # What is fine-tuned from it need not be made again.
    assert model_fingerprint(str(again)) == model_fingerprint(str(output))


@pytest.mark.parametrize("change", ["removed", "emptied", "cut"])
@pytest.mark.parametrize(
    "name",
    [
        *("trainer_state.json", "config.json", "model.safetensors"),
        *("optimizer.pt", "scheduler.pt", "rng_state.pth"),
    ],
)
def test_a_damaged_checkpoint_is_left_out(made, tmp_path, caplog, name, change):
    folder = shutil.copytree(made[1], tmp_path / "bert")
    path = folder / "checkpoint-3" / name
    data = path.read_bytes()
    if change == "removed":
        path.unlink()
    else:
        path.write_bytes(b"" if change == "emptied" else data[: len(data) // 2])
    assert last_whole(folder) == folder / "checkpoint-2"
    assert "checkpoint-3: left out" in caplog.text
    assert name in caplog.text


def test_whole_checkpoints_of_other_kinds(made, tmp_path):
    folder = shutil.copytree(made[1] / "checkpoint-3", tmp_path / "checkpoint-3")
    assert damage(folder) is None
    (folder / "rng_state.pth").rename(folder / "rng_state_0.pth")
    assert damage(folder) is None
    (folder / "optimizer.pt").unlink()
    (folder / "global_step3").mkdir()
    assert damage(folder) is None
    assert last_whole(tmp_path / "none") is None


def test_sharded_weights(made, tmp_path):
    folder = shutil.copytree(made[1] / "checkpoint-3", tmp_path / "checkpoint-3")
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    assert damage(folder) is None
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2"}}))
    assert damage(folder) == "model-2 is missing"
    index.write_text("{")
    assert damage(folder) == "model.safetensors.index.json is torn"


def one_line(capsys):
    err = capsys.readouterr().err
    assert "Traceback" not in err
    return err.splitlines()[-1]


def test_a_changed_setting_or_corpus_is_refused(made, tmp_path, capsys):
    corpus, output, cache = made
    assert pretrain(corpus, output, cache, "--max-grad-norm", 0.5) == 2
    assert "made with max_grad_norm 1.0, not 0.5" in one_line(capsys)
    other = corpus_in(tmp_path / "corpus", "x")
    name = "train/part-00002.parquet"
    assert (other / name).stat().st_size == (corpus / name).stat().st_size
    assert pretrain(other, output, cache) == 2
    assert "made with other corpus" in one_line(capsys)


@pytest.mark.parametrize("content", ["", "[1]", '{"name": "app"}'])
def test_a_torn_or_foreign_record_is_one_line(made, tmp_path, capsys, content):
    corpus, output, cache = made
    copy = shutil.copytree(output, tmp_path / "bert")
    (copy / "pretrain.json").write_text(content)
    assert pretrain(corpus, copy, cache) == 2
    assert "pretrain.json: torn, or not of a run" in one_line(capsys)


def test_a_second_run_is_refused(made, capsys):
    corpus, output, cache = made
    with Place(output).locked():
        assert pretrain(corpus, output, cache) == 2
    assert "another run is writing here" in one_line(capsys)


def test_odd_folders(tmp_path, capsys):
    corpus = corpus_in(tmp_path / "a[1]*?{b}" / "corpus")
    found = sorted((corpus / "train").glob("*.parquet"))
    assert len(open_parts(found, str(tmp_path / "cache"))) > 9
    corpus = corpus_in(tmp_path / "a::b" / "corpus")
    assert pretrain(corpus, tmp_path / "bert", tmp_path / "cache") == 2
    assert "`datasets` reads no path with '::'" in one_line(capsys)


def test_a_damaged_part_is_one_line(tmp_path):
    corpus = corpus_in(tmp_path / "corpus")
    part = corpus / "train" / "part-00002.parquet"
    data = bytearray(part.read_bytes())
    data[4 : len(data) // 3] = bytes(len(data) // 3 - 4)
    part.write_bytes(data)
    with pytest.raises(UserError, match="a part cannot be read"):
        open_parts([part], str(tmp_path / "cache"))


def model_files(folder, **config):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def test_a_model_with_code_of_its_own_is_refused(tmp_path):
    own = {"AutoConfig": "mine.Config", "AutoModelForTokenClassification": "mine.Model"}
    model = model_files(tmp_path / "m", model_type="mine", auto_map=own)
    with pytest.raises(UserError, match="needs code of its own, which we do not run"):
        load_tokenizer(model)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x00" * 64])
def test_a_damaged_model_is_one_line(made, tmp_path, name, content):
    folder = shutil.copytree(made[1], tmp_path / "bert")
    (folder / name).write_bytes(content)
    labels = load_corpus(made[0]).labels

    def load():
        load_tokenizer(str(folder))
        load_model(str(folder), labels, 16)

    with pytest.raises(UserError) as error:
        load()
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize("free", [0, 300_000, 1_000_000])
def test_a_full_disk_is_one_line(small_disk, tmp_path, capsys, free):
    corpus = corpus_in(tmp_path / "corpus")
    size = shutil.disk_usage(small_disk).free - free
    (small_disk / "filling").write_bytes(bytes(max(0, size)))
    assert pretrain(corpus, small_disk / "bert", tmp_path / "cache") == 1
    assert "No space left on device; check space and permissions" in one_line(capsys)
