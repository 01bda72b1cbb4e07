import dataclasses

import pytest

from nerbert.commands.table import COMMANDS
from nerbert.errors import UserError
from ontology.categories import SHIPPED
from pretrain.settings import AS_IN_CORPUS, DaptSettings, PretrainSettings
from tests.helpers.runs import parsed

REQUIRED = ("--corpus", "c", "--output", "o")


def settings(*flags: object, command="pretrain") -> PretrainSettings:
    return parsed(command, *REQUIRED, *flags)[0]


def dapt_settings(*flags: object) -> DaptSettings:
    return settings(*flags, command="dapt")


def test_paper_is_the_recipe_of_the_paper():
    paper = settings("--recipe", "paper")
    assert paper.mask_unlinked is False
    # By default it is as in the paper, but for names without a mark.
    assert dataclasses.replace(paper, mask_unlinked=None) == settings()
    assert paper.base_model == "bert-base-cased"
    assert (paper.batch_size, paper.max_subwords) == (960, 128)
    assert paper.training["learning_rate"] == 5e-5
    assert paper.training["num_train_epochs"] == 1


@pytest.mark.parametrize("name", COMMANDS["pretrain"].recipes.names)
def test_every_recipe_can_be_used(name):
    from transformers import TrainingArguments

    recipe = settings("--recipe", name)
    assert recipe.categories in (AS_IN_CORPUS, *SHIPPED)
    assert set(recipe.training) <= {entry.name for entry in dataclasses.fields(TrainingArguments)}
    twin = name.removesuffix("-debug").replace("nerbert", "paper")
    assert {twin, f"{twin}-debug"} <= set(COMMANDS["pretrain"].recipes.names)
    assert recipe.categories == settings("--recipe", twin).categories


def test_flags_come_before_the_recipe_and_that_before_the_defaults(tmp_path):
    recipe = tmp_path / "r.toml"
    recipe.write_text('batch_size = 7\nbase_model = "tiny"\n')
    found = settings("--recipe", recipe, "--batch-size", 9)
    assert (found.batch_size, found.base_model, found.max_subwords) == (9, "tiny", 128)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch_sise = 7", "unknown key 'batch_sise'; did you mean batch_size?"),
        ('corpus = "x"', "unknown key 'corpus'; a recipe may have base_model, batch_size"),
        ("batch_size =", "not valid TOML"),
        ("batch_size = '7'", "r.toml: batch_size = '7': give a whole number"),
        ("batch_size = 7.5", "r.toml: batch_size = 7.5: give a whole number"),
        ("batch_size = 0", "r.toml: batch_size = 0: give 1 or more"),
        ("mask_unlinked = 1", "r.toml: mask_unlinked = 1: give true or false"),
        ("training = 3", "r.toml: training = 3: give a table"),
    ],
)
def test_bad_recipes(tmp_path, text, message):
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        settings("--recipe", tmp_path / "r.toml")
    assert message in str(caught.value)


def test_unknown_recipe_names_the_known():
    with pytest.raises(UserError, match=r"--recipe papier: .*; use 212types, .*, paper, paper-"):
        settings("--recipe", "papier")


def test_dapt_recipes():
    assert COMMANDS["dapt"].recipes.names == ["crossner-code", "crossner-paper", "debug"]
    for name, rate in (("crossner-paper", 0.15), ("crossner-code", 0.20)):
        found = dapt_settings("--recipe", name)
        assert (found.rate, found.training["num_train_epochs"]) == (rate, 15)
        assert (found.level, found.masking, found.max_subwords) == ("integrated", "span", 512)
    with pytest.raises(UserError, match="--fraction 2: give more than 0, at most 1"):
        dapt_settings("--fraction", "0.5", "2")


def test_one_share_is_one_run_and_several_have_folders():
    assert dapt_settings("--fraction", "0.5").runs() == [dapt_settings("--fraction", "0.5")]
    runs = dapt_settings("--fraction", "0.25", "1").runs()
    assert [(run.share, run.output) for run in runs] == [
        (0.25, "o/fraction-0.25"),
        (1.0, "o/fraction-1"),
    ]
