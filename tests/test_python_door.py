"""What Python users import from `nerbert` alone: names, signatures, functions of commands."""

import inspect
import os
import subprocess
import sys

import pytest

import nerbert
from finetune.tagger.entities import Entities, Entity
from nerbert.commands.options import options_of
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from pipeline.settings import CorpusSettings
from tests.conftest import ROOT


def test_names_are_shown_and_load():
    pytest.importorskip("torch")
    assert dir(nerbert) == sorted(nerbert.__all__)
    assert all(getattr(nerbert, name) is not None for name in dir(nerbert))


@pytest.mark.parametrize("name", ["build_corpus", "evaluate", "pretrain"])
def test_help_has_every_option(name):
    function = getattr(nerbert, name)
    kinds = {
        "build_corpus": ["pipeline.settings:CorpusSettings"],
        "evaluate": ["finetune.options:EvaluateOptions", "finetune.settings:FitSettings"],
        "pretrain": ["pretrain.settings:PretrainSettings"],
    }[name]
    from nerbert.seams import load

    shown = inspect.signature(function).parameters
    for entry in options_of(*map(load, kinds)):
        default = inspect.Parameter.empty if entry.is_required else entry.default
        assert shown[entry.name].default == default
        assert f"{entry.name}: {entry.help}" in function.__doc__
    assert ("recipe" in shown) == (name != "build_corpus")


def test_types_are_those_of_the_fields():
    shown = inspect.signature(nerbert.build_corpus).parameters
    assert shown["alpha"].annotation is float
    assert shown["output"].annotation == str | None
    assert shown["types"].annotation == tuple[str, ...]
    assert {entry.name for entry in options_of(CorpusSettings)} < set(shown)


def test_a_command_from_python_is_the_command(demo, tmp_path, monkeypatch):
    """Its recipe, its defaults, and its checkpoint are those of the command line."""
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    from nerbert.commands.table import run_command

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    corpus = str(demo[0] / "corpus")
    said = nerbert.pretrain(
        corpus=corpus, output="one", recipe="paper-debug", training={"max_steps": 2}
    )
    assert "checkpoint  one" in said
    flags = ["--corpus", corpus, "--recipe", "paper-debug", "--output", "two", "--max-steps", "2"]
    assert run_command("pretrain", flags) == 0
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"corpora": "x"}, "unknown option 'corpora'; did you mean corpus?"),
        (
            {"corpus": "x", "output": "y", "batch_size": "8"},
            "batch_size = '8': give a whole number",
        ),
        ({"output": "y"}, "--corpus is missing: folder of the corpus"),
        ({"corpus": "x", "output": "y", "recipe": "papper"}, "--recipe papper: no such recipe"),
    ],
)
def test_wrong_options_are_named(options, message):
    pytest.importorskip("torch")
    with pytest.raises(UserError) as error:
        nerbert.pretrain(**options)
    assert message in str(error.value)


def test_corpus_says_its_size(demo):
    corpus = nerbert.load_corpus(demo[0])
    assert len(corpus) == sum(corpus.table(split).num_rows for split in ("train", "validation"))
    assert f"{corpus.table('train').num_rows:,} train" in repr(corpus)
    assert f"{len(corpus.labels.categories)} categories" in repr(corpus)


def test_entities_are_shown_in_the_text():
    text = "In <Bern> Ada & Bob met."
    found = Entities([Entity(4, 8, "City", 0.9, "Bern"), Entity(10, 13, "X", 1.0, "Ada")], text)
    html = found._repr_html_()
    assert "&lt;<mark" in html
    assert "Bern<small>City</small></mark>&gt;" in html
    assert "Ada<small>X</small></mark> &amp; Bob" in html
    assert found.to_pandas()["type"].tolist() == ["City", "X"]
    assert Entities([], text).to_pandas().columns.tolist() == [
        "start",
        "end",
        "type",
        "score",
        "text",
    ]
    assert found == [Entity(4, 8, "City", 0.9, "Bern"), Entity(10, 13, "X", 1.0, "Ada")]


def test_sentences_and_tokens_are_shown():
    sentence = Sentence(["Ada", "Byron", "saw", "Bern"], ["B-P", "I-P", "O", "B-C"])
    tokens = Entities([Entity(0, 2, "P", 1.0, "Ada Byron")], sentence.tokens)
    html = nerbert.show([sentence, tokens])
    assert html.count("Ada Byron<small>P</small></mark> saw") == 2
    assert html.count("Bern<small>C</small>") == 1
    assert html._repr_html_() == str(html)
    assert repr(html) == "[Ada Byron P] saw [Bern C]\n[Ada Byron P] saw Bern"
    assert "<mark" not in nerbert.show([])


NOT_INSTALLED = """
import importlib.metadata as metadata
real = metadata.version
def version(name):
    if name == "nerbert":
        raise metadata.PackageNotFoundError(name)
    return real(name)
metadata.version = version
from nerbert.commands.table import main
from nerbert.reports import versions
import finetune.experiments.runs
print(versions("nerbert", "numpy")["nerbert"], main(["corpus", "--stage", "extract"]))
"""


def test_a_checkout_that_is_not_installed(tmp_path):
    """On a cluster, in a container or a notebook the folder alone may be there."""
    done = subprocess.run(
        [sys.executable, "-c", NOT_INSTALLED],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "0+checkout 0", done.stderr
