"""Names and arguments of templates: for rendering, and for DBpedia's mappings."""

from __future__ import annotations

import re

import mwparserfromhell

from ontology.titles import normal_title
from pipeline.dump.site import TEMPLATE, Site
from pipeline.wikitext.inline import decode_references
from pipeline.wikitext.links import INVALID_TITLE
from pipeline.wikitext.preprocess import MARKERS

DESCRIPTION = "short description"
"""The template whose first argument says what the page is; it shows nothing."""

MAX_VALUE_CHARS = 200
"""Longer values are truncated; conditions of mappings only look for words."""

_PARSER_FUNCTIONS = frozenset(
    (
        "lc uc lcfirst ucfirst formatnum ns nse urlencode anchorencode fullurl localurl "
        "canonicalurl plural grammar gender int defaultsort displaytitle padleft padright "
        "filepath msg raw subst safesubst pagename fullpagename namespace numberofarticles "
        "numberofpages protectionlevel language"
    ).split()
)

MAX_PIECE = 2_000
"""Longest piece for mwparserfromhell, in characters. It is quadratic or worse on unbalanced markup,
so longer pieces are split by brackets alone."""

_DELIMITERS = re.compile(r"\[\[|\]\]|\{\{|\}\}|\|")


def template_title(name: str, site: Site) -> str | None:
    """Normal name of a template, without namespace; None for a parser function."""
    prefix, colon, name_part = name.partition(":")
    if colon:
        if site.namespace_numbers.get(prefix.strip().lower()) == TEMPLATE:
            name = name_part
        elif name[0] in "#:" or prefix.strip().lower() in _PARSER_FUNCTIONS:
            return None
    title = normal_title(name)
    return title if title and len(title) < 256 and not INVALID_TITLE.search(title) else None


def arguments(content: str) -> tuple[list[str], dict[str, str]]:
    """Positional and named arguments of a template, by the text between its braces."""
    positional: list[str] = []
    named: dict[str, str] = {}
    for piece in split_arguments(content)[1:]:
        key, equals, value = piece.partition("=")
        if equals and "[" not in key and "<" not in key:
            if (key := key.strip()).isdigit():
                index = int(key) - 1
                if index < 100:  # `|99999999=x` would make a list of that length
                    positional.extend([""] * (index + 1 - len(positional)))
                    positional[index] = value.strip()
            else:
                named[key] = value.strip()
        else:
            positional.append(piece.strip())
    return positional, named


def plain_arguments(content: str) -> tuple[str, ...]:
    """Arguments of a template as "name=value"; values have no markup and at most 200 characters."""
    values = []
    position = 0
    for piece in split_by_brackets(content)[1:]:
        key, equals, value = piece.partition("=")
        if not equals or "[" in key or "{" in key or "<" in key:
            position += 1
            key, value = str(position), piece
        if value := _plain_value(value):
            values.append(f"{key.strip()}={value}")
    return tuple(values)


def _plain_value(value: str) -> str:
    value = value.strip()
    if value.isascii() and not any(c in value for c in "[{<&'"):
        return value[:MAX_VALUE_CHARS]
    # Markup is longer than its text; the rest of a long value cannot matter.
    value = value[: 4 * MAX_VALUE_CHARS]
    value = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]*)\]\]", r"\1", value)
    value = re.sub(rf"<[^<>]*>|'{{2,}}|[{MARKERS}]", " ", value)
    value = re.sub(r"\{\{[^{}|]*\|?|\}\}", " ", value)
    return " ".join(decode_references(value).split())[:MAX_VALUE_CHARS]


def split_arguments(content: str) -> list[str]:
    """Splits the text between the braces of a template into name and arguments.

    A pipe inside a link, an inner template or an attribute of a tag does not separate arguments.

    >>> split_arguments("nowrap|[[Rome|the city]]|x=1")
    ['nowrap', '[[Rome|the city]]', 'x=1']
    """
    if "[[" not in content and "{{" not in content and "<" not in content:
        return content.split("|")
    if len(content) <= MAX_PIECE and "<" in content:
        parsed = mwparserfromhell.parse("{{" + content + "}}", skip_style_tags=True)
        templates = parsed.filter_templates(recursive=False)
        # Otherwise the parser has read the braces differently from us.
        if len(templates) == 1 and len(parsed.nodes) == 1:
            template = templates[0]
            return [str(template.name), *(str(parameter) for parameter in template.params)]
    return split_by_brackets(content)


def split_by_brackets(content: str) -> list[str]:
    """Splits text at the pipes that are outside of links and inner templates."""
    pieces: list[str] = []
    depth = start = 0
    for match in _DELIMITERS.finditer(content):
        delimiter = match[0]
        if delimiter in ("[[", "{{"):
            depth += 1
        elif delimiter != "|":
            depth = max(0, depth - 1)
        elif depth == 0:
            pieces.append(content[start : match.start()])
            start = match.end()
    pieces.append(content[start:])
    return pieces
