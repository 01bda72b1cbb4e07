"""Values of options: an instance of an options class, and errors of one line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ValidationError

from nerbert.commands.options import Option, T, options_of
from nerbert.errors import UserError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Given:
    """A value that a user gave.

    Attributes:
        value: the value.
        where: its place, for errors: "--alpha", "FILE: alpha =".
        typed: text of a flag's value; None for a value from a recipe or from Python.
    """

    value: Any
    where: str
    typed: str | None = None

    def problem(self, details: Mapping[str, Any]) -> str:
        """One line that explains an error of pydantic."""
        value_text = repr(details["input"]) if self.typed is None else self.typed
        return f"{self.where} {value_text}: {_reason(details)}"


def build(kind: type[T], values: Mapping[str, Given], where: str = "") -> T:
    """Makes an instance of an options class.

    Args:
        kind: options class.
        values: the values that the user gave, by name.
        where: file that the values come from; empty if they come from flags.

    Raises:
        UserError: a value is missing, of the wrong type or out of bounds, or two values contradict
            each other.
    """
    try:
        return kind(**{name: entry.value for name, entry in values.items()})
    except ValidationError as error:
        details: Any = error.errors()[0]
        name = str(details["loc"][0]) if details["loc"] else ""
        place = f"{where}: " if where else ""
        if details["type"] == "missing":
            missing = next(entry for entry in options_of(kind) if entry.name == name)
            label = name if where else missing.flags[0]
            hint = f": {missing.help}" if missing.help else ""
            raise UserError(f"{place}{label} is missing{hint}") from None
        if details["type"] == "unexpected_keyword_argument":
            option_names = [entry.name for entry in options_of(kind)]
            raise UserError(f"{place}unknown option {name!r}{near(name, option_names)}") from None
        if name in values:
            raise UserError(values[name].problem(details)) from None
        raise UserError(_reason(details)) from None


def with_options(*kinds: type, recipe: bool = False) -> Callable[[F], F]:
    """Decorates a function of keyword arguments: `help` and notebooks show its options.

    Args:
        kinds: options classes whose fields are its arguments.
        recipe: whether it takes a `recipe`, too.
    """

    def decorated(function: F) -> F:
        positional = list(inspect.signature(function).parameters.values())[:-1]
        by_name = {entry.name: entry for entry in options_of(*kinds)}
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter(name, kind, default=_default(entry), annotation=entry.annotation)
            for name, entry in by_name.items()
        ]
        lines = [f"    {name}: {entry.help}" for name, entry in by_name.items()]
        if recipe:
            parameters.append(inspect.Parameter("recipe", kind, default="", annotation=str))
            lines.append("    recipe: a shipped recipe, or a TOML file with values of the options")
        function.__signature__ = inspect.Signature([*positional, *parameters])  # type: ignore[attr-defined]
        function.__doc__ = "\n".join([inspect.getdoc(function) or "", "", "Options:", *lines])
        return function

    return decorated


def _default(entry: Option) -> Any:
    return inspect.Parameter.empty if entry.is_required else entry.default


def build_from_python(kind: type[T], values: Mapping[str, Any]) -> T:
    """Makes an instance of an options class from keyword arguments of a Python function."""
    return build(kind, {name: Given(value, f"{name} =") for name, value in values.items()})


def _reason(details: Mapping[str, Any]) -> str:
    """Turns a pydantic error into advice: what to give instead."""
    kind, context = details["type"], details.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"use {context['expected']}".replace("'", "")
    bounds = {
        "greater_than_equal": "give {ge} or more",
        "greater_than": "give more than {gt}",
        "less_than_equal": "give at most {le}",
        "less_than": "give less than {lt}",
    }
    if kind in bounds:
        return bounds[kind].format(
            **{n: v if isinstance(v, int) else f"{v:g}" for n, v in context.items()}
        )
    for part, advice in (
        ("int", "a whole number"),
        ("float", "a number"),
        ("bool", "true or false"),
        ("string", "a text"),
        ("tuple", "a list"),
        ("mapping", "a table"),
        ("dict", "a table"),
    ):
        if kind.startswith(part):
            return f"give {advice}"
    return str(details["msg"])


def near(name: str, names: Iterable[str], least: float = 0.6) -> str:
    """The hint "; did you mean X?" with the most similar known name; empty if none is similar.

    Args:
        name: the name that nobody knows.
        names: known names.
        least: smallest similarity, from 0 to 1; see `difflib`.
    """
    similar = get_close_matches(name, list(names), 1, least)
    return f"; did you mean {similar[0]}?" if similar else ""
