"""The recipe of CONTRIBUTING for a set, done with a toy; see `test_toy_package` for the others."""

from importlib.resources import files

from finetune.data import registry
from finetune.data.sets import DataSets
from tests.helpers.toy import rows, write_set

TOY_SET = """
["toy"]
domain = "people"
citation = "nobody"
licence = "CC0"
source = "this test"
files = { train = "toy/train.txt", dev = "toy/dev.txt", test = "toy/test.txt" }
"""


def test_a_set_is_an_entry_of_a_table(tmp_path, monkeypatch):
    text = (files("finetune.data") / "sets.toml").read_text(encoding="utf-8") + TOY_SET
    monkeypatch.setattr(registry, "_entries", lambda: registry.parsed(text))
    write_set(tmp_path / "toy")
    sets = DataSets(str(tmp_path))
    assert sets.sentences("toy", "train") == sets.sentences(str(tmp_path / "toy"), "train")
    assert sets.sentences("toy", "test") == rows(12, 52)
    assert registry.known_set("toy").citation == "nobody"
