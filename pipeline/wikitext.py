"""Wikitext -> the text a reader sees, with its anchors at character offsets.

The steps are MediaWiki's, in its order, each one linear pass over the page: preprocessor
(`pipeline.scanner`), links, quotes, external links, tags, lines, character references. Links travel
through the later passes between markers (`scanner.MARKERS`) and become anchors at the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from html.entities import html5
from typing import NamedTuple
from urllib.parse import unquote

from ontology.titles import normal_title
from pipeline import scanner
from pipeline.dump import CATEGORY, ENGLISH, FILE, TEMPLATE, Site
from pipeline.fallback import split_by_brackets
from pipeline.languages import language
from pipeline.quotes import strip_quotes
from pipeline.scanner import HOLE, MARKERS, NOTE
from pipeline.templates import render_template

_OPEN, _CLOSE, _SEPARATOR = "\ufdd1", "\ufdd2", "\ufdd4"
_MAX_CACHED_TARGETS = 200_000
_MAX_ARGUMENTS_CHARS = 50_000
_MAX_VALUE_CHARS = 200

_ANY_MARKER = re.compile(f"[{MARKERS}]")
_MARKED = re.compile(f"{_OPEN}(\\d+){_SEPARATOR}|[{_CLOSE}{HOLE}{NOTE}]")
_INVALID_TITLE = re.compile(r"[\[\]{}|<>\x00-\x1f\x7f" + MARKERS + "]|&#?\\w+;|^\\.{1,2}$")
_REFERENCE = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_EXTERNAL = re.compile(
    r"\[(?:(?:https?|ftps?|ircs?|gopher|telnet|nntp|worldwind|svn|git|mms|ssh|sftp|redis|xmpp)://|//"
    r"|mailto:|news:|sips?:|sms:|tel:|geo:|magnet:|urn:|bitcoin:)"
    rf"[^\s\]\[<>\"{MARKERS}]+[ \t]*([^\]\n]{{0,1000}}?)\]",
    re.IGNORECASE,
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
_HEADING = re.compile(rf"=.*=[ \t{MARKERS}]*", re.DOTALL)
_SPACES = re.compile(r"[ \t\r\f\v\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_INVISIBLE = re.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]")
_SEPARATORS = r"\s,;:/–—-"
_EMPTY_PARENTHESES = re.compile(
    rf" ?[(（\[][{_SEPARATORS}]*[{HOLE}{NOTE}][{_SEPARATORS}{HOLE}{NOTE}]*[)）\]]"
)
_LEADING_NOTES = re.compile(rf"([(（])(?:[\s,;:]*{NOTE})+[\s,;:]*")
_TRAILING_NOTES = re.compile(rf"(?:[\s,;:]*{NOTE}\s*)+([)）])")
_SENTENCE_END = re.compile(r"[.!?。．！？…؟۔।:：][\"'”’»)\]」』]*$")
_VARIANT_RULE = re.compile(r"-\{([^{}]*)\}-")


_PARSER_FUNCTIONS = frozenset(
    (
        "lc uc lcfirst ucfirst formatnum ns nse urlencode anchorencode fullurl localurl "
        "canonicalurl plural grammar gender int defaultsort displaytitle padleft padright "
        "filepath msg raw subst safesubst pagename fullpagename namespace numberofarticles "
        "numberofpages protectionlevel language"
    ).split()
)


class Anchor(NamedTuple):
    """A wiki link: `text[start:end]` is its text, `target` the normal title it leads to."""

    start: int
    end: int
    target: str


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


class _Link(NamedTuple):
    """What a link's target text leads to. `kind`: page, text, category, nothing or invalid."""

    kind: str
    title: str
    shown: str


@lru_cache(maxsize=8)
def _link_pattern(trail: str) -> re.Pattern[str]:
    target = rf"([^\[\]{{}}|<>\n{_OPEN}{_CLOSE}{_SEPARATOR}]*+)"
    text = r"([^\[\]]*+(?:(?:\[(?!\[)|\](?!\]))[^\[\]]*+)*+)"
    after = f"([{trail}]*+)" if trail else "()"
    return re.compile(rf"\[\[{target}(?:\|{text})?\]\](\]?){after}")


@lru_cache(maxsize=8)
def _targets(site: Site) -> dict[str, _Link]:
    """Cache of link targets by their text, shared by all pages of a site."""
    return {}


