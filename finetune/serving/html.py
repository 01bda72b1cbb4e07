"""Texts with coloured entities, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from html import escape

from finetune.entities import Entity

STYLE = """
body { font: 16px/1.7 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem;
  color: #1f2933; background: #fff; }
mark { padding: .1em .25em; border-radius: .25em; color: inherit; }
mark small { font-size: .7em; font-weight: 600; margin-left: .35em; white-space: nowrap; }
p.text { white-space: pre-wrap; overflow-wrap: anywhere; }
"""
"""Style sheet of the page, and of the demo."""


def color(entity_type: str) -> str:
    """Background colour of a type, which depends only on its name; light enough for dark text."""
    hue = int.from_bytes(blake2b(entity_type.encode(), digest_size=2).digest()) % 360
    return f"hsl({hue} 75% 85%)"


def marked(text: str, entities: Sequence[Entity]) -> str:
    """The text as HTML: each entity is a `<mark>` with its type, and its score as a tooltip.

    Args:
        text: plain text.
        entities: entities in order, not overlapping.
    """
    parts, end = [], 0
    for entity in entities:
        parts.append(escape(text[end : entity.start]))
        name = escape(entity.type)
        parts.append(
            f'<mark style="background:{color(entity.type)}" title="{name} {entity.score:.2f}">'
            f"{escape(text[entity.start : entity.end])}<small>{name}</small></mark>"
        )
        end = entity.end
    return "".join([*parts, escape(text[end:])])


def page_start(title: str) -> str:
    """The start of a page, before its texts."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
    )


def paragraph(text: str, entities: Sequence[Entity]) -> str:
    """A text of a page."""
    return f'<p class="text">{marked(text, entities)}</p>'


PAGE_END = "</body></html>"
