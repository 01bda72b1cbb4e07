"""The texts of single templates: numbers, dates, units, ships, centuries, biographies."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from pipeline.wikitext.preprocess import NOTE

_MONTHS = (
    "January February March April May June July August September October November December"
).split()
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
def table(name: str) -> dict[str, Any]:
    """A table of `data/`: `templates`, of all wikis, or `wikis`, of each one."""
    text = (files("pipeline.wikitext") / "data" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def pick(args: Arguments, named: dict[str, str], index: int) -> str:
    """An argument by its index, -1 for the last one; else `text` or `texte`, or nothing."""
    text = named.get("text") or named.get("texte", "")
    if index < 0:
        return args[-1] if args else text
    return args[index] if index < len(args) else text


@cache
def _marks(language: str) -> tuple[str, bool]:
    """The mark between thousands of a language, and whether four digits are not grouped."""
    digits = table("wikis")["digits"]
    mark = next((mark for mark in (".", "\u00a0") if language in digits[mark].split()), ",")
    return mark, language in digits["from_five"].split()


def group_digits(number: str, language: str = "en") -> str:
    """Groups digits as MediaWiki's formatnum: "1234567.5" -> "1,234,567.5"; else as it is."""
    match = re.fullmatch(r"([-−]?)(\d+)(?:\.(\d+))?", number)
    if match is None:
        return number
    mark, from_five = _marks(language)
    whole = str(int(match[2])) if from_five and len(match[2]) < 5 else f"{int(match[2]):,}"
    decimals = ("." if mark == "," else ",") + match[3] if match[3] else ""
    return match[1] + whole.replace(",", mark) + decimals


def fraction(args: Arguments, named: dict[str, str]) -> str:
    """A fraction: "1|2" -> "1/2", "3|1|2" -> "3 1/2"."""
    if len(args) == 1:
        return f"1/{args[0]}"
    return f"{args[0]} {args[1]}/{args[2]}" if len(args) > 2 else "/".join(args)


def value(args: Arguments, named: dict[str, str], language: str = "en") -> str:
    """A number with its uncertainty and unit: "1500|2|u=kg" -> "1,500±2 kg"."""
    unit = named.get("u") or named.get("ul") or ""
    number = group_digits(pick(args, named, 0), language) + (f"±{args[1]}" if len(args) > 1 else "")
    return f"{number} {unit}".strip()


def coordinates(args: Arguments, named: dict[str, str]) -> str:
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


def as_of(args: Arguments, named: dict[str, str]) -> str:
    """A date in English: "2001|9" -> "As of September 2001"."""
    words = named.get("alt") or f"As of {date(args, {'df': 'y', **named})}"
    return words[0].lower() + words[1:] if named.get("lc", "n").startswith("y") else words


def nihongo(args: Arguments, named: dict[str, str]) -> str:
    """A Japanese term: "Edo|江戸|edo" -> "Edo (江戸, edo)"."""
    details = ", ".join(arg for arg in args[1:3] if arg)
    return f"{args[0]} ({details})" if details and args[0] else "".join(args[:1]) or details


def date(args: Arguments, named: dict[str, str]) -> str:
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


def convert(args: Arguments, named: dict[str, str]) -> str:
    """Values with their first unit: "5|to|10|km|mi" -> "5 to 10 kilometres"."""
    text, remaining = "", list(args)
    while remaining and _NUMBER.fullmatch(remaining[0].replace(",", "")):
        text += group_digits(remaining.pop(0).replace(",", "")).replace("-", "−")
        if remaining and remaining[0] in _RANGE_WORDS:
            text += _RANGE_WORDS[remaining.pop(0)]
        elif (
            len(remaining) > 2
            and _NUMBER.fullmatch(remaining[1])
            and remaining[2] in table("templates")["unit"]
        ):
            text += f" {_unit(text, remaining.pop(0), named)} "
        else:
            break
    if not text or not remaining:
        return ""
    form = named.get("adj", "")
    # Module:Convert of the English Wikipedia: "58.5|m|ft|adj=mid|-tall" -> "58.5-metre-tall".
    after = remaining[-1] if form == "mid" and re.match(r"-[^\W\d]", remaining[-1]) else ""
    hyphen = "-" if form.startswith(("on", "mid")) else " "
    return f"{text}{hyphen}{_unit(text, remaining[0], named)}{after}"


def _unit(value: str, code: str, named: dict[str, str]) -> str:
    singular, plural, symbol = table("templates")["unit"].get(code, (code, code, code))
    if named.get("abbr") in ("on", "in"):
        return str(symbol)
    is_singular = value in ("1", "−1") or named.get("adj", "").startswith(("on", "mid"))
    return str(singular if is_singular else plural)
