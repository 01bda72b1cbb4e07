"""The command `nerbert`: the table of its sub-commands, and the function that runs one."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nerbert import __version__
from nerbert.commands.completion import CompletionOptions, script
from nerbert.commands.parser import Command, exit_code
from nerbert.commands.process import check_system, is_first, prepare_streams, typed_program
from nerbert.commands.recipes import Recipes
from nerbert.commands.values import near, with_options
from nerbert.errors import UserError
from nerbert.seams import described, foreign, load

_OTHER_FLAGS = {
    "": "",
    "beam": "Every other flag goes to Beam, for example --runner and what that needs.",
    "trainer": (
        "Every other flag goes to transformers.TrainingArguments, for example --learning-rate, "
        "--num-train-epochs, --bf16, --torch-compile, --report-to tensorboard, --push-to-hub, "
        "--resume-from-checkpoint DIR."
    ),
}


@dataclass(frozen=True)
class Entry:
    """A row of the table of commands, in a file `seams.toml` or at an entry point.

    Attributes:
        summary: what the command does, for the list of all commands.
        work: "module:function"; it takes an instance of each options class, and returns the text
            to print, or None.
        options: "module:class" of each options class; the docstring of the first one is the first
            text of `--help`.
        recipes_of: package whose recipes are shipped for the command, and name of the default one.
        other_flags: where unknown flags go, which `work` takes as a last argument: "beam",
            "trainer"; empty if they are errors.
        passes_flags: whether `work` takes the options that were typed as flags as a last argument.
    """

    summary: str
    work: str
    options: tuple[str, ...]
    recipes_of: tuple[str, ...] = ()
    other_flags: str = ""
    passes_flags: bool = False

    @property
    def recipes(self) -> Recipes:
        """The recipes of the command."""
        return Recipes(*self.recipes_of)

    def command(self) -> Command:
        """The command; its options classes are imported here, its work is not."""
        kinds = [load(name) for name in self.options]
        return Command(
            inspect.getdoc(kinds[0]),
            *kinds,
            recipes=self.recipes,
            positionals_help=_OTHER_FLAGS[self.other_flags],
            passes_flags=self.passes_flags,
        )


COMMANDS = described("commands", Entry)
"""Name of each sub-command of ours -> its row."""


def all_commands() -> dict[str, Entry]:
    """Name of each sub-command -> its row, also those of other packages."""
    return COMMANDS | foreign("commands", Entry)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and returns its exit code."""
    prepare_streams()
    argv = list(sys.argv[1:] if argv is None else argv)
    if " ".join(argv[:2]) in COMMANDS:
        argv[:2] = [" ".join(argv[:2])]
    name = argv[0] if argv else "--help"
    if name in ("-h", "--help"):
        return exit_code(lambda: print(_help()))
    if name == "--version":
        return exit_code(lambda: print(f"nerbert {__version__}"))
    return run_command(name, argv[1:], f"{_program()} {name}")


def run_command(name: str, argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs a sub-command and returns its exit code.

    Args:
        name: name of the sub-command.
        argv: its arguments; those of the process if None.
        prog: the command as the user typed it, for usage lines; that of the process if None.
    """
    prepare_streams()
    os.environ["MPLBACKEND"] = "agg"  # matplotlib only writes files, and refuses unknown ones
    code = 0

    def dispatch() -> None:
        nonlocal code
        entry = _entry(name)
        code = entry.command().main(
            lambda *arguments: _print(load(entry.work)(*arguments)), argv, prog
        )

    return exit_code(dispatch) or code


def function(name: str) -> Callable[..., Any]:
    """A sub-command as a function of its options; it returns what the command prints."""
    entry = _entry(name)
    kinds = [load(kind) for kind in entry.options]

    @with_options(*kinds, recipe=True)
    def call(**options: Any) -> Any:
        return entry.command().call(load(entry.work), **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (call.__doc__ or "").replace("", inspect.getdoc(kinds[0]) or "", 1)
    return call


def complete(options: CompletionOptions) -> str:
    """Runs `nerbert completion`."""
    entries = all_commands()
    commands = {name: entry.command() for name, entry in entries.items()}
    return script(options.shell, commands, {n: entry.summary for n, entry in entries.items()})


def _print(result: Any) -> None:
    """Prints what a command returned; the first of several processes does."""
    if result is not None and is_first():
        print(str(result).removesuffix("\n"))


def _entry(name: str) -> Entry:
    """The row of a sub-command.

    Raises:
        UserError: there is no such command, the system is not supported, or another package hides
            one of ours.
    """
    entries = COMMANDS if name in COMMANDS else all_commands()
    if name not in entries:
        namesakes = [full_name for full_name in COMMANDS if full_name.startswith(f"{name} ")]
        hint = f"; there are {', '.join(namesakes or entries)}"
        if not namesakes:
            hint = near(name, entries) or hint
        raise UserError(f"nerbert {name}: no such command{hint}")
    check_system(entries[name].work)
    return entries[name]


def _program() -> str:
    typed = typed_program()
    return typed if typed.endswith("nerbert") else "nerbert"


def _help() -> str:
    lines = [f"  {name:11} {entry.summary}" for name, entry in all_commands().items()]
    return "\n".join(
        [
            f"usage: {_program()} COMMAND ...",
            "",
            "Makes named-entity corpora from Wikipedia dumps, pre-trains entity taggers on them,",
            "and fine-tunes and evaluates these taggers.",
            "",
            *lines,
            "",
            f"{_program()} COMMAND --help describes a command; --version prints the version.",
        ]
    )
