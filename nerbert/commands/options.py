"""Options: a field of a dataclass defines a flag, a key of recipes, a check and a help text.

An options class is a `pydantic.dataclasses.dataclass(frozen=True, config=CHECKED)` whose fields are
made by `option`. A recipe (a TOML file) overrides the defaults, and flags override the recipe.
pydantic checks types and bounds. This module turns its errors into one line that names the flag, or
the file and the key, that the user wrote.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as options_class
from pydantic_core import PydanticUndefined

from nerbert.errors import UserError

CHECKED = ConfigDict(strict=True, extra="forbid")
"""Configuration of options classes: "8" is not accepted for 8, unknown names are errors."""

DETAILS = ", details"
"""Ending of the groups of options that are rarely needed."""

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def _plain(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _plain_tuple(value: Any) -> Any:
    if isinstance(value, str | os.PathLike):
        value = (value,)
    return tuple(map(_plain, value)) if isinstance(value, Iterable) else value


Text = Annotated[str, BeforeValidator(_plain)]
"""Type of a field: a string, or a path."""
Texts = Annotated[tuple[str, ...], BeforeValidator(_plain_tuple)]
"""Type of a field: several strings or paths. A single one is taken as a list of one."""
Numbers = Annotated[tuple[float, ...], BeforeValidator(_plain_tuple)]
"""Type of a field: several numbers."""
Seed = Annotated[int, Field(ge=0, le=(1 << 32) - 1)]
"""Type of a field: a seed; the bounds are those of numpy."""


def option(
    default: Any = ...,
    help: str = "",
    *,
    metavar: str = "",
    also: str = "",
    group: str = "",
    flag: bool = True,
    recipe: bool = True,
    positional: bool = False,
    decides: str = "",
    path: str = "",
    resets: str = "",
    table: str = "",
    **bounds: float,
) -> Any:
    """Defines a field of an options class.

    Args:
        default: value if neither a flag nor a recipe sets it. An option without a default is
            required.
        help: what the option decides, with its unit.
        metavar: name of the value in `--help`.
        also: second spelling of the flag.
        group: heading of the option in `--help`; with the ending ", details" only `--help all`
            shows it.
        flag: whether the option is a flag.
        recipe: whether a recipe may set the option.
        positional: whether the values are given without a flag.
        decides: name of the output that the option decides.
        path: "workers" for a path that worker processes read or write, on any machine; "here" for
            one that only the command itself reads; "content" for files whose content decides the
            results of runs, "model" for a model.
        resets: name of an option whose value in a recipe does not count if a user gives this one.
        table: table of a recipe in which the option may stand, named after an option; there the
            value of that one is called `name`.
        bounds: `ge`, `gt`, `le`, `lt`, as in pydantic.
    """
    facts: dict[str, Any] = {
        "metavar": metavar,
        "also": also,
        "group": group,
        "flag": flag,
        "recipe": recipe,
        "positional": positional,
        "decides": decides,
        "path": path,
        "resets": resets,
        "table": table,
    }
    extra: dict[str, Any] = {"description": help, "json_schema_extra": facts, **bounds}
    if isinstance(default, dict):
        return Field(default_factory=lambda: dict(default), **extra)
    return Field(default, **extra)


_NO_FACTS: Mapping[str, Any] = option().json_schema_extra
"""Facts of a field that `option` did not make."""


@dataclass(frozen=True)
class Option:
    """One field of an options class.

    Attributes:
        name: name of the field.
        kind: type of the value, or of each value if the field holds `is_list`.
        is_list: whether the field holds several values.
        default: default value.
        help: help text.
        facts: the other arguments of `option`.
        annotation: type of the field.
        is_required: whether it has no default.
    """

    name: str
    kind: Any
    is_list: bool
    default: Any
    help: str
    facts: Mapping[str, Any]
    annotation: Any
    is_required: bool

    @property
    def flags(self) -> list[str]:
        """Spellings of the flag; the main one comes first."""
        main = "--" + self.name.replace("_", "-")
        return [main, self.facts["also"]] if self.facts["also"] else [main]

    def parsed(self, text: str) -> Any:
        """Converts the text of a flag.

        Raises:
            ValidationError: the text is not a value of this type.
        """
        return TypeAdapter(self.kind).validate_strings(text) if self.kind is not str else text


def options_of(*kinds: type) -> list[Option]:
    """The options of several options classes. If two share a name, the first one is used."""
    options: dict[str, Option] = {}
    for kind in kinds:
        for name, field in kind.__pydantic_fields__.items():  # type: ignore[attr-defined]
            item, is_list = _item(field.annotation)
            default = None if field.default is PydanticUndefined else field.default
            required = bool(field.is_required())
            facts = {**_NO_FACTS, **(field.json_schema_extra or {})}
            help = field.description or ""
            bare = _bare(field.annotation)
            entry = Option(name, item, is_list, default, help, facts, bare, required)
            options.setdefault(name, entry)
    return list(options.values())


def extended(*kinds: type) -> Callable[[type[T]], type[T]]:
    """Decorates an options class: it gets the options of others, after its own.

    Args:
        kinds: other options classes. Their `__post_init__` runs after that of the class.
    """

    def decorated(kind: type[T]) -> type[T]:
        checks = [vars(part)["__post_init__"] for part in (kind, *kinds) if _checks(part)]

        def __post_init__(self: Any) -> None:
            for check in checks:
                check(self)

        names = ("__module__", "__qualname__", "__doc__")
        body = {name: getattr(kind, name) for name in names} | {"__post_init__": __post_init__}
        joined = type(kind.__name__, (*kinds, kind), body)
        return options_class(frozen=True, config=CHECKED)(joined)  # type: ignore[return-value]

    return decorated


def _checks(kind: type) -> bool:
    return "__post_init__" in vars(kind)


def decided_by(settings: Any, output: str) -> dict[str, Any]:
    """The options of an instance that decide an output, and their values."""
    names = (e.name for e in options_of(type(settings)) if e.facts["decides"] == output)
    return {name: getattr(settings, name) for name in names}


def _bare(annotation: Any) -> Any:
    """A type without what pydantic needs besides."""
    if get_origin(annotation) is Annotated:
        return get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        return Union[tuple(map(_bare, get_args(annotation)))]  # noqa: UP007  # of a list
    return annotation


def _item(annotation: Any) -> tuple[Any, bool]:
    """Type of the values of a field, and whether the field holds several values."""
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    if len(kinds) == 1 and get_origin(annotation) is not Literal:  # X | None
        annotation = kinds[0]
    if get_origin(annotation) is tuple and get_args(annotation)[-1:] == (...,):
        item = get_args(annotation)[0]
        # A list of pairs is written as one text, which the field's own validator parses.
        return (str, False) if get_origin(item) is tuple else (item, True)
    return annotation, False


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


def near(name: str, names: Iterable[str]) -> str:
    """The hint "; did you mean X?" with the most similar known name; empty if none is similar."""
    similar = get_close_matches(name, list(names), 1)
    return f"; did you mean {similar[0]}?" if similar else ""
