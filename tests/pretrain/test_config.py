import dataclasses

import pytest
from transformers import TrainingArguments

from ontology.categories import SHIPPED
from pipeline.errors import UserError
from pretrain.config import AS_IN_CORPUS, PretrainSettings, read_recipe, recipe_names, resolve

FLAGS = {"corpus": "c", "output": "o"}


def test_paper_is_the_recipe_of_the_paper():
    paper = resolve(read_recipe("paper"), FLAGS, PretrainSettings)
    assert paper.base_model == "bert-base-cased"
    assert (paper.batch_size, paper.max_subwords) == (960, 128)
    assert paper.training["learning_rate"] == 5e-5
    assert paper.training["num_train_epochs"] == 1


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_can_be_used(name):
    recipe = resolve(read_recipe(name), FLAGS, PretrainSettings)
    assert recipe.categories in (AS_IN_CORPUS, *SHIPPED)
    assert set(recipe.training) <= {entry.name for entry in dataclasses.fields(TrainingArguments)}
    twin = name.removesuffix("-debug")
    assert {twin, f"{twin}-debug"} <= set(recipe_names())
    assert recipe.categories == resolve(read_recipe(twin), FLAGS, PretrainSettings).categories


def test_flags_come_before_the_recipe_and_that_before_the_defaults(tmp_path):
    (tmp_path / "r.toml").write_text('batch_size = 7\nbase_model = "tiny"\n')
    settings = resolve(
        read_recipe(str(tmp_path / "r.toml")), {**FLAGS, "batch_size": 9}, PretrainSettings
    )
    assert (settings.batch_size, settings.base_model, settings.max_subwords) == (9, "tiny", 128)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch_sise = 7", "unknown key 'batch_sise'; a recipe may have base_model, batch_size"),
        ('corpus = "x"', "unknown key 'corpus'"),
        ("batch_size =", "no TOML"),
        ("batch_size = '7'", "batch_size = '7': must be of type int"),
        ("batch_size = 0", "--batch-size 0: give 1 or more"),
        ("training = 3", "training = 3: must be of type dict"),
    ],
)
def test_bad_recipes(tmp_path, text, message):
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(UserError, match=message):
        resolve(read_recipe(str(tmp_path / "r.toml")), FLAGS, PretrainSettings)


def test_unknown_recipe_names_the_known():
    with pytest.raises(UserError, match=r"no such recipe; use 212types, .*, paper, paper-debug"):
        read_recipe("papier")
