"""The templates of a page as facts: their names and arguments, for DBpedia's mappings."""

from __future__ import annotations

import re

from ontology.titles import normal_title
from pipeline.fallback import split_by_brackets
from pipeline.links import INVALID_TITLE
from pipeline.references import decode_references
from pipeline.scanner import MARKERS
from pipeline.site import TEMPLATE, Site

MAX_VALUE_CHARS = 200
"""Longer values are cut: conditions ask for words."""

_PARSER_FUNCTIONS = frozenset(
    (
        "lc uc lcfirst ucfirst formatnum ns nse urlencode anchorencode fullurl localurl "
        "canonicalurl plural grammar gender int defaultsort displaytitle padleft padright "
        "filepath msg raw subst safesubst pagename fullpagename namespace numberofarticles "
        "numberofpages protectionlevel language"
    ).split()
)


def template_title(name: str, site: Site) -> str | None:
    """Normal name of a template, without namespace; None for a parser function."""
    prefix, colon, rest = name.partition(":")
    if colon:
        if site.namespace_numbers.get(prefix.strip().lower()) == TEMPLATE:
            name = rest
        elif name[0] in "#:" or prefix.strip().lower() in _PARSER_FUNCTIONS:
            return None
    title = normal_title(name)
    return title if title and len(title) < 256 and not INVALID_TITLE.search(title) else None


def plain_arguments(content: str) -> tuple[str, ...]:
    """Arguments of a template as "name=value", values without markup and cut to 200 characters."""
    found = []
    position = 0
    for piece in split_by_brackets(content)[1:]:
        key, equals, value = piece.partition("=")
        if not equals or "[" in key or "{" in key or "<" in key:
            position += 1
            key, value = str(position), piece
        if value := _plain_value(value):
            found.append(f"{key.strip()}={value}")
    return tuple(found)


def _plain_value(value: str) -> str:
    value = value.strip()
    if value.isascii() and not any(c in value for c in "[{<&'"):
        return value[:MAX_VALUE_CHARS]
    value = value[: 4 * MAX_VALUE_CHARS]
    value = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]*)\]\]", r"\1", value)
    value = re.sub(rf"<[^<>]*>|'{{2,}}|[{MARKERS}]", " ", value)
    value = re.sub(r"\{\{[^{}|]*\|?|\}\}", " ", value)
    return " ".join(decode_references(value).split())[:MAX_VALUE_CHARS]
