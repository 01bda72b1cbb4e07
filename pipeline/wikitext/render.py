"""Renders wikitext as the text that a reader sees, with anchors at character offsets.

The steps are those of MediaWiki, in its order: preprocessor, links, quotes, external links, tags,
lines, character references. Each one is a linear pass over the page. Links are put between markers
(`preprocess.MARKERS`) and become anchors in the last step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from pipeline.dump.site import ENGLISH, Site, language
from pipeline.wikitext import preprocess
from pipeline.wikitext.inline import strip_quotes
from pipeline.wikitext.links import LinkPass
from pipeline.wikitext.paragraphs import ANY_MARKER, Anchor, Prose, paragraphs
from pipeline.wikitext.preprocess import MARKERS, NOTE
from pipeline.wikitext.template_arguments import DESCRIPTION, plain_arguments, template_title
from pipeline.wikitext.templates import render_template

__all__ = ["Anchor", "Rendered", "Template", "render"]

_MAX_ARGUMENTS_CHARS = 50_000
_MAX_CACHED_NAMES = 100_000

# MediaWiki, $wgUrlProtocols. The text is bounded: a page may have many "[" without "]".
_EXTERNAL = re.compile(
    r"\[(?=[A-Za-z/])(?i:(?:https?|ftps?|ircs?|gopher|telnet|nntp|worldwind|svn|git|mms|ssh|sftp|redis|xmpp)://|//"
    r"|mailto:|news:|sips?:|sms:|tel:|geo:|magnet:|urn:|bitcoin:)"
    rf"[^\s\]\[<>\"{MARKERS}]+[ \t]*([^\]\n]{{0,1000}}?)\]"
)
_SWITCHES = (
    "NOTOC|FORCETOC|TOC|NOEDITSECTION|NEWSECTIONLINK|NONEWSECTIONLINK|NOGALLERY|HIDDENCAT|NOTC|NOCC|"
    "EXPECTUNUSEDCATEGORY|EXPECTUNUSEDTEMPLATE|EXPECTWITHOUTSCANS|NOCONTENTCONVERT|NOTITLECONVERT|"
    "NOINDEX|INDEX|STATICREDIRECT|DISAMBIG|NOGLOBAL|ARCHIVEDTALK|NOTALK|"
    "KEIN_INHALTSVERZEICHNIS|KEININHALTSVERZEICHNIS|INHALTSVERZEICHNIS_ERZWINGEN|INHALTSVERZEICHNIS|"
    "AUCUNSOMMAIRE|AUCUNETDM|FORCERSOMMAIRE|FORCERTDM|SOMMAIRE|TDM|SECTIONNONEDITABLE|AUCUNEGALERIE|"
    "NOTDC|NO_TDC|FORZARTDC|FORZAR_TDC|TDC|NOEDITARSECCION|SEMTDC|FORCATDC|NOINDICE|FORZAINDICE|INDICE|"
    "GEENINHOUD|INHOUD_DWINGEN|FORCEERINHOUD|INHOUD|BEZSPISU|ZESPISEM|SPIS|INGENINNEHÅLLSFÖRTECKNING|"
    "INNEHÅLLSFÖRTECKNING|KHÔNGMỤCMỤC|KHÔNGMỤCLỤC|MỤCLỤC|SISUKORDA|NINCSTARTALOMJEGYZÉK|NINCSTJ|TARTALOMJEGYZÉK"
)
_DOUBLE_UNDERSCORE = re.compile(
    rf"__(?:{_SWITCHES}|[^\x00-\x7f_]+(?:_[^\x00-\x7f_]+)*)__", re.IGNORECASE
)
"""Known switches, and any word of another script, which is no name in a program.

