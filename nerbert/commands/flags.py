"""Flags of argparse, made of options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from pydantic import ValidationError

from nerbert.commands.options import Option
from nerbert.commands.values import Given
from nerbert.errors import UserError


class Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one line, like all other errors of a command."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message.removeprefix('argument ')}; see {self.prog} --help")


class Help(argparse.Action):
    """Prints the help and ends; `const` makes the parser whose help it is."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: Any = None
    ) -> NoReturn:
        make: Any = self.const
        print(make(values == "all").format_help(), end="")  # print_help hides errors
        parser.exit()


def add_flag(group: Any, entry: Option) -> None:
    """Adds an option to a parser. argparse keeps its values as texts."""
    arguments: dict[str, Any] = {"help": _help(entry)}
    if entry.kind is bool:
        arguments["action"] = argparse.BooleanOptionalAction
    else:
        arguments["metavar"] = entry.facts["metavar"] or _metavar(entry)
        if entry.is_list:
            arguments |= {"nargs": "*" if entry.facts["positional"] else "+", "action": "extend"}
    if entry.facts["positional"]:
        group.add_argument(entry.name, **arguments)
    else:
        group.add_argument(*entry.flags, dest=entry.name, **arguments)


def _metavar(entry: Option) -> str:
    if choices := getattr(entry.kind, "__args__", ()):
        return "{" + ",".join(map(str, choices)) + "}"
    return {int: "N", float: "X"}.get(entry.kind, "TEXT")


def _help(entry: Option) -> str:
    """Help text with the default; percent signs are doubled because argparse formats it."""
    default = entry.default
    text = entry.help
    if default not in (None, ..., "", False, ()) and "default" not in text:
        default_text = " ".join(map(str, default)) if isinstance(default, tuple) else default
        text += f" (default: {'yes' if default is True else default_text})"
    return text.replace("%", "%%")


def value_of(entry: Option, text: Any, argv: Sequence[str]) -> Given:
    """Converts the text of a flag; keeps the spelling of the flag that was typed.

    Raises:
        UserError: the text is not a value of the option's type.
    """
    words = {word.partition("=")[0] for word in argv}
    flag = next((flag for flag in entry.flags if flag in words), entry.flags[0])
    where = "" if entry.facts["positional"] else flag
    if entry.kind is bool:
        return Given(text, f"--no-{flag[2:]}" if text is False else flag)
    try:
        if entry.is_list:
            return Given(tuple(map(entry.parsed, text)), where, " ".join(text))
        return Given(entry.parsed(text), where, text)
    except ValidationError as error:
        details: Any = error.errors()[0]
        place = where or entry.name
        raise UserError(Given(text, place, str(details["input"])).problem(details)) from None
