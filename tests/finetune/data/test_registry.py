"""Groups of sets, sets with other splits or types than their files, and what a folder is."""

import shutil

import pytest

from finetune.data import conll
from finetune.data.registry import GROUPS, expand, known_set, registry
from finetune.data.sets import DataSets
from finetune.data.split_files import checksum
from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.columns import Sentence


def sentence(number, kind="Person"):
    return Sentence([f"w{number}", "x"], [f"B-{kind}", "O"])


def test_the_group_of_nerbert():
    names = expand(["nerbert11", "btc"])
    assert names == [*GROUPS["nerbert11"]]
    assert len(names) == 11
    assert all(known_set(name) is not None for name in names)
    with pytest.raises(UserError, match="nerbert11"):
        expand(["nerbert12*"])


def test_dev_sentences_are_carved_from_the_train_split(tmp_path):
    folder = tmp_path / "sec_filings"
    folder.mkdir()
    conll.write([sentence(n) for n in range(300)], str(folder / "train_FIN5.txt"))
    conll.write([sentence(n) for n in range(300, 330)], str(folder / "test_FIN3.txt"))
    sets = DataSets(tmp_path)
    found = {split: sets.sentences("nerbert/finance", split) for split in ("train", "dev", "test")}
    assert {split: len(rows) for split, rows in found.items()} == {
        "train": 124,
        "dev": 176,
        "test": 30,
    }
    words = [row.tokens[0] for rows in found.values() for row in rows]
    assert len(set(words)) == 330
    assert [row.tokens for row in sets.sentences("sec_filings", "train")] == [
        [f"w{n}", "x"] for n in range(300)
    ]
    assert sets.sentences("sec_filings", "dev", needed=False) == []
    assert sets.sentences("nerbert/finance", "dev") == found["dev"]


def test_types_of_a_set_by_its_label_map(tmp_path):
    folder = tmp_path / "bionlp13cg"
    folder.mkdir()
    kinds = ["Simple_chemical", "Cell", "Gene_or_gene_product", "Cellular_component"]
    conll.write([sentence(n, kind) for n, kind in enumerate(kinds)], str(folder / "test.tsv"))
    tags = [row.tags[0] for row in DataSets(tmp_path).sentences("nerbert/bionlp13cg", "test")]
    assert tags == ["B-simple chemical", "O", "B-gene and gene product", "B-cellular component"]
    with pytest.raises(UserError, match="nerbert fetch sets bionlp13cg --output"):
        DataSets(tmp_path).sentences("nerbert/bionlp13cg", "train")


def test_a_set_is_known_by_its_name_or_its_test_file_only(tmp_path, monkeypatch):
    (tmp_path / "data" / "wikigold").mkdir(parents=True)
    file = tmp_path / "data" / "wikigold" / "wikigold.conll.txt"
    conll.write([sentence(1)], str(file))
    entry = registry()["wikigold"]
    monkeypatch.setitem(entry.sha256, "test", checksum(Place(file)))
    sets = DataSets(tmp_path / "data")
    assert sets.identity("wikigold") == "wikigold"
    other = tmp_path / "any name"
    other.mkdir()
    shutil.copy(file, other / "test.txt")
    assert sets.identity(str(other)) == "wikigold"
    false = tmp_path / "else" / "wikigold"
    false.mkdir(parents=True)
    conll.write([sentence(2)], str(false / "test.txt"))
    assert sets.identity(str(false)) == str(false)
    assert sets.lacks("wikigold") == ""
    assert "conll2003/eng.train is missing" in sets.lacks("conll2003")
