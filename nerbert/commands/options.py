"""Options: a field of a dataclass defines a flag, a key of recipes, a check and a help text.

An options class is a `pydantic.dataclasses.dataclass(frozen=True, config=CHECKED)` whose fields are
made by `option`. A recipe (a TOML file) overrides the defaults, and flags override the recipe.
pydantic checks types and bounds. This module turns its errors into one line that names the flag, or
the file and the key, that the user wrote.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BeforeValidator, ConfigDict, Field, GetPydanticSchema, TypeAdapter
from pydantic.dataclasses import dataclass as options_class
from pydantic_core import PydanticUndefined, core_schema

from nerbert.storage.places import Place

CHECKED = ConfigDict(strict=True, extra="forbid", validate_default=True)
"""Configuration of options classes: "8" is not accepted for 8, unknown names are errors, and a
default that is a path becomes a place, too."""

DETAILS = ", details"
"""Ending of the groups of options that are rarely needed."""

T = TypeVar("T")


def _plain(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _plain_tuple(value: Any) -> Any:
    if isinstance(value, str | os.PathLike):
        value = (value,)
    return tuple(map(_plain, value)) if isinstance(value, Iterable) else value


def _place_schema(_: Any, handler: Callable[[Any], Any]) -> Any:
    # First a string, so that errors are those of strings: "give a text".
    return core_schema.no_info_after_validator_function(Place, handler(str))


_Place = Annotated[Place, GetPydanticSchema(_place_schema)]

Text = Annotated[str, BeforeValidator(_plain)]
"""Type of a field: a string, or a path."""
Texts = Annotated[tuple[str, ...], BeforeValidator(_plain_tuple)]
"""Type of a field: several strings or paths. A single one is taken as a list of one."""
Location = Annotated[_Place, BeforeValidator(_plain)]
"""Type of a field: a file or folder, by its path."""
Locations = Annotated[tuple[_Place, ...], BeforeValidator(_plain_tuple)]
"""Type of a field: several files or folders. A single one is taken as a list of one."""
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


_SHORT = {"--output": "-o", "--model": "-m"}
"""Flag -> its short spelling."""


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
        flags = ["--" + self.name.replace("_", "-"), *filter(None, [self.facts["also"]])]
        return [*flags, *(_SHORT[flag] for flag in flags if flag in _SHORT)]

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
    """A type without what pydantic needs besides; users give a place as a string."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if annotation is Place:
        return str
    if get_origin(annotation) is tuple:
        return tuple[tuple(map(_bare, get_args(annotation)))]  # type: ignore[misc]
    if get_origin(annotation) in (Union, UnionType):
        return Union[tuple(map(_bare, get_args(annotation)))]  # noqa: UP007  # of a list
    return annotation


def _item(annotation: Any) -> tuple[Any, bool]:
    """Type of the values of a field, and whether the field holds several values."""
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    if len(kinds) == 1 and get_origin(annotation) is not Literal:  # X | None
        annotation = kinds[0]
    if get_origin(annotation) is tuple and get_args(annotation)[-1:] == (...,):
        item = _bare(get_args(annotation)[0])
        # A list of pairs is written as one text, which the field's own validator parses.
        return (str, False) if get_origin(item) is tuple else (item, True)
    return (str if _bare(annotation) is str else annotation), False