class _Renderer:
    """Renders one page; what the passes find is gathered here."""

    def __init__(self, site: Site, list_items: bool) -> None:
        self._site = site
        self._list_items = list_items
        self._facts = language(site.language)
        self._cache = _targets(site)
        self._link_targets: list[str] = []
        self._templates: list[tuple[int, Template]] = []
        self._categories: dict[str, None] = {}
        self._source = ""

    def render(self, wikitext: str) -> Rendered:
        text = _ANY_MARKER.sub("", wikitext).replace("\r\n", "\n").replace("\x00", "")
        self._source = scanner.strip_tags(text) if "<" in text else text
        text = self._source
        if "{{" in text:
            text = scanner.expand_braces(text, self._template)
        text = scanner.drop_tables(text, self._list_items)
        if "-{" in text and self._facts.variants:
            text = _VARIANT_RULE.sub(self._variant, text)
        text = self._links(text)
        text = strip_quotes(text)
        if "[" in text:
            text = _EXTERNAL.sub(r"\1", text)
        if "__" in text:
            text = _DOUBLE_UNDERSCORE.sub("", text)
        if "<" in text:
            text = _LINE_BREAK.sub("\n\n", text)
            text = _BLOCK_TAG.sub("\n\n", text)
            text = _INLINE_TAG.sub("", text)
        return self._assemble(_paragraphs(text, self._list_items))

    # Templates

    def _template(self, content: str, start: int, end: int, depth: int) -> str:
        name = content.partition("|")[0].strip()
        text = render_template(name, content)
        if (title := self._template_title(name)) is not None:
            self._templates.append((start, Template(title, self._arguments(start, end, text))))
        return text

    def _template_title(self, name: str) -> str | None:
        """Normal name of a template, without namespace; None for a parser function."""
        prefix, colon, rest = name.partition(":")
        if colon:
            if self._site.namespace_numbers.get(prefix.strip().lower()) == TEMPLATE:
                name = rest
            elif name[0] in "#:" or prefix.strip().lower() in _PARSER_FUNCTIONS:
                return None
        title = normal_title(name)
        return title if title and len(title) < 256 and not _INVALID_TITLE.search(title) else None

    def _arguments(self, start: int, end: int, text: str) -> tuple[str, ...]:
        """Arguments of a template that opens a line and is no note."""
        before = self._source[max(0, start - 80) : start].rpartition("\n")[2]
        if text == NOTE or end - start > _MAX_ARGUMENTS_CHARS or before.strip(" :*|="):
            return ()
        return _plain_arguments(self._source[start + 2 : end - 2])

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

    # Links

    def _links(self, text: str) -> str:
        if "[[" not in text:
            return text
        pattern = _link_pattern(self._facts.link_trail)
        text = pattern.sub(self._link, text)
        for _ in range(4):  # a caption may hold links, which are markers by now
            if "[[" not in text or (again := pattern.sub(self._outer_link, text)) == text:
                break
            text = again
        return text

    def _link(self, match: re.Match[str]) -> str:
        raw, text, bracket, trail = match.groups()
        link = self._cache.get(raw) or self._resolve(raw)
        if link.kind == "invalid" or text == "":
            return match[0]
        if text is None:
            text = link.shown.replace("''", "&#39;&#39;")
        elif "''" in text:
            text = strip_quotes(text)
        if bracket and "[" in text:
            text, bracket = text + "]", ""
        if link.kind == "nothing":
            return bracket + trail
        if link.kind == "category":
            self._categories[link.title] = None
            return bracket + trail
        shown = text.replace("\n", " ") + ("" if bracket else trail)
        rest = bracket + trail if bracket else ""
        if link.kind == "text":
            return shown + rest
        self._link_targets.append(link.title)
        return f"{_OPEN}{len(self._link_targets) - 1}{_SEPARATOR}{shown}{_CLOSE}{rest}"

    def _outer_link(self, match: re.Match[str]) -> str:
        """A link around links: only files and categories may be that."""
        link = self._cache.get(match[1]) or self._resolve(match[1])
        if link.kind in ("nothing", "category") or _OPEN not in (match[2] or ""):
            return self._link(match)
        return match[0]

    def _resolve(self, raw: str) -> _Link:
        link = self._resolve_uncached(raw)
        if len(self._cache) < _MAX_CACHED_TARGETS:
            self._cache[raw] = link
        return link

    def _resolve_uncached(self, raw: str) -> _Link:
        target = decode_references(raw).strip(" _\u00a0")
        if HOLE in target or NOTE in target:
            return _Link("text", "", target.lstrip(":"))
        if _PERCENT.search(target):
            target = _percent_decoded(target)
        colon_first = target.startswith(":")
        shown = raw.strip().removeprefix(":")
        target = target.removeprefix(":").strip(" _")
        name = target.partition("#")[0].strip(" _")
        if not target or len(name.encode()) > 255 or _INVALID_TITLE.search(name):
            return _Link("invalid", "", shown)
        if not name:
            return _Link("text", "", shown)  # a section of the same page
        prefix, colon, _ = name.partition(":")
        if colon:
            prefix = prefix.replace("_", " ").strip().lower()
            number = self._site.namespace_numbers.get(prefix)
            if number is None and (group := self._site.interwiki(prefix)):
                # Links to other languages stand in the margin; those to projects show their text.
                hidden = group == "languages" and not colon_first
                return _Link("nothing" if hidden else "text", "", shown)
            if number == FILE and not colon_first:
                return _Link("nothing", "", "")
            if number == CATEGORY and not colon_first:
                return _Link("category", self._site.title(name).partition(":")[2], "")
            if number is not None and number < 0:
                return _Link("text", "", shown)
        title = self._site.title(name)
        return _Link("page", title, shown) if title else _Link("invalid", "", shown)

    # Assembly

    def _assemble(self, paragraphs: list[str]) -> Rendered:
        output = _Output(self._link_targets)
        for paragraph in paragraphs:
            output.add(paragraph)
        templates = sorted(self._templates, key=lambda item: item[0])
        return Rendered(
            text="".join(output.pieces), anchors=tuple(output.anchors), holes=tuple(output.holes),
            templates=tuple(template for _, template in templates),
            categories=tuple(self._categories),
        )  # fmt: skip


