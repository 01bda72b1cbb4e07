"""A package of somebody else brings a part of each seam."""

import json
import os
import subprocess
import sys

import pytest

from nerbert.errors import UserError
from ontology.entity_table import EntityTable
from tests.conftest import ROOT
from tests.helpers.lazy import lazy
from tests.helpers.toy import write_set

tagger = lazy("finetune.tagger.tagger")

ENTRY_POINTS = """
[nerbert.commands]
toy = toy_parts:COMMAND

[nerbert.engines]
toy = toy_parts:ToyEngine

[nerbert.voters]
bridges = toy_parts:bridges

[nerbert.filters]
odd = toy_parts:odd

[nerbert.heads]
toy = toy_parts:HEAD

[nerbert.exports]
words = toy_parts:write_words
"""

PARTS = '''
import numpy as np
from pydantic.dataclasses import dataclass

from finetune.parts import HeadEntry
from nerbert.commands.options import CHECKED, option
from nerbert.commands.table import Entry
from ontology.titles import title_keys
from ontology.voting.building import Facts

COMMAND = Entry("say a number", "toy_parts:say", ("toy_parts:ToyOptions",))
HEAD = HeadEntry("toy_head:ToyHead", "scaled scores", "toy_parts:ToyHeadOptions")


@dataclass(frozen=True, config=CHECKED)
class ToyOptions:
    """Says a number."""

    number: int = option(1, "the number")


@dataclass(frozen=True, config=CHECKED)
class ToyHeadOptions:
    toy_start: float = option(1.0, "first factor of the scores", table="head")

    def __post_init__(self):
        if self.toy_start <= 0:
            raise ValueError("--toy-start: give more than 0")


def say(options):
    return f"the number is {options.number}"


def bridges(plan, types):
    return [Facts(title_keys(["Ponte Toy"]), ["Bridge"], np.zeros(1, np.int32), "bridges")]


def odd(batch, is_kept):
    return batch.sentences.numbers % 2 == 1


def write_words(rows, path):
    texts = [" ".join(row.tokens) for row in rows]
    path.write_text("\\n".join(texts))
    return len(texts)


def __getattr__(name):
    if name != "ToyEngine":
        raise AttributeError(name)
    from pipeline.clusters.engine import Engine

    class ToyEngine(Engine):
        @classmethod
        def suits(cls, options, name):
            return name == "FnApiRunner"

        def described(self):
            return "a toy engine"

    return ToyEngine
'''

HEAD = """
import torch
from torch import nn

from finetune.heads.linear import LinearHead
from pretrain.training.subwords import token_loss


class Factor(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(value))


class ToyHead(LinearHead):
    name = "toy"
    parts = ("toy",)

    @classmethod
    def add(cls, model, settings, tokenizer, labels, domains):
        head = super().add(model, settings, tokenizer, labels, domains)
        nn.init.constant_(model.toy.factor, settings.toy_start)
        return head

    @classmethod
    def restore(cls, model):
        model.add_module("toy", Factor(1.0))
        model.config.tag_head = cls.name

    def loss(self, outputs, labels, num_items_in_batch=None):
        outputs.logits = outputs.logits * self.model.toy.factor
        return token_loss(outputs, labels, num_items_in_batch)

    def decode(self, logits):
        return super().decode(logits * float(self.model.toy.factor))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder of packages with the toy in it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "toy_parts.py").write_text(PARTS)
    (folder / "toy_head.py").write_text(HEAD)
    about = folder / "toy_parts-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-parts\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def nerbert(*arguments, site=None, cwd=None):
    return python("-m", "nerbert", *arguments, site=site, cwd=cwd)


def python(*arguments, site=None, cwd=None):
    places = [str(ROOT), *([str(site)] if site else [])]
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_command(installed, tmp_path):
    assert "say a number" in nerbert("--help", site=installed)[1]
    assert nerbert("toy", "--number", 7, site=installed, cwd=tmp_path)[1] == "the number is 7\n"
    code, _, err = nerbert("toy", "--number", "many", site=installed)
    assert (code, err) == (2, "--number many: give a whole number\n")
    assert nerbert("toy")[0] == 2


def test_a_format(installed, tmp_path):
    write_set(tmp_path / "toy")
    flags = ("--format", "words", "--data", "toy", "--part", "dev", "--output", "words.txt")
    code, out, err = nerbert("export", *flags, site=installed, cwd=tmp_path)
    assert (code, out) == (0, "words.txt: 12 texts\n"), err
    assert (tmp_path / "words.txt").read_text().startswith("Ada Byron lived in Bern for\n")
    assert nerbert("export", *flags, cwd=tmp_path)[0] == 2


@pytest.mark.slow
def test_an_engine_a_voter_and_a_filter(installed, tmp_path):
    flags = ("corpus", "--output", "out", "--runner", "FnApiRunner")
    code, _, err = nerbert(*flags, site=installed, cwd=tmp_path)
    assert code == 0, err
    assert "a toy engine;" in err
    table = EntityTable.open(tmp_path / "out" / "entities")
    assert table.voter_names[-1] == "bridges"
    assert table.class_of("Ponte Toy") == "Bridge"
    report = json.loads((tmp_path / "out" / "corpus" / "report.json").read_text())
    assert report["funnel"]["sentences"]["dropped"]["odd"] > 0

    code, _, err = nerbert("corpus", "--output", "out", "--workers", 1, cwd=tmp_path)
    assert code == 0, err
    assert "extract: up to date" in err  # neither of them decides it
    assert "bridges" not in EntityTable.open(tmp_path / "out" / "entities").voter_names
    report = json.loads((tmp_path / "out" / "corpus" / "report.json").read_text())
    assert "odd" not in report["funnel"]["sentences"]["dropped"]


USE_HEAD = """
import sys
from nerbert.commands.table import run_command

train = ["--base-model", sys.argv[1], "--data", "toy", "--recipe", "toy.toml", "--output"]
codes = [
    run_command("train", [*train, "x", "--toy-start", "0"]),
    run_command("train", [*train, "tagger"]),
    run_command("predict", ["--model", "tagger", "Emmy Noether lived in Rom"]),
]
print(codes)
"""


def test_a_head(installed, base, tmp_path):
    """Its option stands in a recipe, and is a flag; its weights are read from the checkpoint."""
    write_set(tmp_path / "toy")
    (tmp_path / "toy.toml").write_text('epochs = 2\n[head]\nname = "toy"\ntoy_start = 0.5\n')
    code, out, err = python("-c", USE_HEAD, base, site=installed, cwd=tmp_path)
    assert code == 0, err
    *_, prediction, codes = out.splitlines()
    assert codes == "[2, 0, 0]", err
    assert "--toy-start: give more than 0" in err
    assert json.loads(prediction)["entities"]
    config = json.loads((tmp_path / "tagger" / "config.json").read_text())
    assert config["tag_head"] == "toy"
    with pytest.raises(
        UserError, match="has no place for 1 weight toy"
    ):  # it is not installed here
        tagger.Tagger.load(tmp_path / "tagger")


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ("toy = nowhere:COMMAND", "its entry point toy of nerbert.commands cannot be loaded"),
        ("corpus = toy_parts:COMMAND", "nerbert.commands has corpus already"),
        ("toy = toy_parts:HEAD", "its entry point toy of nerbert.commands is no Entry"),
    ],
)
def test_a_part_that_does_not_fit(installed, tmp_path, point, message):
    about = tmp_path / "other-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[nerbert.commands]\n{point}\n")
    (tmp_path / "toy_parts.py").write_text(PARTS)
    code, _, err = nerbert("--help", site=tmp_path)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
