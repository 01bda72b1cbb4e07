import subprocess
import sys

import pytest

import nerbert
from nerbert.commands.table import COMMANDS, main, run_command
from tests.helpers.runs import ROOT


def test_help_lists_every_command(capsys):
    assert main(["--help"]) == main([]) == 0
    out = capsys.readouterr().out
    for name, entry in COMMANDS.items():
        assert f"{name:11} {entry.summary}" in out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"nerbert {nerbert.__version__}\n"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("evalute", "nerbert evalute: no such command; did you mean evaluate?\n"),
        ("zzz", "nerbert zzz: no such command; there are fetch dump, fetch types,"),
    ],
)
def test_unknown_command(name, line, capsys):
    assert main([name]) == 2
    assert capsys.readouterr().err.startswith(line)


@pytest.mark.parametrize("name", COMMANDS)
def test_usage_names_what_was_typed(name, capsys):
    for typed, call in (
        (f"nerbert {name}", lambda: main([name, "--help"])),
        ("python -m other", lambda: run_command(name, ["--help"], "python -m other")),
    ):
        assert call() == 0
        assert capsys.readouterr().out.startswith(f"usage: {typed} [FLAG ...]\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name):
    for action in COMMANDS[name].command().parser("p")._actions:
        assert action.help, action.dest


def test_an_option_has_one_name_in_all_commands():
    names = {
        action.dest
        for entry in COMMANDS.values()
        for action in entry.command().parser("p")._actions
    }
    assert names.isdisjoint({"report", "profile", "variant", "setting", "out", "folder", "sets"})


def run(code, cwd, *flags):
    return subprocess.run([sys.executable, *flags, code], capture_output=True, text=True, cwd=cwd)


@pytest.mark.parametrize("name", ["pipeline", "ontology", "finetune"])
def test_a_folder_that_hides_a_package_is_named(name, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    import_it = {"finetune": "Tagger"}.get(name, "build_corpus")
    done = run(f"from nerbert import {import_it}", tmp_path, "-c")
    assert f"the package '{name}' is imported from {tmp_path / name} instead of" in done.stderr
    command = {"finetune": "predict"}.get(name, "corpus")
    done = subprocess.run(
        [sys.executable, "-m", "nerbert", command], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"{tmp_path / name} instead of {ROOT / name}; rename that folder" in done.stderr


def test_missing_extra_is_one_line(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"
        "from nerbert.commands.table import main\n"
        "sys.exit(main(['dapt', '--corpus', 'c', '--output', 'o']))"
    )
    done = run(code, tmp_path, "-c")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.endswith(
        "is not installed: pip install -c constraints.txt -e '.[train]' in the checkout of nerbert\n"
    )


def test_the_door_is_lazy_and_complete(tmp_path):
    code = (
        "import sys, nerbert\n"
        "assert not {'torch', 'apache_beam', 'numpy', 'pyarrow'} & set(sys.modules)\n"
        "for name in nerbert.__all__: getattr(nerbert, name)\n"
        "assert 'apache_beam' not in sys.modules\n"
    )
    done = run(code, tmp_path, "-c")
    assert done.returncode == 0, done.stderr
    with pytest.raises(AttributeError, match="no attribute 'build'"):
        nerbert.build  # noqa: B018
