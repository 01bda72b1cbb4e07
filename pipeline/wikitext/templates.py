"""Renders inline templates with text, by a small table; all others are removed.

Dates have the format of the English templates. {{convert}} is rendered with its first unit only.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from pipeline.wikitext.preprocess import HOLE, NOTE
from pipeline.wikitext.template_arguments import arguments

_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_DATES = (
    "start date|end date|start date and age|end date and age|birth date|birth date and age|"
    "death date|death date and age|birth-date|death-date|birth date and age2|film date|"
    "release date|launch date|date|dts|dob|dda|bda|start-date|end-date"
).split("|")
_FUNCTIONS = ("formatnum", "lc", "uc", "lcfirst", "ucfirst")
_NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?")
_RANGE_WORDS = {
    "to": " to ",
    "and": " and ",
    "-": "–",
    "–": "–",
    "to(-)": " to ",
    "or": " or ",
    "by": " by ",
    "x": " × ",
    "×": " × ",
    "+/-": " ± ",
    "±": " ± ",
    "*": " × ",
    "xx": " × ",
}

Arguments = Sequence[str]
Render = Callable[[Arguments, dict[str, str]], str]


@cache
def _table() -> dict[str, Any]:
    text = (files("pipeline.wikitext") / "data" / "templates.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _positional(index: int, prefix: str = "") -> Render:
    """Renders a template as one of its arguments, after a prefix."""
    return lambda args, named: prefix + _pick(args, named, index)


def _constant(text: str) -> Render:
    """Renders a template as a fixed text."""
    return lambda args, named: text


def _first(count: int | None) -> Render:
    """Renders a template as its first arguments (None for all), separated by spaces."""
    return lambda args, named: " ".join(args[:count])


@cache
def _renderers() -> dict[str, Render]:
    """Template -> function that makes its text from positional and named arguments."""
    table = _table()
    renderers: dict[str, Render] = {}
    for place, names in table["argument"].items():
        index = -1 if place == "last" else int(place) - 1
        renderers.update(dict.fromkeys(names, _positional(index)))
    renderers.update({name: _constant(text) for name, text in table["symbol"].items()})
    renderers.update({name: _positional(0, prefix) for name, prefix in table["prefix"].items()})
    renderers.update(dict.fromkeys(table["link"]["names"], _link))
    renderers.update(dict.fromkeys(_DATES, _date))
    renderers.update(
        {
            "convert": _convert,
            "cvt": _convert,
            "as of": _as_of,
            "frac": _fraction,
            "fraction": _fraction,
            "sfrac": _fraction,
            "val": _value,
            "coord": _coordinates,
            "chem": _joined,
            "gaps": _joined,
            "nihongo": _nihongo,
            "nihongo2": _positional(0),
            "langx": _langx,
            "linktext": _joined,
            "formatnum": lambda args, named: group_digits(_pick(args, named, 0)),
            "bibleverse": _first(2),
            "unité": _first(2),
            "date de naissance": _first(3),
            "date de décès": _first(3),
            "date-": _first(None),
            "読み仮名": lambda args, named: f"{_pick(args, named, 0)}（{_pick(args, named, 1)}）",
        }
    )
    return renderers


@cache
def _notes() -> tuple[frozenset[str], re.Pattern[str]]:
    names = _table()["note"]["names"]
    stems = [
        re.escape(name).replace(r"\*", ".*").replace(r"\ ", " ") for name in names if "*" in name
    ]
    exact = frozenset(name for name in names if "*" not in name)
    return exact, re.compile("|".join(stems), re.DOTALL)


@lru_cache(maxsize=65_536)
def _kind(name: str) -> tuple[str, str]:
    """Kind of a template (text, note, language, function or hole), and its plain name."""
    key = name.strip().replace("_", " ").lower()
    function, colon, _ = key.partition(":")
    if colon and function in _FUNCTIONS:
        return "function", function
    exact, stems = _notes()
    # Not a name, but the text of a broken template; matching it against the stems is slow.
    if len(key) >= 80:
        return "hole", key
    if key in _renderers():
        return "text", key
    if key in exact or stems.fullmatch(key) or (colon and function == "defaultsort"):
        return "note", key
    if re.fullmatch(r"lang-[a-z]{2,3}(-\w+)*", key):
        return "language", key
    return "hole", key


def _function(name: str, text: str) -> str:
    """Text of a parser function."""
    if name == "formatnum":
        return group_digits(text)
    first, remaining = text[:1], text[1:]
    return {
        "lc": text.lower(),
        "uc": text.upper(),
        "lcfirst": first.lower() + remaining,
        "ucfirst": first.upper() + remaining,
    }[name]


def render_template(name: str, content: str) -> str:
    """Text of an inline template; NOTE for a template without text, HOLE for an unknown one.

    Args:
        name: name in the page, such as "Convert" or "formatnum:1234".
        content: text between the braces; inner templates are already rendered.
    """
    kind, key = _kind(name)
    if kind == "hole":
        return HOLE
    if kind == "note":
        return NOTE
    if kind == "function":
        return _function(key, name.partition(":")[2].strip())
    positional, named = arguments(content)
    if kind == "language":
        code = key[5:].split("-")[0]
        return _named_language(code, _pick(positional, named, 0))
    text = _renderers()[key](positional, named)
    # Without its argument the template shows nothing or an error message, so text is missing.
    return text if text or key in _table()["symbol"] else HOLE


def _pick(args: Arguments, named: dict[str, str], index: int) -> str:
    if index < 0:
        return args[-1] if args else named.get("text", "")
    return args[index] if index < len(args) else named.get("text", "")


def _named_language(code: str, text: str) -> str:
    language = _table()["language"].get(code)
    return f"{language}: {text}" if language and text else text or HOLE


def _langx(args: Arguments, named: dict[str, str]) -> str:
    return _named_language(args[0].split("-")[0], args[1]) if len(args) > 1 else ""


def _link(args: Arguments, named: dict[str, str]) -> str:
    # Brackets in the title would make a link that reaches into the text around it.
    if not args or not args[0] or any(c in args[0] for c in "[]{}<>"):
        return args[0] if args else ""
    text = named.get("lt") or named.get("label") or args[0]
    return f"[[{args[0]}|{text}]]"


def _joined(args: Arguments, named: dict[str, str]) -> str:
    return "".join(args)


def group_digits(number: str) -> str:
    """Groups digits: "1234567.5" -> "1,234,567.5"; other text is not changed."""
    match = re.fullmatch(r"([-−]?)(\d+)(\.\d+)?", number)
    return f"{match[1]}{int(match[2]):,}{match[3] or ''}" if match else number


def _fraction(args: Arguments, named: dict[str, str]) -> str:
    if len(args) == 1:
        return f"1/{args[0]}"
    return f"{args[0]} {args[1]}/{args[2]}" if len(args) > 2 else "/".join(args)


def _value(args: Arguments, named: dict[str, str]) -> str:
    unit = named.get("u") or named.get("ul") or ""
    number = group_digits(_pick(args, named, 0)) + (f"±{args[1]}" if len(args) > 1 else "")
    return f"{number} {unit}".strip()


def _coordinates(args: Arguments, named: dict[str, str]) -> str:
    """Coordinates: "48|24|N|9|59|E" -> "48°24′N 9°59′E"; a note if they are above the text."""
    if "inline" not in named.get("display", "inline"):
        return NOTE
    groups: list[list[str]] = [[]]
    for arg in args:
        if _NUMBER.fullmatch(arg):
            groups[-1].append(arg)
        elif arg in ("N", "S", "E", "W"):
            groups[-1].append(arg)
            groups.append([])
        else:
            break
    if len(groups) == 1 and len(groups[0]) == 2:  # decimal degrees
        pairs = zip(groups[0], ("NS", "EW"), strict=True)
        return " ".join(f"{n.lstrip('-−')}°{side[n[0] in '-−']}" for n, side in pairs)
    if len(groups) < 3 or not all(2 <= len(group) <= 4 for group in groups[:2]):
        return ""
    return " ".join(
        "".join(f"{n}{unit}" for n, unit in zip(group[:-1], "°′″", strict=False)) + group[-1]
        for group in groups[:2]
    )


def _as_of(args: Arguments, named: dict[str, str]) -> str:
    words = named.get("alt") or f"As of {_date(args, {'df': 'y', **named})}"
    return words[0].lower() + words[1:] if named.get("lc", "n").startswith("y") else words


def _nihongo(args: Arguments, named: dict[str, str]) -> str:
    details = ", ".join(arg for arg in args[1:3] if arg)
    return f"{args[0]} ({details})" if details and args[0] else "".join(args[:1]) or details


def _date(args: Arguments, named: dict[str, str]) -> str:
    """A date: "2001|9|3" -> "September 3, 2001", with df=y "3 September 2001"."""
    parts = [arg for arg in args if arg and "=" not in arg][:3]
    if not parts or not parts[0].isdigit() or not all(p.isdigit() for p in parts[2:]):
        return " ".join(parts)
    if len(parts) == 1:
        return parts[0]
    month = parts[1]
    if month.isdigit():
        if not 1 <= int(month) <= 12:
            return parts[0]
        month = _MONTHS[int(month) - 1]
    if len(parts) == 2:
        return f"{month} {parts[0]}"
    day_first = named.get("df", "n").startswith("y")
    day = int(parts[2])
    return f"{day} {month} {parts[0]}" if day_first else f"{month} {day}, {parts[0]}"


def _convert(args: Arguments, named: dict[str, str]) -> str:
    """Values with their first unit: "5|to|10|km|mi" -> "5 to 10 kilometres"."""
    text, remaining = "", list(args)
    while remaining and _NUMBER.fullmatch(remaining[0].replace(",", "")):
        text += group_digits(remaining.pop(0).replace(",", "")).replace("-", "−")
        if remaining and remaining[0] in _RANGE_WORDS:
            text += _RANGE_WORDS[remaining.pop(0)]
        elif (
            len(remaining) > 2
            and _NUMBER.fullmatch(remaining[1])
            and remaining[2] in _table()["unit"]
        ):
            text += f" {_unit(text, remaining.pop(0), named)} "
        else:
            break
    if not text or not remaining:
        return ""
    adjective = named.get("adj", "").startswith(("on", "mid"))
    return f"{text}{'-' if adjective else ' '}{_unit(text, remaining[0], named)}"


def _unit(value: str, code: str, named: dict[str, str]) -> str:
    singular, plural, symbol = _table()["unit"].get(code, (code, code, code))
    if named.get("abbr") in ("on", "in"):
        return str(symbol)
    is_singular = value in ("1", "−1") or named.get("adj", "").startswith(("on", "mid"))
    return str(singular if is_singular else plural)
