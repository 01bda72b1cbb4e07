import argparse
import errno
import logging
import os
import signal
import threading
import time

import pytest
from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, Text, Texts, option
from nerbert.commands.parser import Command, exit_code
from nerbert.commands.process import quiet_libraries, signals_as_ctrl_c
from nerbert.commands.table import COMMANDS
from nerbert.errors import BadLossError, UserError
from tests.helpers.runs import run


@dataclass(frozen=True, config=CHECKED)
class Model:
    base_model: Text = option(help="which encoder", also="--model", metavar="MODEL")
    size: int = option(3, "number of things, 5 % more", ge=1)


@dataclass(frozen=True, config=CHECKED)
class Output:
    output: Text = option("out", "where", metavar="DIR", recipe=False)
    texts: Texts = option((), "what", positional=True)
    loud: bool = option(False, "whether it says so", group="manners")


COMMAND = Command("Does a thing.", Model, Output)


def test_flags_become_settings():
    model, output = COMMAND.parse(["--model", "m", "--size=4", "a", "b", "--loud"]).settings
    assert model == Model(base_model="m", size=4)
    assert output == Output(texts=("a", "b"), loud=True)
    assert not COMMAND.parse(["--model", "m", "--no-loud"]).settings[1].loud


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "--base-model is missing: which encoder"),
        (["--model", "m", "--size", "x"], "--size x: give a whole number"),
        (["--model", "m", "--size", "0"], "--size 0: give 1 or more"),
        (["--model", "m", "--sise", "3"], "--sise: unknown flag; did you mean --size?"),
        (["--model"], "--base-model/--model/-m: expected one argument; see p --help"),
        (["--model", "m", "--recipe", "no.toml"], "--recipe no.toml: no such recipe"),
    ],
)
def test_errors_name_the_typed_flag(argv, message):
    with pytest.raises(UserError) as error:
        COMMAND.parse(argv, "p")
    assert str(error.value).startswith(message)


def test_recipe_overrides_defaults_and_flags_override_the_recipe(tmp_path):
    recipe = tmp_path / "r.toml"
    recipe.write_text("base_model = 'a'\nsize = 7\n")
    assert COMMAND.parse(["--recipe", str(recipe)]).settings[0] == Model("a", 7)
    assert COMMAND.parse(["--recipe", str(recipe), "--size", "8"]).settings[0] == Model("a", 8)


def test_unknown_flags_go_on_if_the_command_wants_them():
    command = Command("Runs.", Output, positionals_help="Others go to Beam.")
    assert command.parse(["--runner=Direct", "--loud"]).positionals == ["--runner=Direct"]
    seen = []
    assert command.main(lambda *given: seen.extend(given), ["--runner=Direct"]) == 0
    assert seen == [Output(), ["--runner=Direct"]]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UserError("it is wrong"), 2, "it is wrong"),
        (UserError("no such model", "m"), 2, "--model m: no such model"),
        (UserError("no such thing", "other"), 2, "other: no such thing"),
        (BadLossError("loss is NaN at step 3"), 1, "loss is NaN at step 3"),
        (KeyboardInterrupt(), 130, "Stopped. Run the same command again to continue out."),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x/y"),
            1,
            "x/y: No space left on device; check space and permissions, then run the same command "
            "again",
        ),
        (
            ModuleNotFoundError("No module named 'torch'", name="torch"),
            2,
            "torch is not installed: pip install -c constraints.txt -e '.[train]' in the checkout of nerbert",
        ),
        (
            ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn.config"),
            2,
            "uvicorn is not installed: pip install -c constraints.txt -e '.[demo]' in the checkout of nerbert",
        ),
    ],
)
def test_exit_codes(error, code, line, capsys):
    def work(model, output):
        raise error

    assert COMMAND.main(work, ["--model", "m"]) == code
    assert capsys.readouterr().err == line + "\n"


def test_errors_of_our_own_are_not_hidden():
    def work():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        exit_code(work)
    with pytest.raises(ModuleNotFoundError):
        exit_code(lambda: __import__("no_extra_has_this"))


