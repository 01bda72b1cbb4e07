"""The README says what the program does."""

import re
from pathlib import Path

import pytest

from finetune import demo, evaluate, matrix, overlap, predict, tsne
from finetune.crossner import grid as crossner
from finetune.dualner import command as dual
from ontology.entity_table import EntityTable
from pipeline import flags
from pipeline.stages.beam import unknown_beam_flags
from pretrain import dapt, launch

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_quick_start_output_is_real(demo):
    _, out, err = demo
    shown = [
        line.strip()
        for line in README.split("In a minute")[1].split("The corpus is a folder")[0].splitlines()
    ]
    for line in out.splitlines():
        assert line.strip() in shown
    assert err.splitlines()[0] in shown


def test_tagged_sentence_is_of_the_demo(demo):
    from runs import examples

    sentence = re.search(r"^    (\S+/[OB]\S* .*)$", README, re.MULTILINE)[1]
    tokens = [pair.rpartition("/")[0] for pair in sentence.split()]
    assert tokens in [row["tokens"] for row in examples(demo[0] / "corpus", "train")]


DOCUMENTS = (
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("data-format", "running", "pretraining", "finetuning", "domains", "dualner")
    ),
)
PARSERS = [
    flags.parser(""),
    flags.parser("", flags.DOMAIN),
    *(
        module.parser()
        for module in (launch, dapt, crossner, demo, dual, evaluate, matrix, overlap, predict, tsne)
    ),
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_flags_and_files_that_are_named_exist(document):
    transformers = pytest.importorskip("transformers")
    text = (ROOT / document).read_text(encoding="utf-8")
    known = "".join(parser.format_help() for parser in PARSERS)
    others = {"--help", "--service_port", "--nproc-per-node"}
    for flag in set(re.findall(r"(?<![\w-])--[a-z][a-z_-]+", text)) - others:
        arguments = ([flag], [flag, "1"], [flag, "NONE"])
        is_beams = any(flag not in unknown_beam_flags(given) for given in arguments)
        is_trainers = hasattr(transformers.TrainingArguments, flag[2:].replace("-", "_"))
        assert flag in known or is_beams or is_trainers, flag
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / document).parent.joinpath(link).exists(), link


@pytest.mark.parametrize("parser", PARSERS)
def test_every_flag_has_help(parser):
    for action in parser._actions:
        assert action.help, action.dest


def test_entity_table_example(demo):
    assert EntityTable.open(demo[0] / "entities").class_of("Big Apple") == "City"
