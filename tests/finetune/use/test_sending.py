"""`nerbert push` against a stand-in of the hub: corpus, checkpoint, and what goes wrong."""

import json
import os
import shutil

import pytest

from tests.helpers.hub import served_hub
from tests.helpers.runs import call, run_apart
from tests.helpers.toy import FLAGS, write_set


@pytest.fixture
def hub():
    with served_hub() as served:
        yield served


def push(hub, *arguments, cwd, token="right"):
    environment = {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_OFFLINE": "0",
        "HF_TOKEN": token,
    }
    return run_apart(
        "push", *arguments, cwd=cwd, program=["-m", "nerbert"], environment=environment
    )


@pytest.mark.parametrize("folder", ["", "corpus"])
def test_a_corpus_is_a_data_set(hub, demo, tmp_path, folder):
    code, out, err = push(hub, demo[0] / folder, "me/corpus", "--private", cwd=tmp_path)
    assert code == 0, err
    assert out.endswith("is on the hub: datasets/me/corpus\n")
    assert hub.repositories["me/corpus"]["type"] == "dataset"
    assert "private" in str(hub.repositories["me/corpus"])
    corpus = demo[0] / "corpus"
    paths = [path.relative_to(corpus).as_posix() for path in corpus.rglob("*") if path.is_file()]
    assert sorted(hub.files) == sorted(path for path in paths if path != ".lock")
    assert hub.files["README.md"] == (corpus / "README.md").read_bytes()


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("send")
    data = write_set(folder / "data")
    (folder / "tagger").mkdir()
    (folder / "tagger" / ".env").write_text("HF_TOKEN=secret")
    flags = ("--base-model", base, "--data", data, "--output", folder / "tagger", *FLAGS)
    assert call("train", *flags) == 0
    return folder / "tagger"


@pytest.fixture
def tagger(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "tagger", ignore=shutil.ignore_patterns(".env"))
    return tmp_path / "tagger"


def test_a_checkpoint_is_a_model_and_no_space_is_said(hub, tagger, tmp_path):
    hub.failures = 1
    code, _, err = push(hub, "tagger", "me/tagger", cwd=tmp_path)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert "the hub refuses (" in err
    assert "model.safetensors" not in hub.files
    code, out, err = push(hub, "tagger", "me/tagger", cwd=tmp_path)
    assert code == 0, err
    assert out == "tagger is on the hub: me/tagger\n"
    assert {"README.md", "config.json", "model.safetensors", "metrics.json"} <= set(hub.files)
    assert not {".lock", ".env", "training.json", "events"} & set(hub.files)


def test_no_path_of_this_machine_is_sent(hub, tagger, base, tmp_path):
    code, _, err = push(hub, "tagger", "me/tagger", cwd=tmp_path)
    assert code == 0, err
    small = [content for content in hub.files.values() if isinstance(content, bytes)]
    assert any(b"| `learning_rate` |" in content for content in small)
    assert not any(os.path.dirname(base).encode() in content for content in small)
    assert not any(b"/tmp" in content for content in small)


def links_to_a_secret(folder):
    (folder.parent / "secret").write_text("key")
    (folder / "metrics.png").symlink_to(folder.parent / "secret")


def a_listed_file_is_a_link(folder):
    (folder / "config.json").rename(folder.parent / "config.json")
    (folder / "config.json").symlink_to(folder.parent / "config.json")


SPOILED = {
    "weights are gone": (
        lambda f: (f / "model.safetensors").unlink(),
        "model.safetensors: missing",
    ),
    "weights are torn": (
        lambda f: (f / "model.safetensors").write_bytes(b"x"),
        "model.safetensors: missing, or not of the size",
    ),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "tokenizer.json: missing"),
    "torn config": (lambda f: (f / "config.json").write_text("{"), "config.json: missing, or not"),
    "not ended": (lambda f: (f / "metrics.json").unlink(), "metrics.json: no finished run"),
    "no record": (
        lambda f: [(f / name).unlink() for name in ("metrics.json", "training.json")],
        "pretrain.json: no finished run",
    ),
    "a secret": (lambda f: (f / ".env").write_text("KEY=1"), ".env: no run made it"),
    "a key": (lambda f: (f / "id_rsa").write_text("KEY"), "id_rsa: no run made it"),
    "a folder": (lambda f: shutil.copytree(f, f / "notes"), "notes/"),
    "a link": (links_to_a_secret, "metrics.png: no run made it"),
    "a link in place of a file": (a_listed_file_is_a_link, "config.json: "),
    "no card": (lambda f: (f / "README.md").unlink(), "README.md: missing"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_what_lies_in_the_folder_of_a_tagger(hub, tagger, tmp_path, name):
    spoil, message = SPOILED[name]
    spoil(tagger)
    code, _, err = push(hub, "tagger", "me/tagger", cwd=tmp_path)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
    assert not hub.repositories


def test_what_a_pre_training_keeps_to_continue_is_not_sent(hub, demo, tmp_path):
    flags = ("--corpus", demo[0] / "corpus", "--recipe", "paper-debug", "--max-steps", 4)
    flags += ("--eval-steps", 2, "--save-steps", 2, "--output", tmp_path / "bert")
    assert call("pretrain", *flags) == 0
    assert (tmp_path / "bert" / "checkpoint-4" / "optimizer.pt").is_file()
    (tmp_path / "bert" / "README.md").write_text("# Mine\n")  # a card may be edited
    code, _, err = push(hub, "bert", "me/bert", cwd=tmp_path)
    assert code == 0, err
    expected = {"README.md", "config.json", "model.safetensors", "pretrain.json", "sentences.json"}
    assert {*hub.files} == {*expected, "tokenizer.json", "tokenizer_config.json"}
    record = json.loads((tmp_path / "bert" / "pretrain.json").read_text())
    del record["sizes"], record["results"], record["digest"]  # as it is while the training runs
    (tmp_path / "bert" / "pretrain.json").write_text(json.dumps(record))
    code, _, err = push(hub, "bert", "me/bert", cwd=tmp_path)
    assert (code, err.count("pretrain.json: no finished run")) == (2, 1)


@pytest.mark.parametrize("name", ["not ended", "torn part", "no train", "a file of the user's"])
def test_corpora_that_are_not_whole(hub, demo, tmp_path, name):
    shutil.copytree(demo[0] / "corpus", tmp_path / "corpus")
    part = tmp_path / "corpus" / "train" / "part-00000.parquet"
    state = tmp_path / "corpus" / "stage.json"
    if name == "not ended":
        state.write_text(state.read_text().replace('"complete": true', '"complete": false'))
    elif name == "torn part":
        part.write_bytes(part.read_bytes()[:100])
    elif name == "no train":
        shutil.rmtree(part.parent)
    else:
        (tmp_path / "corpus" / "train" / "notes.txt").write_text("mine")
    code, _, err = push(hub, "corpus", "me/corpus", cwd=tmp_path)
    assert code == 2
    assert len(err.splitlines()) == 1
    told = {
        "not ended": "stage.json: torn, or changed since",
        "a file of the user's": "notes.txt: no run",
    }
    assert told.get(name, "part-00000.parquet: missing, or not of the size") in err
    assert not hub.repositories


def test_what_is_refused(hub, demo, tmp_path):
    code, _, err = push(hub, demo[0], "me/corpus", cwd=tmp_path, token="wrong")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert "the hub refuses (" in err
    code, _, err = push(hub, tmp_path, "me/corpus", cwd=tmp_path)
    assert code == 2
    assert "give a corpus, or the folder of a checkpoint" in err
    assert not hub.repositories
