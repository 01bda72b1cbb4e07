"""`nerbert push` against a stand-in of the hub: corpus, checkpoint, and what goes wrong."""

import pytest

from tests.helpers.hub import served_hub
from tests.helpers.runs import run_apart


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


def test_a_checkpoint_is_a_model_and_no_space_is_said(hub, fitted, tmp_path):
    fitted.save(tmp_path / "tagger")
    code, _, err = push(hub, "tagger", "me/tagger", cwd=tmp_path)
    assert (code, err) == (2, "tagger: it has no card (README.md); make it again\n")
    (tmp_path / "tagger" / "README.md").write_text("---\nlicense: mit\n---\n# Mine\n")
    hub.failures = 1
    code, _, err = push(hub, "tagger", "me/tagger", cwd=tmp_path)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert "the hub refuses (" in err
    assert "model.safetensors" not in hub.files
    code, out, err = push(hub, "tagger", "me/tagger", cwd=tmp_path)
    assert code == 0, err
    assert out == "tagger is on the hub: me/tagger\n"
    assert {"README.md", "config.json", "model.safetensors"} <= set(hub.files)


def test_what_is_refused(hub, demo, tmp_path):
    code, _, err = push(hub, demo[0], "me/corpus", cwd=tmp_path, token="wrong")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert "the hub refuses (" in err
    code, _, err = push(hub, tmp_path, "me/corpus", cwd=tmp_path)
    assert code == 2
    assert "give a corpus, or the folder of a checkpoint" in err
    assert not hub.repositories
