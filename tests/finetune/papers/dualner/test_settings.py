import os
from types import SimpleNamespace

import pytest

from nerbert.errors import UserError
from tests.helpers.lazy import lazy
from tests.helpers.runs import parsed

runs = lazy("finetune.papers.dualner.runs")


def settings(*flags):
    _, found = parsed("dualner", "--source", "a", "--targets", "b", *flags)
    return found


def test_recipes_are_the_papers():
    base, large = (settings("--recipe", f"dualner-{name}") for name in ("base", "large"))
    for recipe in (base, large):
        assert (recipe.epochs, recipe.batch_size, recipe.learning_rate) == (8, 128, 2e-5)
        assert (recipe.warmup_steps, recipe.eval_steps, recipe.regularisation) == (300, 250, 0.5)
    assert (base.second_batch_size, large.second_batch_size) == (500, 128)
    assert base.base_model == "xlm-roberta-base"
    assert os.path.basename(large.base_model) == "infoxlm-large"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo = 1", "unknown key 'foo'"),
        ('epochs = "8"', "own.toml: epochs = '8': give a whole number"),
        ("epochs = 2.5", "own.toml: epochs = 2.5: give a whole number"),
    ],
)
def test_bad_recipes_are_one_line(tmp_path, text, message):
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        settings("--recipe", str(tmp_path / "own.toml"))
    assert message in str(caught.value)


def test_a_pattern_of_targets_leaves_the_source_out():
    options = SimpleNamespace(source="wikiann/en", targets=("wikiann/*",))
    assert runs._targets(options) == ("wikiann/es", "wikiann/nl", "wikiann/ru")
    options = SimpleNamespace(source="wikiann/en", targets=("wikiann/nl", "wikiann/en"))
    assert runs._targets(options) == ("wikiann/nl", "wikiann/en")  # which is then an error
