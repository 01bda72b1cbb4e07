"""An independent reading of wikitext: a walk over mwparserfromhell's tree, for comparison."""

from __future__ import annotations

import re
from collections import Counter

import mwparserfromhell
from mwparserfromhell import nodes

from pipeline.dump.site import Site, language
from pipeline.wikitext.inline import decode_references

SKIPPED_TAGS = {
    "ref",
    "references",
    "table",
    "gallery",
    "math",
    "timeline",
    "imagemap",
    "pre",
    "source",
    "syntaxhighlight",
    "score",
    "hiero",
    "includeonly",
    "chem",
    "nowiki",
}


def anchors(wikitext: str, site: Site) -> Counter[tuple[str, str]]:
    """(anchor text, target) of every link outside templates, tables, headings and captions."""
    found: Counter[tuple[str, str]] = Counter()
    _walk(mwparserfromhell.parse(wikitext, skip_style_tags=True), site, found)
    return found


def _walk(code, site: Site, found: Counter[tuple[str, str]]) -> None:
    children = code.nodes
    for index, node in enumerate(children):
        if isinstance(node, nodes.Wikilink):
            following = children[index + 1] if index + 1 < len(children) else None
            _link(node, following, site, found)
        elif isinstance(node, nodes.Tag):
            if str(node.tag).strip().lower() not in SKIPPED_TAGS and node.contents is not None:
                _walk(node.contents, site, found)
        elif isinstance(node, nodes.ExternalLink) and node.title is not None:
            _walk(node.title, site, found)


def _link(node, following, site: Site, found: Counter[tuple[str, str]]) -> None:
    raw = decode_references(str(node.title)).strip()
    namespace, _ = site.split(raw.removeprefix(":"))
    if (namespace in (6, 14) and not raw.startswith(":")) or namespace < 0:
        return
    name = raw.removeprefix(":").partition("#")[0].strip()
    prefix, colon, _ = name.partition(":")
    if not name or "{{" in raw or (colon and site.interwiki(prefix.lower())):
        return
    text = _plain(node.text) if node.text is not None else str(node.title).strip().removeprefix(":")
    if isinstance(following, nodes.Text):
        trail = language(site.language).link_trail
        match = re.match(f"[{trail}]+", str(following)) if trail else None
        text += match[0] if match else ""
    if node.text is not None:
        text = re.sub("'{2,}", "", text)
    text = " ".join(decode_references(text).replace("\xa0", " ").split())
    if text:
        found[text, site.title(name)] += 1


def _plain(code) -> str:
    text = []
    for node in code.nodes:
        if isinstance(node, nodes.Text):
            text.append(str(node))
        elif isinstance(node, nodes.HTMLEntity):
            text.append(decode_references(str(node)))
        elif isinstance(node, nodes.Tag) and str(node.tag) not in SKIPPED_TAGS:
            if str(node.tag) == "br":
                text.append(" ")
            elif node.contents is not None:
                text.append(_plain(node.contents))
    return "".join(text)