Source: MediaWiki, MagicWordFactory::getDoubleUnderscoreArray, and their names in
languages/messages/Messages*.php.
"""
_READING = re.compile(r"<(r[tp])\b[^<>]*>[^<]*</\1\s*>", re.IGNORECASE)
"""What stands above a word in <ruby>, and the brackets of those who do not show it there."""
_LINE_BREAK = re.compile(r"</?br\b[^<>]*>", re.IGNORECASE)
# MediaWiki, BlockLevelPass: these end a paragraph.
_BLOCK_TAG = re.compile(
    r"</?(?:p|div|center|blockquote|table|tr|td|th|tbody|thead|caption|ul|ol|dl|li|dt|dd|hr|h[1-6]"
    r"|section|aside|figure|figcaption)\b[^<>]*>",
    re.IGNORECASE,
)
# MediaWiki, Sanitizer::getRecognizedTagData, and what extension tags may leave behind.
_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|img|ins|kbd|link|mark|meta|noinclude"
    r"|onlyinclude|q|rb|rp|rt|rtc|ruby|s|samp|small|span|strike|strong|sub|sup|time|tt|u|var|wbr"
    r"|ref|references|math|nowiki|gallery|includeonly|poem)\b[^<>]*>",
    re.IGNORECASE,
)
# "-{zh-hans:计算机;zh-hant:電腦}-", with flags before a bar: MediaWiki, LanguageConverter.
_VARIANT_RULE = re.compile(r"-\{([^{}]*)\}-")
_VARIANT_FLAGS = re.compile(r"(?:([^\[|]*)\|)?(.*)", re.DOTALL)
_VARIANT_END = re.compile(r";(?=\s*(?:[a-z]{2,3}(?:-[a-z]+)*\s*:|$))")


class Template(NamedTuple):
    """A template of the page. `arguments` are "name=value", if the template begins a line."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered page.

    Attributes:
        text: paragraphs, one per line.
        anchors: links in order, not overlapping; offsets count characters of `text`.
        holes: offsets in `text` where running text is missing.
        templates: templates in the order of their first characters.
        categories: normal titles of the wiki categories, without namespace.
    """

    text: str
    anchors: tuple[Anchor, ...]
    holes: tuple[int, ...] = ()
    templates: tuple[Template, ...] = ()
    categories: tuple[str, ...] = ()


def render(wikitext: str, site: Site = ENGLISH, *, list_items: bool = False) -> Rendered:
    """The running text of a page as MediaWiki renders it: no headings, tables, captions or notes.

    Unbalanced markup is kept as text, as in MediaWiki; the rest of the page is rendered normally.

    Args:
        wikitext: text of the whole page.
        site: the wiki, for its namespaces and the link trail of its language.
        list_items: whether items of lists are kept, each as a paragraph.
    """
    return _Renderer(site, list_items).render(wikitext)


@lru_cache(maxsize=8)
def _template_titles(site: Site) -> dict[str, str | None]:
    """A cache of template titles by their names in pages, for all pages of a site."""
    return {}


class _Renderer:
    """Renders one page, and collects what the passes find."""

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
        # Our markers are noncharacters of Unicode; a page that has some must not forge links.
        if any(marker in text for marker in MARKERS):
            text = ANY_MARKER.sub("", text)
        self._source = preprocess.strip_tags(text) if "<" in text else text
        text = self._source
        if "{{" in text:
            text = preprocess.expand_braces(text, self._template)
        # After the templates, which may open a table that the page closes.
        text = preprocess.drop_tables(text, self._list_items)
        if "-{" in text and self._facts.variants:
            text = _VARIANT_RULE.sub(self._variant, text)
        # Links before quotes: apostrophes inside of a link are balanced within it.
        text = self._links.apply(text)
        text = strip_quotes(text)
        if "[" in text:
            text = _EXTERNAL.sub(r"\1", text)
        if "__" in text:
            text = _DOUBLE_UNDERSCORE.sub("", text)
        # Tags come last: until here they keep apart what they separate.
        if "<" in text:
            text = _LINE_BREAK.sub("\n\n", text)
            text = _BLOCK_TAG.sub("\n\n", text)
            text = _INLINE_TAG.sub("", _READING.sub("", text))
        return self._assemble(paragraphs(text, self._list_items))

    def _template(self, content: str, start: int, end: int) -> str:
        name = content.partition("|")[0].strip()
        text = render_template(name, content, self._site.language)
        title = self._titles[name] if name in self._titles else self._title(name)
        if title is not None:
            is_note = text == NOTE and title.lower() != DESCRIPTION
            values = () if is_note else self._arguments(start, end)
            self._templates.append((start, Template(title, values)))
        return text

    def _title(self, name: str) -> str | None:
        title = template_title(name, self._site)
        if len(self._titles) < _MAX_CACHED_NAMES:
            self._titles[name] = title
        return title

    def _arguments(self, start: int, end: int) -> tuple[str, ...]:
        """Arguments of a template that begins a line."""
        if start and self._source[start - 1] not in "\n :*|=":
            return ()
        before = self._source[max(0, start - 80) : start].rpartition("\n")[2]
        if end - start > _MAX_ARGUMENTS_CHARS or before.strip(" :*|="):
            return ()
        return plain_arguments(self._source[start + 2 : end - 2])

    def _variant(self, match: re.Match[str]) -> str:
        """Text of a language-converter rule `-{...}-` in the preferred variant.

        Source: MediaWiki, ConverterRule::parseFlags and parseRules; links are converted before.
        """
        flags, rule = _VARIANT_FLAGS.fullmatch(match[1]).groups("")  # type: ignore[union-attr]
        codes = {flag.strip() for flag in flags.split(";")}
        # Rules for the rest of the page or for the title, and descriptions of rules, show nothing.
        if codes & {"H", "T", "-", "N", "D"}:
            return ""
        pairs = [part.partition(":") for part in _VARIANT_END.split(rule)]
        texts = {code.strip(): text for code, colon, text in pairs if colon}
        if not texts.keys() & set(self._facts.variants):
            return rule
        return next(texts[code] for code in self._facts.variants if code in texts).strip()

    def _assemble(self, pieces: list[str]) -> Rendered:
        output = Prose(self._links.targets)
        for paragraph in pieces:
            output.add(paragraph)
        # Inner templates are rendered first, but the first one of the page names its infobox.
        templates = sorted(self._templates, key=lambda item: item[0])
        return Rendered(
            text="".join(output.pieces),
            anchors=tuple(output.anchors),
            holes=tuple(output.holes),
            templates=tuple(template for _, template in templates),
            categories=tuple(self._links.categories),
        )