def test_other_processes_of_torchrun_print_nothing(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    assert COMMAND.main(lambda *_: None, ["--sise"]) == 2
    assert capsys.readouterr().err == ""


def test_help_states_defaults_and_groups():
    text = COMMAND.parser("p").format_help()
    assert text.startswith("usage: p [FLAG ...]\n\nDoes a thing.")
    assert "number of things, 5 % more (default: 3)" in text
    assert text.index("manners:") < text.index("--loud")
    assert isinstance(COMMAND.parser(), argparse.ArgumentParser)


def test_unsupported_system_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr("sys.platform", "win32")
    assert COMMAND.main(lambda *_: None, ["--model", "m"]) == 2
    assert capsys.readouterr().err == "nerbert runs on Linux and macOS; on Windows use it in WSL\n"


def test_too_few_addresses_are_one_line(monkeypatch, capsys):
    monkeypatch.setattr("resource.getrlimit", lambda kind: (2_000_000_000, -1))
    assert COMMAND.main(lambda *_: None, ["--model", "m"]) == 2
    err = capsys.readouterr().err
    assert err == "ulimit -v leaves 2.0 GB of addresses; OpenBLAS may hang below 4 GB; raise it\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_command_once_and_are_given_back(number, capsys):
    before, hook = signal.getsignal(number), threading.excepthook

    def work():
        signal.raise_signal(number)

    with signals_as_ctrl_c():
        assert exit_code(work) == 130
    assert capsys.readouterr().err == "Stopped.\n"
    assert signal.getsignal(number) is before
    assert threading.excepthook is hook
    assert logging.root.manager.disable == logging.NOTSET


def test_ignored_signals_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals_as_ctrl_c():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_is_not_lost_while_an_object_is_cleared_away(number):
    class Cleared:
        def __del__(self):
            os.kill(os.getpid(), number)
            time.sleep(0.01)  # the handler is called here, and Python ignores what it raises

    def work():
        Cleared()
        for _ in range(200):
            time.sleep(0.01)

    began = time.monotonic()
    with signals_as_ctrl_c(), pytest.raises(KeyboardInterrupt):
        work()
    assert time.monotonic() - began < 1.5


@pytest.mark.parametrize(
    "text",
    [
        "Error while serializing: I/O error: No space left on device (os error 28)",
        "[enforce fail at x.cc:1]. PytorchStreamWriter failed writing file data/1",
    ],
)
def test_a_full_disk_is_one_line_whatever_a_library_raises(capsys, text):
    def work():
        raise RuntimeError(text)

    assert exit_code(work) == 1
    assert "No space left on device; check space" in capsys.readouterr().err


def test_other_errors_of_libraries_have_their_traceback():
    def work():
        raise RuntimeError("size mismatch")

    with pytest.raises(RuntimeError, match="size mismatch"):
        exit_code(work)


@pytest.mark.parametrize(
    ("about", "where"),
    [("base", "--base-model"), ("data", "--data"), (None, "--base-model or --data")],
)
def test_the_flag_of_a_wrong_value_is_found_by_the_option(about, where):
    """Two flags may have equal values; the object that came from one of them tells which."""
    command = COMMANDS["train"].command()
    one, other, copy = ("".join(["em", "pty"]) for _ in range(3))
    parsed = command.parse(["--base-model", one, "--data", "x", other, "--output", "o"])
    options = parsed.settings[0]
    value = {"base": options.base_model, "data": options.data[1], None: copy}[about]
    assert parsed.message(UserError("no such thing", value)) == f"{where} empty: no such thing"


def test_required_options_come_first_and_short_flags_work():
    command = COMMANDS["train"].command()
    text = command.parser("p").format_help()
    places = [text.index(f"  --{name}") for name in ("base-model", "data", "output", "device")]
    assert places == sorted(places)
    flags = ["--base-model", "b", "--data", "d"]
    short, long = (command.parse([*flags, flag, "x"]).settings for flag in ("-o", "--output"))
    assert short == long
    assert (
        COMMANDS["predict"].command().parse(["-m", "tagger", "text"]).settings[0].model == "tagger"
    )


def test_quiet(tmp_path):
    code, out, err = run("-q", "--stage", "extract", "-o", "out", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "Done up to extract" in out


def test_verbose(tmp_path):
    code, out, err = run("-v", "--stage", "extract", "-o", "out", cwd=tmp_path)
    assert code == 0
    assert "Done up to extract" in out
    quiet_code, _, usual = run("--stage", "extract", "-o", "again", cwd=tmp_path)
    assert quiet_code == 0
    assert len(err.splitlines()) >= len(usual.splitlines()) > 0


@pytest.mark.unit
def test_verbose_lets_libraries_speak(monkeypatch):
    for name in ("TRANSFORMERS", "DATASETS", "HF_HUB"):
        monkeypatch.setenv(f"{name}_VERBOSITY", "warning")
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "0")
    root = logging.getLogger()
    before = root.level
    try:
        COMMANDS["predict"].command().parse(["-v", "text"])
        assert root.level == logging.DEBUG
        quiet_libraries()
        assert os.environ["TRANSFORMERS_VERBOSITY"] == "warning"
        root.setLevel(logging.INFO)
        quiet_libraries()
        assert os.environ["TRANSFORMERS_VERBOSITY"] == "error"
    finally:
        root.setLevel(before)
