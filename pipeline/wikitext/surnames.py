"""The surnames of persons, by their names and the titles of their pages."""

from __future__ import annotations

import re

from pipeline.wikitext.names import SURNAME_PARTICLES

_SHORTEST = 3  # "Li" and "Wu" are words of other languages too often
# "Alexander II of Russia", "Leader of the Labour Party", "William the Conqueror", "Karl der Große":
# the last word is no surname.
_OF = re.compile(r"(?<!van)(?<!von) (?:(?:of|オブ)\b.*|the|der|dem|den|des|le)$")
_GENERATION = re.compile(r",? (?:Jr|Sr)\.?$|,? I{1,3}$|,? I?V$")
"""What follows a surname and is none."""
_PATRONYMIC = re.compile(
    r"\w+(?:ович|евич|євич|ьич|ілліч|овна|евна|ична|івна|ївна|авіч|евіч|овіч|ўна|"
    r"оглы|огли|кызы|қызы|ұлы|улы|уулу)"
)
"""The name after the father, which ends titles such as "Шевченко Тарас Григорович"."""
_DOT = "・"
"""What stands between the names of a person in Japanese: "ジョン・レノン"."""
_GIVEN_NAME_LAST = frozenset(["hu", "is"])
"""Languages with the surname first ("Bartók Béla"), or whose last names are no surnames."""


def surname_of(name: str, title: str, language: str) -> str:
    """The surname in a name of a person; "" for none.

    It is the last word, but the first one of "Шевченко Тарас Григорович" and "Пушкин, Александр
    Сергеевич", as Slavic wikis title their pages. "Alexander II of Russia" has none.

    Args:
        name: a name of the person, or the title.
        title: title of the person's page, without what a bracket adds.
        language: code of the wiki's language.
    """
    if language in _GIVEN_NAME_LAST:
        return ""
    name = _GENERATION.sub("", name.replace(_DOT, " "))
    family, comma, given_names = name.partition(", ")
    if comma and " " in family:  # "Arthur Wellesley, 1st Duke of Wellington"
        name = family
    elif comma:
        return family if given_names.istitle() else ""
    words = title.split(" ")
    has_patronymic = len(words) > 2 and _PATRONYMIC.fullmatch(words[-1]) is not None
    before, _, surname = name.rpartition(" ")
    if has_patronymic and surname == words[-1] and not _PATRONYMIC.fullmatch(words[-2]):
        return words[0] if name == title else ""
    surname = surname.removesuffix("'s").removesuffix("’s")  # a link may hold "Ulysses Grant's"
    return surname if len(surname) >= _SHORTEST and before and not _OF.search(before) else ""


def double_surname(name: str, surname: str) -> str:
    """What may be two surnames at the end of a name: "Vaughan Williams"; "" for none.

    Spanish names mostly end so. Where the second last word is a given name, no text has these two
    words alone.
    """
    words = name.split(" ")
    if len(words) < 3 or words[-1] != surname or len(words[-2]) < _SHORTEST:
        return ""
    return f"{words[-2]} {surname}" if words[-2].isalpha() and words[-2].istitle() else ""


def particle_before(text: str, start: int, title: str) -> int:
    """Length of the particle of a person's surname that stands before it in a text: "de Gaulle".

    Args:
        text: the text.
        start: where the surname begins.
        title: title of the person's page, without what a bracket adds.
    """
    words = title.split(" ")[:-1]
    size = next((n for n, word in enumerate(words[::-1]) if word not in SURNAME_PARTICLES), 0)
    particle = "".join(f"{word} " for word in words[len(words) - size :])
    before = text[max(0, start - len(particle) - 1) : start].lower()
    is_whole = before.endswith(particle) and not before[: -len(particle) or None][-1:].isalnum()
    return len(particle) if particle and is_whole else 0