def _percent_decoded(target: str) -> str:
    try:
        return unquote(target, errors="strict")
    except UnicodeDecodeError:
        return target


def _plain_arguments(content: str) -> tuple[str, ...]:
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
    if not value or not any(c in value for c in "[{<&'"):
        return value[:_MAX_VALUE_CHARS]
    value = value[: 4 * _MAX_VALUE_CHARS]
    value = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]*)\]\]", r"\1", value)
    value = re.sub(r"<[^<>]*>|'{2,}", " ", value)
    value = re.sub(r"\{\{[^{}|]*\|?|\}\}", " ", value)
    return " ".join(decode_references(value).split())[:_MAX_VALUE_CHARS]


def decode_references(text: str) -> str:
    """`text` with character references decoded as MediaWiki does: only those that end in `;`."""
    return _REFERENCE.sub(_decode_reference, text) if "&" in text else text


@lru_cache(maxsize=4096)
def _reference(name: str) -> str | None:
    if name[0] != "#":
        return html5.get(name + ";")
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    if (
        code in (9, 10, 13)
        or code > 0x10FFFF
        or 0xD800 <= code < 0xE000
        or 0xFDD0 <= code <= 0xFDEF
    ):
        return " "
    return chr(code) if code >= 32 and not 127 <= code < 160 else ""


def _decode_reference(match: re.Match[str]) -> str:
    text = _reference(match[1])
    return match[0] if text is None else text


def _paragraphs(text: str, list_items: bool) -> list[str]:
    """Paragraphs of the page; headings, table rests and (unless `list_items`) lists left out."""
    paragraphs: list[str] = []
    lines: list[str] = []
    for line in text.split("\n"):
        stripped = line.strip()
        first = stripped[:1]
        prose = bool(stripped)
        if first and first in "*#:;=|{-":
            if first in "*#:;" and line[0] == first:
                prose = False
                if list_items and (item := stripped.lstrip("*#:; ")):
                    paragraphs += [" ".join(lines), item]
                    lines = []
            elif (
                (first == "=" and len(stripped) > 2 and _HEADING.fullmatch(stripped))
                or first == "|"
                or stripped.startswith(("{|", "----"))
            ):
                prose = False
        if prose:
            lines.append(stripped)
        elif lines:
            paragraphs.append(" ".join(lines))
            lines = []
    if lines:
        paragraphs.append(" ".join(lines))
    return [paragraph for paragraph in paragraphs if paragraph]


