"""Titles in the other script of a language: links are written in both, a page has only one.

MediaWiki looks for a page under the converted title if there is none under the title itself.
Source: MediaWiki, LanguageConverter::findVariantLink. Its tables for Chinese are those of OpenCC in
the main; Serbian is converted letter by letter.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

Convert = Callable[[str], list[str]]
"""Title -> its other forms, without the title itself."""

_CYRILLIC = "АБВГДЂЕЖЗИЈКЛМНОПРСТЋУФХЦЧШабвгдђежзијклмнопрстћуфхцчш"
_LATIN = "ABVGDĐEŽZIJKLMNOPRSTĆUFHCČŠabvgdđežzijklmnoprstćufhcčš"
_DIGRAPHS = {"Љ": "Lj", "Њ": "Nj", "Џ": "Dž", "љ": "lj", "њ": "nj", "џ": "dž"}
_TO_LATIN = str.maketrans(dict(zip(_CYRILLIC, _LATIN, strict=True)) | _DIGRAPHS)
_TO_CYRILLIC = str.maketrans(dict(zip(_LATIN, _CYRILLIC, strict=True)))

EXTRAS = {"zh": "zh"}
"""Language -> extra that its conversion needs."""


def converter(language: str) -> Convert | None:
    """Converts titles of a language to its other script; None if it has one script.

    Raises:
        ImportError: the extra of the language is not installed.
    """
    if language == "sr":
        return _serbian
    return _chinese() if language == "zh" else None


def _serbian(title: str) -> list[str]:
    latin = title.translate(_TO_LATIN)
    if latin != title:
        return [latin]
    for cyrillic, pair in _DIGRAPHS.items():
        title = title.replace(pair, cyrillic)
    cyrillic = title.translate(_TO_CYRILLIC)
    return [cyrillic] if cyrillic != latin else []


@cache
def _chinese() -> Convert:
    from opencc import OpenCC  # of the extra `zh`

    tables = [OpenCC(name) for name in ("t2s", "s2t")]

    def convert(title: str) -> list[str]:
        if title.isascii():
            return []
        forms = dict.fromkeys(table.convert(title) for table in tables)
        return [form for form in forms if form != title]

    return convert
