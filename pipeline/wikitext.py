"""Wikitext -> the text a reader sees, with its anchors at character offsets.

The steps are MediaWiki's, in its order, each one linear pass over the page: preprocessor
(`pipeline.scanner`), links, quotes, external links, tags, lines, character references. Links travel
through the later passes between markers (`scanner.MARKERS`) and become anchors at the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from pipeline import scanner
from pipeline.boxes import plain_arguments, template_title
from pipeline.languages import language
from pipeline.links import LinkPass
from pipeline.prose import ANY_MARKER, Anchor, Prose, paragraphs
from pipeline.quotes import strip_quotes
from pipeline.scanner import MARKERS, NOTE
from pipeline.site import ENGLISH, Site
from pipeline.templates import render_template

__all__ = ["Anchor", "Rendered", "Template", "render"]

_MAX_ARGUMENTS_CHARS = 50_000
_MAX_CACHED_NAMES = 100_000

_EXTERNAL = re.compile(
    r"\[(?=[A-Za-z/])(?i:(?:https?|ftps?|ircs?|gopher|telnet|nntp|worldwind|svn|git|mms|ssh|sftp|redis|xmpp)://|//"
    r"|mailto:|news:|sips?:|sms:|tel:|geo:|magnet:|urn:|bitcoin:)"
    rf"[^\s\]\[<>\"{MARKERS}]+[ \t]*([^\]\n]{{0,1000}}?)\]"
)
_DOUBLE_UNDERSCORE = re.compile(r"__[^\W\d_]+(?:_[^\W\d_]+)*__")
_LINE_BREAK = re.compile(r"</?br\b[^<>]*>", re.IGNORECASE)
_BLOCK_TAG = re.compile(
    r"</?(?:p|div|center|blockquote|table|tr|td|th|tbody|thead|caption|ul|ol|dl|li|dt|dd|hr|h[1-6]"
    r"|section|aside|figure|figcaption)\b[^<>]*>",
    re.IGNORECASE,
)
_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|img|ins|kbd|link|mark|meta|noinclude"
    r"|onlyinclude|q|rb|rp|rt|rtc|ruby|s|samp|small|span|strike|strong|sub|sup|time|tt|u|var|wbr"
    r"|ref|references|math|nowiki|gallery|includeonly|poem)\b[^<>]*>",
    re.IGNORECASE,
)
_VARIANT_RULE = re.compile(r"-\{([^{}]*)\}-")


class Template(NamedTuple):
    """A template of the page; `arguments` are "name=value", kept where it opens a line."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a reader sees of a page, and what the page says of itself.

    Attributes:
        text: paragraphs, one a line.
        anchors: in order, not overlapping; offsets count characters of `text`.
        holes: offsets in `text` where running text is missing.
        templates: in the order in which they open.
        categories: normal titles of the wiki categories, without namespace.
    """

    text: str
    anchors: tuple[Anchor, ...]
    holes: tuple[int, ...] = ()
    templates: tuple[Template, ...] = ()
    categories: tuple[str, ...] = ()


def render(wikitext: str, site: Site = ENGLISH, *, list_items: bool = False) -> Rendered:
    """The prose of a page as MediaWiki renders it: no headings, tables, captions or footnotes.

    Args:
        wikitext: of the whole page.
        site: the wiki, for its namespaces and its language's link trail.
        list_items: keep the items of lists, each as a paragraph of its own.

    Unbalanced markup is kept as text, as MediaWiki does; it never takes the rest of the page along.
    """
    return _Renderer(site, list_items).render(wikitext)


@lru_cache(maxsize=8)
def _template_titles(site: Site) -> dict[str, str | None]:
    """Cache of template titles by the name as written, shared by all pages of a site."""
    return {}


class _Renderer:
    """Renders one page; what the passes find is gathered here."""

    def __init__(self, site: Site, list_items: bool) -> None:
        self._site = site
        self._list_items = list_items
        self._facts = language(site.language)
        self._links = LinkPass(site)
        self._titles = _template_titles(site)
        self._templates: list[tuple[int, Template]] = []
        self._source = ""

    def render(self, wikitext: str) -> Rendered:
        text = wikitext.replace("\r\n", "\n").replace("\x00", "")
        if any(marker in text for marker in MARKERS):
            text = ANY_MARKER.sub("", text)
        self._source = scanner.strip_tags(text) if "<" in text else text
        text = self._source
        if "{{" in text:
            text = scanner.expand_braces(text, self._template)
        text = scanner.drop_tables(text, self._list_items)
        if "-{" in text and self._facts.variants:
            text = _VARIANT_RULE.sub(self._variant, text)
        text = self._links.apply(text)
        text = strip_quotes(text)
        if "[" in text:
            text = _EXTERNAL.sub(r"\1", text)
        if "__" in text:
            text = _DOUBLE_UNDERSCORE.sub("", text)
        if "<" in text:
            text = _LINE_BREAK.sub("\n\n", text)
            text = _BLOCK_TAG.sub("\n\n", text)
            text = _INLINE_TAG.sub("", text)
        return self._assemble(paragraphs(text, self._list_items))

    def _template(self, content: str, start: int, end: int, depth: int) -> str:
        name = content.partition("|")[0].strip()
        text = render_template(name, content)
        title = self._titles[name] if name in self._titles else self._title(name)
        if title is not None:
            self._templates.append((start, Template(title, self._arguments(start, end, text))))
        return text

    def _title(self, name: str) -> str | None:
        title = template_title(name, self._site)
        if len(self._titles) < _MAX_CACHED_NAMES:
            self._titles[name] = title
        return title

    def _arguments(self, start: int, end: int, text: str) -> tuple[str, ...]:
        """Arguments of a template that opens a line and is no note."""
        if text == NOTE or (start and self._source[start - 1] not in "\n :*|="):
            return ()
        before = self._source[max(0, start - 80) : start].rpartition("\n")[2]
        if end - start > _MAX_ARGUMENTS_CHARS or before.strip(" :*|="):
            return ()
        return plain_arguments(self._source[start + 2 : end - 2])

    def _variant(self, match: re.Match[str]) -> str:
        """Text of a language-converter rule `-{...}-` in the variant listed first."""
        flags, _, rule = match[1].rpartition("|")
        codes = {flag.strip() for flag in flags.split(";")}
        if codes & {"H", "T", "-", "N", "D"}:
            return ""
        pairs = [part.partition(":") for part in rule.split(";")]
        texts = {code.strip(): text for code, colon, text in pairs if colon}
        if not texts.keys() & set(self._facts.variants):
            return rule
        return next(texts[code] for code in self._facts.variants if code in texts).strip()

    def _assemble(self, found: list[str]) -> Rendered:
        output = Prose(self._links.targets)
        for paragraph in found:
            output.add(paragraph)
        templates = sorted(self._templates, key=lambda item: item[0])
        return Rendered(
            text="".join(output.pieces), anchors=tuple(output.anchors), holes=tuple(output.holes),
            templates=tuple(template for _, template in templates),
            categories=tuple(self._links.categories),
        )  # fmt: skip
