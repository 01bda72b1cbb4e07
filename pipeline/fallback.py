"""Odd pieces of wikitext that the fast expressions do not decide, given to mwparserfromhell.

It is slow, and quadratic or worse on unbalanced markup, so it only ever sees short pieces.
"""

from __future__ import annotations

import re

import mwparserfromhell

MAX_PIECE = 2_000
"""Longer pieces (characters) are split by brackets alone."""

_DELIMITERS = re.compile(r"\[\[|\]\]|\{\{|\}\}|\|")


def split_arguments(content: str) -> list[str]:
    """Name and arguments of a template, from what stands between its braces.

    A pipe inside a link, an inner template or a tag's attribute does not separate arguments.

    >>> split_arguments("nowrap|[[Rome|the city]]|x=1")
    ['nowrap', '[[Rome|the city]]', 'x=1']
    """
    if "[[" not in content and "{{" not in content and "<" not in content:
        return content.split("|")
    if len(content) <= MAX_PIECE and "<" in content:
        parsed = mwparserfromhell.parse("{{" + content + "}}", skip_style_tags=True)
        templates = parsed.filter_templates(recursive=False)
        if len(templates) == 1 and len(parsed.nodes) == 1:
            template = templates[0]
            return [str(template.name), *(str(parameter) for parameter in template.params)]
    return split_by_brackets(content)


def split_by_brackets(content: str) -> list[str]:
    """Pieces of `content` between pipes that stand outside links and inner templates."""
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
