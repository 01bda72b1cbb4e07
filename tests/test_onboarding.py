"""The three recipes of CONTRIBUTING, done with toys: a set, a voter, an engine."""

from importlib.resources import files

import numpy as np

from finetune.data import registry
from finetune.data.sets import DataSets
from ontology.entity_table import EntityTable
from ontology.titles import title_keys
from ontology.voting.building import Facts
from tests.helpers.lazy import lazy
from tests.helpers.runs import run
from tests.helpers.toy import rows, write_set

beam_runner = lazy("pipeline.clusters.beam_runner")
engine = lazy("pipeline.clusters.engine")
resolve = lazy("pipeline.entities.resolve")

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


def test_a_voter_is_a_function_in_a_list(tmp_path, monkeypatch):
    def bridges(plan, types):
        """Pages whose name says that they are bridges."""
        return [Facts(title_keys(["Ponte Toy"]), ["Bridge"], np.zeros(1, np.int32), "bridges")]

    monkeypatch.setattr(resolve, "VOTERS", [*resolve.VOTERS, bridges])
    code, _, err = run("--stage", "resolve", "--workers", 1, "--output", "out", cwd=tmp_path)
    assert code == 0, err
    table = EntityTable.open(tmp_path / "out" / "entities")
    assert table.voter_names[-1] == "bridges"
    assert table.class_of("Ponte Toy") == "Bridge"


def test_an_engine_is_a_class_in_a_list(tmp_path, monkeypatch):
    class Toy(engine.Engine):
        """Beam's runner on this machine, under another name."""

        @classmethod
        def suits(cls, options, name):
            return name == "FnApiRunner"

        def described(self):
            return "a toy engine"

    monkeypatch.setattr(beam_runner, "ENGINES", [Toy, *beam_runner.ENGINES])
    flags = ("--stage", "extract", "--output", "out", "--runner", "FnApiRunner")
    code, _, err = run(*flags, cwd=tmp_path)
    assert code == 0, err
    assert "a toy engine;" in err
    assert (tmp_path / "out" / "documents" / "stage.json").is_file()
