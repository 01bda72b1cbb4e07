import pytest

from finetune.data.sets import DataSets
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from tests.helpers.corpora import simple_corpus
from tests.helpers.lazy import lazy

datasets = lazy("datasets")

NAMES = ["O", "B-LOC", "I-LOC"]


def saved(folder, split="validation", tags="ner_tags", **columns):
    features = datasets.Features(
        {
            "tokens": datasets.Sequence(datasets.Value("string")),
            tags: datasets.Sequence(datasets.ClassLabel(names=NAMES)),
        }
    )
    rows = {"tokens": [["in", "New", "York"], ["Ulm"]], tags: [[0, 2, 2], [1]]}
    train = datasets.Dataset.from_dict({**rows, **columns}, None if columns else features)
    datasets.DatasetDict({"train": train, split: train}).save_to_disk(str(folder))
    return str(folder)


@pytest.mark.parametrize("tags", ["ner_tags", "tags"])
def test_folders_of_datasets(tmp_path, tags):
    name = saved(tmp_path / "set", tags=tags)
    expected = [
        Sentence(["in", "New", "York"], ["O", "B-LOC", "I-LOC"]),
        Sentence(["Ulm"], ["B-LOC"]),
    ]
    assert DataSets().sentences(name, "train") == expected
    assert DataSets().sentences(name, "dev") == expected
    assert DataSets().sentences(name, "test", needed=False) == []
    with pytest.raises(UserError, match="no split test or testb; it has train, validation"):
        DataSets().sentences(name, "test")


def test_tags_as_words_or_as_numbers_without_names(tmp_path):
    name = saved(tmp_path / "words", ner_tags=[["O", "B-A", "I-A"], ["O"]])
    assert DataSets().sentences(name, "train")[0].tags == ["O", "B-A", "I-A"]
    name = saved(tmp_path / "numbers", ner_tags=[[0, 1, 1], [0]])
    with pytest.raises(UserError, match="numbers without names; save them as ClassLabel"):
        DataSets().sentences(name, "train")
    name = saved(tmp_path / "other", tags="kinds", kinds=[["O"] * 3, ["O"]])
    with pytest.raises(UserError, match=r"neither tokens and tags, .*; there are tokens, kinds"):
        DataSets().sentences(name, "train")


def test_our_corpora_are_sets(demo):
    folder, _, _ = demo
    rows = DataSets().sentences(str(folder / "corpus"), "train")
    assert len(rows) > 100
    assert any(tag.startswith("B-") for tag in rows[0].tags)
    assert DataSets().sentences(str(folder / "corpus"), "dev")


def test_a_corpus_without_card_is_a_folder_of_files(tmp_path):
    folder = simple_corpus(tmp_path / "corpus")
    (folder / "README.md").unlink(missing_ok=True)
    with pytest.raises(UserError, match=r"it has no file train\.\*"):
        DataSets().sentences(str(folder), "train")


def test_hub_out_of_reach_is_one_line(monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"^hf:nobody/nothing: .*is the name right") as caught:
        DataSets().sentences("hf:nobody/nothing", "train")
    assert "\n" not in str(caught.value)
