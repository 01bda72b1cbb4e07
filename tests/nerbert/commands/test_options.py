from pathlib import Path
from typing import Literal

import pytest
from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Numbers, Text, Texts, option, options_of
from nerbert.commands.recipes import Recipes
from nerbert.commands.values import build, build_from_python, near
from nerbert.errors import UserError


@dataclass(frozen=True, config=CHECKED)
class Options:
    name: Text = option(help="what it is called")
    size: int = option(3, "number of things", ge=1, le=9)
    share: float = option(0.5, "of all", gt=0, lt=1)
    shares: Numbers = option((1.0,), "of each")
    mode: Literal["fast", "slow"] = option("fast", "how")
    files: Texts = option((), "which", metavar="FILE")
    loud: bool = option(False, "whether it says so")
    limit: int | None = option(None, "at most", also="--at-most")
    secret: int = option(1, "not for recipes", recipe=False)


def test_options_of_a_class():
    found = {entry.name: entry for entry in options_of(Options)}
    assert found["name"].flags == ["--name"]
    assert found["limit"].flags == ["--limit", "--at-most"]
    assert (found["limit"].kind, found["limit"].default) == (int, None)
    assert (found["files"].kind, found["files"].is_list) == (str, True)
    assert (found["shares"].kind, found["shares"].is_list) == (float, True)
    assert found["size"].help == "number of things"


def test_values_of_python_are_checked_as_they_are():
    found = build_from_python(
        Options, {"name": Path("a"), "files": "one", "share": 0.1, "shares": [1, 0.5]}
    )
    assert (found.name, found.files, found.shares) == ("a", ("one",), (1.0, 0.5))
    assert build_from_python(Options, {"name": "a", "files": [Path("x"), "y"]}).files == ("x", "y")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "--name is missing: what it is called"),
        ({"name": "a", "size": "8"}, "size = '8': give a whole number"),
        ({"name": "a", "size": 2.5}, "size = 2.5: give a whole number"),
        ({"name": "a", "size": 0}, "size = 0: give 1 or more"),
        ({"name": "a", "size": 10}, "size = 10: give at most 9"),
        ({"name": "a", "share": 0.0}, "share = 0.0: give more than 0"),
        ({"name": "a", "share": 1.0}, "share = 1.0: give less than 1"),
        ({"name": "a", "mode": "quick"}, "mode = 'quick': use fast or slow"),
        ({"name": "a", "loud": "yes"}, "loud = 'yes': give true or false"),
        ({"name": 3}, "name = 3: give a text"),
        ({"name": "a", "files": 3}, "files = 3: give a list"),
        ({"name": "a", "siz": 3}, "unknown option 'siz'; did you mean size?"),
    ],
)
def test_wrong_values(values, message):
    with pytest.raises(UserError) as error:
        build_from_python(Options, values)
    assert str(error.value) == message


def test_recipe(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text("size = 4\nfiles = ['a', 'b']\nname = 'x'\n")
    found = build(Options, Recipes().read(str(path), [Options]))
    assert (found.size, found.files, found.name) == (4, ("a", "b"), "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size = '4'\nname = 'x'", "{}: size = '4': give a whole number"),
        ("siz = 4", "{}: unknown key 'siz'; did you mean size?"),
        ("secret = 4", "{}: unknown key 'secret'; a recipe may have files, limit"),
        ("size =", "{}: not valid TOML"),
        ("size = 1\nsize = 2", "{}: not valid TOML"),
    ],
)
def test_wrong_recipes(tmp_path, text, message):
    path = tmp_path / "r.toml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        build(Options, Recipes().read(str(path), [Options]))
    assert str(error.value).startswith(message.format(path))


def test_missing_recipe():
    with pytest.raises(UserError) as error:
        Recipes("finetune", flag="--recipe").read("nerbret", [Options])
    assert str(error.value).startswith("--recipe nerbret: no such recipe; use bilstm-crf, cdlm")


def test_near():
    assert near("--modle", ["--model", "--data"]) == "; did you mean --model?"
    assert near("zzz", ["--model"]) == ""
