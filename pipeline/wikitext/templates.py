"""Renders inline templates with text, by tables; all others are removed.

A template of a wiki means what that wiki says. Those that show English words are known in English
alone: elsewhere the text is missing, and said to be. {{convert}} has its first unit only.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache, partial

from pipeline.wikitext.english import ENGLISH
from pipeline.wikitext.preprocess import HOLE, NOTE
from pipeline.wikitext.template_arguments import arguments
from pipeline.wikitext.template_texts import (
    Arguments,
    Render,
    as_of,
    convert,
    coordinates,
    date,
    fraction,
    group_digits,
    nihongo,
    pick,
    table,
    value,
)
from pipeline.wikitext.wiki_templates import langx, link, named_language, notes_of, wiki_renderers

_DATES = (
    "start date|end date|start date and age|end date and age|birth date|birth date and age|"
    "death date|death date and age|birth-date|death-date|birth date and age2|film date|"
    "release date|launch date|date|dts|dob|dda|bda|start-date|end-date"
).split("|")
_FUNCTIONS = ("formatnum", "lc", "uc", "lcfirst", "ucfirst")


def _positional(index: int, prefix: str = "") -> Render:
    """Renders a template as one of its arguments, after a prefix."""
    return lambda args, named: prefix + pick(args, named, index)


def _constant(text: str) -> Render:
    """Renders a template as a fixed text."""
    return lambda args, named: text


def _first(count: int) -> Render:
    """Renders a template as its first arguments, separated by spaces."""
    return lambda args, named: " ".join(args[:count])


@cache
def _renderers(language: str) -> dict[str, Render]:
    """Template -> function that makes its text from positional and named arguments."""
    common = table("templates")
    renderers: dict[str, Render] = {}
    for place, names in common["argument"].items():
        index = -1 if place == "last" else int(place) - 1
        renderers.update(dict.fromkeys(names, _positional(index)))
    renderers.update({name: _constant(text) for name, text in common["symbol"].items()})
    renderers.update({name: _positional(0, prefix) for name, prefix in common["prefix"].items()})
    page = partial(link, title=["1"], text=["lt", "label", "name"])
    renderers.update(dict.fromkeys(common["link"]["names"], page))
    renderers.update(dict.fromkeys(common["link"]["foreign"], partial(page, has_code=True)))
    renderers.update(
        {
            "frac": fraction,
            "fraction": fraction,
            "sfrac": fraction,
            "val": partial(value, language=language),
            "coord": coordinates,
            "chem": _joined,
            "gaps": _joined,
            "nihongo": nihongo,
            "nihongo2": _positional(0),
            "langx": partial(langx, language=language),
            "llang": partial(langx, language=language),
            "linktext": _joined,
            "formatnum": lambda args, named: group_digits(pick(args, named, 0), language),
            "bibleverse": _first(2),
            "date de naissance": _first(3),
            "date de décès": _first(3),
            "読み仮名": lambda args, named: f"{pick(args, named, 0)}（{pick(args, named, 1)}）",
        }
    )
    if language in ENGLISH:
        renderers.update(dict.fromkeys(_DATES, date))
        renderers.update({"convert": convert, "cvt": convert, "as of": as_of})
    renderers.update(wiki_renderers("en" if language in ENGLISH else language))
    return renderers


@cache
def _notes(language: str) -> tuple[frozenset[str], re.Pattern[str]]:
    names = [*table("templates")["note"]["names"], *notes_of(language)]
    stems = [
        re.escape(name).replace(r"\*", ".*").replace(r"\ ", " ") for name in names if "*" in name
    ]
    exact = frozenset(name for name in names if "*" not in name)
    return exact, re.compile("|".join(stems), re.DOTALL)


@lru_cache(maxsize=65_536)
def _kind(name: str, language: str) -> tuple[str, str]:
    """Kind of a template (text, note, language, function or hole), and its plain name."""
    key = name.strip().replace("_", " ").lower()
    function, colon, _ = key.partition(":")
    if colon and function in _FUNCTIONS:
        return "function", function
    # Not a name, but the text of a broken template; matching it against the stems is slow.
    if len(key) >= 80:
        return "hole", key
    if key in notes_of(language):
        return "note", key
    if key in _renderers(language):
        return "text", key
    exact, stems = _notes(language)
    if key in exact or stems.fullmatch(key) or (colon and function == "defaultsort"):
        return "note", key
    if re.fullmatch(r"lang-[a-z]{2,3}(-\w+)*", key):
        return "language", key
    return "hole", key


def _function(name: str, text: str, language: str) -> str:
    """Text of a parser function."""
    if name == "formatnum":
        return group_digits(text, language)
    first, remaining = text[:1], text[1:]
    return {
        "lc": text.lower(),
        "uc": text.upper(),
        "lcfirst": first.lower() + remaining,
        "ucfirst": first.upper() + remaining,
    }[name]


def render_template(name: str, content: str, language: str = "en") -> str:
    """Text of an inline template; NOTE for a template without text, HOLE for an unknown one.

    Args:
        name: name in the page, such as "Convert" or "formatnum:1234".
        content: text between the braces; inner templates are already rendered.
        language: code of the wiki's language.
    """
    kind, key = _kind(name, language)
    if kind == "hole":
        return HOLE
    if kind == "note":
        return NOTE
    if kind == "function":
        return _function(key, name.partition(":")[2].strip(), language)
    positional, named = arguments(content)
    if kind == "language":
        code = key[5:].split("-")[0]
        return named_language(code, pick(positional, named, 0), language) or HOLE
    text = _renderers(language)[key](positional, named)
    # Without its argument the template shows nothing or an error message, so text is missing.
    return text if text or key in table("templates")["symbol"] else HOLE


def _joined(args: Arguments, named: dict[str, str]) -> str:
    return "".join(args)
