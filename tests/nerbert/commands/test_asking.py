"""What a command says of itself: everyday flags, all flags, recipes, completion."""

import re
import shutil
import subprocess

import pytest

from nerbert.commands.options import DETAILS
from nerbert.commands.table import COMMANDS, main


def said(argv, capsys):
    assert main(argv) == 0
    return capsys.readouterr().out


HEAVY = ("train", "evaluate", "corpus", "crossner", "matrix", "search")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_hides_details(name, capsys):
    everyday, everything = (
        said([*name.split(), "--help", *more], capsys) for more in ([], ["all"])
    )
    command = COMMANDS[name].command()
    hidden = [o for o in command.options if o.facts["group"].endswith(DETAILS)]
    for entry in command.options:
        flag = entry.name if entry.facts["positional"] else entry.flags[0]
        found = re.compile(
            rf"(?<![\w-]){re.escape(entry.facts['metavar'] or flag)}|{flag}(?![\w-])"
        )
        assert found.search(everything)
        if not entry.facts["positional"]:
            listed = re.search(rf"^  {flag}(?![\w-])", everyday, re.MULTILINE)
            assert bool(listed) == (entry not in hidden), flag
    assert (f"--help all shows {len(hidden)} more flags" in everyday) == bool(hidden)
    assert bool(hidden) or everyday == everything
    assert name not in HEAVY or len(everyday.splitlines()) < 90


RECIPES = [
    (name, recipe)
    for name, row in COMMANDS.items()
    for recipe in (*row.recipes.names, *([] if row.recipes.default else [""]))
]


@pytest.mark.parametrize(("name", "recipe"), RECIPES)
def test_a_printed_recipe_says_the_same(name, recipe, tmp_path, capsys):
    command = COMMANDS[name].command()
    needed = []
    for entry in command.options:
        if entry.is_required and not entry.facts["positional"]:
            needed += [entry.flags[0], {float: "0.5", int: "1"}.get(entry.kind) or choice(entry)]
        elif entry.is_required:
            needed += [choice(entry)]
    chosen = ["--recipe", recipe] if recipe else []
    with pytest.raises(SystemExit):
        command.parse([*needed, *chosen, "--print-recipe"], name)
    (tmp_path / "printed.toml").write_text(capsys.readouterr().out, encoding="utf-8")
    again = command.parse([*needed, "--recipe", str(tmp_path / "printed.toml")], name)
    assert again.settings == command.parse([*needed, *chosen], name).settings


def choice(entry):
    return str(next(iter(getattr(entry.kind, "__args__", ())), "x"))


COMPLETE = """
source /dev/stdin <<< "$SCRIPT"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nerbert; echo "${COMPREPLY[*]}"
"""


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (["nerbert", "pre"], "pretrain predict"),
        (["nerbert", "fetch", ""], "dump types sets vectors"),
        (["nerbert", "fetch", "dump", "--w"], "--wiki"),
        (["nerbert", "predict", "--model", "x", "--ty"], "--types"),
        (["nerbert", "corpus", "--dump", "a b", "--no-page"], "--no-page-typer"),
        (["nerbert", "corpus", "--alphabet"], ""),
    ],
)
def test_bash_completes(typed, found, capsys):
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "x", *typed],
        env={"SCRIPT": script},
        capture_output=True,
        text=True,
    )
    assert (done.stderr, done.stdout.strip()) == ("", found)


def test_other_shells(capsys):
    assert main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out.startswith("#compdef nerbert\n")
    assert main(["completion", "fish"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "complete -c nerbert -n '__fish_seen_subcommand_from predict' -l min-score" in lines
    for name in COMMANDS:
        assert any(f"-a {name.split()[-1]} " in line for line in lines), name
    assert main(["completion", "tcsh"]) == 2
    assert capsys.readouterr().err == "shell tcsh: use bash, zsh or fish\n"
