import dataclasses

import pytest

from nerbert.commands.table import COMMANDS
from nerbert.errors import UserError
from ontology.categories import SHIPPED
from pretrain.settings import AS_IN_CORPUS, DaptSettings, PretrainSettings
from tests.helpers.lazy import lazy
from tests.helpers.runs import parsed

arguments = lazy("pretrain.training.arguments")

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


@pytest.mark.parametrize("flag", [("--eval-steps", "7"), ("--eval_steps=7",)])
def test_the_place_of_the_scores_is_that_of_the_checkpoints(flag):
    args, _ = arguments.training_arguments(settings("--recipe", "open"), [*flag, "--use_cpu"])
    assert (args.eval_steps, args.save_steps) == (7, 7)
    typed = [*flag, "--save-steps", "14", "--use_cpu"]
    args, _ = arguments.training_arguments(settings("--recipe", "open"), typed)
    assert (args.eval_steps, args.save_steps) == (7, 14)


@pytest.mark.parametrize(
    ("scored", "share"),
    [
        (500, 0.1),  # ten scores are 1,667 times forwards and backwards, of 30,000
        (1800, 0.2),
        (20_000, 0.999),
    ],
)
def test_scores_take_a_tenth_of_the_time(scored, share):
    flags = ["--num_train_epochs", "3", "--use_cpu"]
    args, _ = arguments.training_arguments(settings("--recipe", "open"), flags)
    arguments.space_scores(args, 10_000, scored)
    assert args.eval_steps == args.save_steps == pytest.approx(share)
    if share < 0.5:
        scores = round(1 / share)
        assert scores * scored / 3 <= 0.1 * 30_000 + 1e-6


def test_a_number_of_steps_between_scores_is_kept():
    args, _ = arguments.training_arguments(
        settings("--recipe", "open"), ["--eval-steps", "5", "--use_cpu"]
    )
    arguments.space_scores(args, 10, 10_000)
    assert (args.eval_steps, args.save_steps) == (5, 5)


def test_sixteen_bits_without_a_gpu():
    """transformers alone says that this needs a GPU."""
    if lazy("torch").accelerator.is_available():
        pytest.skip("a GPU is here")
    args, _ = arguments.training_arguments(settings("--recipe", "open"), ["--bf16"])
    assert args.bf16
    assert args.use_cpu
