"""Facts about the languages of Wikipedia: link trails, namespace names, redirect words, models."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

DEFAULT_LINK_TRAIL = "a-z"
"""MediaWiki's link trail for a language without one of its own (MessagesEn.php)."""


@dataclass(frozen=True)
class Language:
    """One language's row of `data/languages.toml`; the file's head says what each field holds."""

    code: str
    link_trail: str = DEFAULT_LINK_TRAIL
    file: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    template: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    redirect: tuple[str, ...] = ()
    disambiguation: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    punkt: str | None = None


@cache
def _rows() -> dict[str, dict[str, str | list[str]]]:
    text = (files("pipeline") / "data" / "languages.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def language(code: str) -> Language:
    """The facts of language `code` (such as "en"); MediaWiki's defaults where none are known."""
    row = _rows().get(code, {})
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Language(code=code, **fields)  # type: ignore[arg-type]


@cache
def interwiki_prefixes() -> dict[str, str]:
    """Lower-case prefixes that lead out of a Wikipedia -> "languages" or "projects"."""
    text = (files("pipeline") / "data" / "interwiki.toml").read_text(encoding="utf-8")
    groups = tomllib.loads(text)
    return {prefix: group for group, words in groups.items() for prefix in words.split()}