class _Output:
    """The text as it grows, paragraph by paragraph, with what is known of it by offset."""

    def __init__(self, targets: list[str]) -> None:
        self._targets = targets
        self._length = 0
        self.pieces: list[str] = []
        self.anchors: list[Anchor] = []
        self.holes: list[int] = []

    def add(self, paragraph: str) -> None:
        """Appends one paragraph with markers in it, on a line of its own."""
        paragraph = decode_references(paragraph)
        marked = _ANY_MARKER.search(paragraph) is not None
        if not paragraph.isascii():
            paragraph = _INVISIBLE.sub("", paragraph)
        if marked and (HOLE in paragraph or NOTE in paragraph):
            paragraph = _without_empty_parentheses(paragraph)
        if not paragraph.isascii() or "  " in paragraph or "\t" in paragraph or "\n" in paragraph:
            paragraph = _SPACES.sub(" ", paragraph.replace("\n", " "))
        paragraph = paragraph.strip()
        base = self._length + (1 if self.pieces else 0)
        text = self._place_markers(paragraph, base) if marked else paragraph
        if not text:
            return
        if self.pieces:
            self.pieces.append("\n")
        self.pieces.append(text)
        self._length = base + len(text)

    def _place_markers(self, paragraph: str, base: int) -> str:
        """Text of the paragraph; its anchors and holes are noted at offsets from `base`."""
        text, position = "", 0
        pieces: list[str] = []
        length = 0
        open_anchor: tuple[int, int] | None = None
        anchors: list[tuple[int, int, int]] = []
        holes: list[int] = []
        for match in _MARKED.finditer(paragraph):
            text = paragraph[position : match.start()]
            position = match.end()
            if length == 0 or (pieces and pieces[-1].endswith(" ")):
                text = text.removeprefix(" ")
            if text:
                pieces.append(text)
                length += len(text)
            if match[1]:
                open_anchor = (length, int(match[1]))
            elif match[0] == _CLOSE:
                if open_anchor is not None:
                    anchors.append((open_anchor[0], length, open_anchor[1]))
                open_anchor = None
            elif match[0] == NOTE:
                length -= _drop_space_before_point(pieces, paragraph[position : position + 1])
            elif _is_hole("".join(pieces[-8:]), paragraph[position : position + 200]):
                holes.append(length)
        text = paragraph[position:]
        if length == 0 or (pieces and pieces[-1].endswith(" ")):
            text = text.removeprefix(" ")
        text = "".join([*pieces, text]).rstrip()
        self._note(text, base, anchors, holes)
        return text

    def _note(self, text: str, base: int, anchors: list[tuple[int, int, int]],
              holes: list[int]) -> None:  # fmt: skip
        for start, end, index in anchors:
            shown = text[start:end]
            start += len(shown) - len(shown.lstrip())
            end = start + len(shown.strip())
            if start < end:
                self.anchors.append(Anchor(base + start, base + end, self._targets[index]))
        if text:
            self.holes.extend(base + min(hole, len(text)) for hole in holes)


def _without_empty_parentheses(paragraph: str) -> str:
    """Brackets whose content vanished go; separators next to a vanished note go."""

    def replacement(match: re.Match[str]) -> str:
        return HOLE if HOLE in match[0] else NOTE

    paragraph = _EMPTY_PARENTHESES.sub(replacement, paragraph)
    if NOTE in paragraph:
        paragraph = _LEADING_NOTES.sub(r"\1", paragraph)
        paragraph = _TRAILING_NOTES.sub(r"\1", paragraph)
    return paragraph


def _drop_space_before_point(pieces: list[str], following: str) -> int:
    """Takes the space before a note away when punctuation follows it; returns how much went."""
    if pieces and following in (".", ",", ";", ":", "!", "?", ")") and pieces[-1].endswith(" "):
        pieces[-1] = pieces[-1][:-1]
        return 1
    return 0


def _is_hole(before: str, after: str) -> bool:
    """Whether text is missing inside a sentence between `before` and `after`.

    What stands alone before a paragraph or between two sentences (a box, an image) is no hole.
    """
    after = _MARKED.sub("", after).lstrip()
    before = before.rstrip()
    if before and not _SENTENCE_END.search(before):
        return True
    return bool(after) and (after[0].islower() or after[0] in ",;:.)%’'")
