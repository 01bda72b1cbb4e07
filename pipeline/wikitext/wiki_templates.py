"""Renders the inline templates of single wikis, by `data/wikis.toml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pipeline.wikitext.english import ENGLISH
from pipeline.wikitext.template_texts import Arguments, Render, group_digits, pick, table

_CODE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


def wiki_renderers(language: str) -> dict[str, Render]:
    """Template of a wiki -> function that makes its text."""
    wiki = table("wikis").get(language, {})
    renderers: dict[str, Render] = {}
    for section, maker in _MAKERS.items():
        if section in wiki:
            renderers.update(maker(wiki[section], language))
    return renderers


def notes_of(language: str) -> list[str]:
    """Templates of a wiki that show nothing in running text; "*" stands for any ending."""
    names: list[str] = table("wikis").get(language, {}).get("note", [])
    return names


def named_language(code: str, text: str, language: str) -> str:
    """Text of {{lang-xx|text}}, with the name of the language as that wiki shows it.

    Empty where no table says what the wiki shows: English words would be wrong there.
    """
    if language in ENGLISH:
        names = {"form": "{name}: {text}", **table("templates")["language"]}
    else:
        names = table("wikis").get(language, {}).get("language", {})
    if not text or not names:
        return ""
    name = names.get(code)
    return str(names["form"].format(name=name, text=text)) if name else text


def langx(args: Arguments, named: dict[str, str], language: str) -> str:
    """Text of {{langx|xx|text}}; see `named_language`."""
    if len(args) < 2:
        return ""
    return named_language(args[0].split("-")[0], args[1], language)


def link(
    args: Arguments,
    named: dict[str, str],
    title: Sequence[str],
    text: Sequence[str],
    has_code: bool = False,
) -> str:
    """A link to a page that may not exist here, with the text that is shown.

    Args:
        args: positional arguments.
        named: named arguments.
        title: numbers or names of the argument that is the title, the first that is there.
        text: the same of the text that is shown; without it the title is shown.
        has_code: whether a code of a language may stand in front; it is never the title.
    """
    if has_code and len(args) > 1 and _CODE.fullmatch(args[0]):
        args = args[1:]
    name, label = _argument(args, named, title), _argument(args, named, text)
    # Brackets in the title would make a link that reaches into the text around it.
    if not name or any(c in name for c in "[]{}<>"):
        return label or name
    return f"[[{name}|{label or name}]]"


def _argument(args: Arguments, named: Mapping[str, str], keys: Sequence[str]) -> str:
    for key in keys:
        value = args[int(key) - 1 : int(key)] if key.isdigit() else [named.get(key, "")]
        if value and value[0]:
            return value[0]
    return ""


def ship(prefix: str, args: Arguments, named: dict[str, str]) -> str:
    """A ship: "Enterprise|CVN-65" -> a link with the text "USS Enterprise (CVN-65)".

    Source: Template:Ship of the English Wikipedia; its third argument says what is shown.
    """
    if not args or not args[0]:
        return ""
    name, number, form = (*args[:3], "", "")[:3]
    title = f"{prefix} {name}".strip()
    full = f"{title} ({number})" if number else title
    shown = {"1": number, "2": name, "3": full.removeprefix(prefix).strip(), "6": title}
    return f"[[{full}|{shown.get(form) or full}]]"


def _any_ship(args: Arguments, named: dict[str, str]) -> str:
    return ship(args[0], args[1:], named) if len(args) > 1 else ""


def _range(prefix: str, args: Arguments, named: dict[str, str]) -> str:
    """Years: "1200|1230" -> "r. 1200–1230", and of circa "c. 1200 – c. 1230"."""
    years = [arg for arg in args[:2] if arg]
    between = f" – {prefix}" if prefix == "c. " else "–"
    return prefix + between.join(years) if years else ""


def _century(word: str, args: Arguments, named: dict[str, str]) -> str:
    """A century in French: "XIX|e" -> "XIXe siècle"."""
    if not args or not args[0]:
        return ""
    ending = args[1] if len(args) > 1 and args[1] else "er" if args[0] == "I" else "e"
    return " ".join(filter(None, [f"{args[0]}{ending} {word}", *args[2:3]]))


def _hours(args: Arguments, named: dict[str, str]) -> str:
    """A time in French: "18|30" -> "18 h 30"."""
    return " h ".join(args[:2]) if len(args) > 1 else f"{args[0]} h" if args else ""


def _joined(args: Arguments, named: dict[str, str], language: str) -> str:
    return " ".join(
        group_digits(arg, language) if _NUMBER.fullmatch(arg) and len(arg) > 4 else arg
        for arg in args
        if arg and "=" not in arg
    )


def _date(form: str, months: Sequence[str], args: Arguments, named: dict[str, str]) -> str:
    """A date by day, month and year: "29|1|1860" -> "29 січня 1860"."""
    if len(args) < 3 or not all(map(str.isdigit, args[:3])) or not 1 <= int(args[1]) <= 12:
        return " ".join(args[:3])
    return form.format(day=int(args[0]), month=months[int(args[1]) - 1], year=int(args[2]))


def biography(args: Arguments, named: dict[str, str]) -> str:
    """The first sentence of a biography, such as "Anna Verdi (Pisa, 1901) è una poetessa".

    Source: Template:Bio of the Italian Wikipedia.
    """
    name = " ".join(filter(None, (named.get(key) for key in ("Nome", "Cognome", "PostCognome"))))
    if not name:
        return ""
    born = _place_and_date(named, "Nascita")
    died = _place_and_date(named, "Morte")
    life = f" ({' – '.join(filter(None, [born, died]))})" if born or died else ""
    is_female = named.get("Sesso", "").upper().startswith("F")
    verb = f"è stat{'a' if is_female else 'o'}" if died else "è"
    if end := named.get("FineIncipit"):
        return f"'''{name}'''{life} {end}"
    work = [named[key] for key in ("Attività", "Attività2", "Attività3") if named.get(key)]
    if not work:
        return f"'''{name}'''{life}."
    listed = " e ".join(filter(None, [", ".join(work[:-1]), work[-1]]))
    parts = [f"{_article(work[0], is_female)}{listed}", named.get("Nazionalità", "")]
    after = named.get("PostNazionalità", "")
    return f"'''{name}'''{life} {verb} {' '.join(filter(None, parts))}{after.rstrip('.')}."


def _place_and_date(named: Mapping[str, str], what: str) -> str:
    place, day, year = (named.get(f"{key}{what}", "") for key in ("Luogo", "GiornoMese", "Anno"))
    if place:
        place = f"[[{named.get(f'Luogo{what}Link') or place}|{place}]]"
    return ", ".join(filter(None, [place, " ".join(filter(None, [day, year]))]))


def _article(word: str, is_female: bool) -> str:
    if is_female:
        return "un'" if word[:1].lower() in "aeiouàèéìòù" else "una "
    first = word.lower()
    has_o = re.match(r"z|x|y|gn|ps|pn|s[^aeiouàèéìòù]", first)
    return "uno " if has_o else "un "


def _each(names: Sequence[str], render: Render) -> dict[str, Render]:
    return dict.fromkeys(names, render)


def _by_name(texts: Mapping[str, str], maker: Callable[[str], Render]) -> dict[str, Render]:
    return {name: maker(text) for name, text in texts.items()}


def _arguments(places: Mapping[str, Sequence[str]]) -> dict[str, Render]:
    return {
        name: partial(pick, index=int(place) - 1)
        for place, names in places.items()
        for name in names
    }


def _quoted(facts: Mapping[str, Any]) -> dict[str, Render]:
    begin, end = facts["marks"]
    return _each(
        facts["names"], lambda a, n: f"{begin}{pick(a, n, 0)}{end}" if pick(a, n, 0) else ""
    )


def _links(facts: Mapping[str, Any]) -> dict[str, Render]:
    render = partial(link, title=facts["title"], text=facts["text"], has_code=True)
    return _each(facts["names"], render)


def _foreign(facts: Mapping[str, Any]) -> dict[str, Render]:
    """Links whose first arguments are a language and the title there."""
    title, text = ([f"{int(key) - 1}" for key in facts[name]] for name in ("title", "text"))
    return _each(facts["names"], partial(link, title=title, text=text, has_code=True))


_MAKERS: dict[str, Callable[[Any, str], dict[str, Render]]] = {
    "argument": lambda places, _: _arguments(places),
    "space": lambda names, _: _each(names, lambda a, n: pick(a, n, 0) or "\u00a0"),
    "join": lambda rows, code: _each(rows["all"], partial(_joined, language=code)),
    "symbol": lambda texts, _: _by_name(texts, lambda text: lambda args, named: text),
    "prefix": lambda texts, _: _by_name(
        texts, lambda text: lambda a, n: f"{text}{pick(a, n, 0)}" if pick(a, n, 0) else ""
    ),
    "suffix": lambda texts, _: _by_name(texts, lambda text: lambda a, n: f"{pick(a, n, 0)}{text}"),
    "range": lambda texts, _: _by_name(texts, lambda text: partial(_range, text)),
    "ship": lambda names, _: {
        **{name: partial(ship, name.upper()) for name in names.split()},
        "ship": _any_ship,
    },
    "quote": lambda facts, _: _quoted(facts),
    "dashes": lambda names, _: _each(names, lambda a, n: f"– {pick(a, n, 0)} –"),
    "hours": lambda names, _: _each(names, _hours),
    "century": lambda facts, _: _each(facts["names"], partial(_century, facts["word"])),
    "bare": lambda names, _: _each(
        names, lambda a, n: link([*a[:1], re.sub(r" \(.*", "", pick(a, n, 0))], {}, ["1"], ["2"])
    ),
    "link": lambda facts, _: _links(facts),
    "foreign": lambda facts, _: _foreign(facts),
    "number": lambda names, code: _each(names, lambda a, n: group_digits(pick(a, n, 0), code)),
    "date": lambda facts, _: _each(
        facts["names"], partial(_date, facts["form"], facts["months"].split())
    ),
    "langx": lambda names, code: _each(names, lambda a, n: langx(a, n, code)),
    "biography": lambda names, _: _each(names, biography),
}
"""Section of `data/wikis.toml` -> the renderers of its templates."""
