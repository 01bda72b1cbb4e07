"""Internal links: the pages that they lead to, and the text that a reader sees."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from typing import NamedTuple
from urllib.parse import unquote

from pipeline.dump.site import CATEGORY, FILE, Site, language
from pipeline.wikitext.inline import decode_references, strip_quotes
from pipeline.wikitext.preprocess import CLOSE, HOLE, MARKERS, NOTE, NOTHING, OPEN, SEPARATOR

INVALID_TITLE = re.compile(
    r"[\[\]{}|<>\x00-\x1f\x7f" + MARKERS + r"]|&#?\w+;|(?:^|/)\.{1,2}(?:/|$)|%[0-9A-Fa-f]{2}|~~~"
)
"""Matches what no title may contain.

Source: MediaWiki, $wgLegalTitleChars and MediaWikiTitleCodec.
"""
_MAX_CACHED_TARGETS = 200_000
_QUOTES = frozenset("«»‹›„“”「」『』《》")
"""Marks that come in pairs; which of a pair opens depends on the language."""
_URL = re.compile(r"(?i)(?:[a-z][a-z0-9+.-]*:)?//|(?:mailto|news|sips?|sms|tel|geo|magnet|urn):")
"""The beginning of an address outside of the wiki; `[[http://x]]` is no link to a page."""
# In titles "%C3%A9" is decoded; a "%" that is not followed so is text.
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")


class _Link(NamedTuple):
    """The meaning of a link's target. `kind` is page, text, category, nothing or invalid.

    A title may be followed by "#" and a section.
    """

    kind: str
    title: str
    label: str


@lru_cache(maxsize=8)
def _link_pattern(trail: str) -> re.Pattern[str]:
    # Possessive characters (*+) cannot backtrack: unbalanced brackets take linear time. A group
    # must not be possessive: before Python 3.11.5 it matches wrongly (cpython issue 106052).
    target = rf"([^\[\]{{}}|<>\n{OPEN}{CLOSE}{SEPARATOR}]*+)"
    text = r"([^\[\]]*+(?:(?:\[(?!\[)|\](?!\]))[^\[\]]*+)*)"
    after = f"([{trail}]*+)" if trail else "()"
    return re.compile(rf"\[\[{target}(?:\|{text})?\]\](\]?){after}")


@lru_cache(maxsize=8)
def _prefix_pattern(prefix: str) -> re.Pattern[str]:
    """Characters before a link that belong to its text, and the beginning of the link."""
    return re.compile(rf"((?<![{prefix}])[{prefix}]+)({OPEN}\d+{SEPARATOR})")


def _split_single_quote(text: str) -> tuple[str, str, str]:
    """The parts of a link's text: a quote whose pair is outside of it, the name, such a quote."""
    if len(text) < 2 or sum(map(_QUOTES.__contains__, text)) != 1:
        return "", text, ""
    return ("", text[:-1], text[-1]) if text[-1] in _QUOTES else (text[0], text[1:], "")


def _is_odd(link: re.Match[str]) -> bool:
    """Whether an odd number of brackets stands before a link."""
    before = link.string[max(0, link.start() - 100) : link.start()]
    return (len(before) - len(before.rstrip("["))) % 2 == 1


@lru_cache(maxsize=8)
def _targets(site: Site) -> dict[str, _Link]:
    """A cache of link targets by their text, for all pages of a site."""
    return {}


class LinkPass:
    """Finds the links of one page.

    Attributes:
        targets: normal titles that the links lead to; the OPEN marker of a link has its index.
        categories: normal titles of the wiki categories, without namespace, in order.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        facts = language(site.language)
        # A trail that has closing quotes belongs to a prefix that has opening ones: both are
        # outside of the name here, so that no name has one quote of a pair.
        self._trail = facts.link_trail.translate(dict.fromkeys(map(ord, "«»“”„")))
        self._prefix = _prefix_pattern(facts.link_prefix) if facts.link_prefix else None
        self._cache = _targets(site)
        self.targets: list[str] = []
        self.categories: dict[str, None] = {}

    def apply(self, text: str) -> str:
        """Puts links between markers; removes links that a reader does not see."""
        if "[[" not in text:
            return text
        pattern = _link_pattern(self._trail)
        text = pattern.sub(self._link, text)
        if self._prefix:
            text = self._prefix.sub(r"\2\1", text)
        for _ in range(4):  # captions of images may contain links, which are markers by now
            if "[[" not in text or (outer := pattern.sub(self._outer_link, text)) == text:
                break
            text = outer
        return text

    def _link(self, match: re.Match[str]) -> str:
        raw, text, bracket, trail = match.groups()
        link = self._cache.get(raw) or self._resolve(raw)
        kind, title, label = link
        # An odd number of brackets opens no link: `[[[X]]]` is text.
        if match.start() and match.string[match.start() - 1] == "[" and _is_odd(match):
            return match[0]
        if text is None:
            text = label
        elif "''" in text:
            text = strip_quotes(text)
        if kind == "page" and text and not bracket:  # nearly all links
            self.targets.append(title)
            if "\n" in text:
                text = text.replace("\n", " ")
            begin = f"{OPEN}{len(self.targets) - 1}{SEPARATOR}"
            if text[-1] in _QUOTES or text[0] in _QUOTES:
                before, text, after = _split_single_quote(text)
                if after:  # and what follows the quote is no part of the name either
                    return f"{begin}{text}{CLOSE}{after}{trail}"
                begin = before + begin
            return f"{begin}{text}{trail}{CLOSE}"
        # `[[Title|]]` is expanded when a page is saved, so in a dump it is text.
        if kind == "invalid" or match[2] == "":
            return match[0]
        return self._rare_link(link, text, bracket, trail)

    def _rare_link(self, link: _Link, text: str, bracket: str, trail: str) -> str:
        """A link that is not an anchor, or that is followed by a third bracket."""
        # In `[[A|b [c]]]` the third bracket closes the inner one and belongs to the text.
        if bracket and "[" in text:
            text, bracket = text + "]", ""
        if link.kind == "nothing":
            return bracket + trail
        if link.kind == "category":
            self.categories[link.title] = None
            return bracket + trail
        label = text.replace("\n", " ") + ("" if bracket else trail)
        after = bracket + trail if bracket else ""
        if link.kind == "text":
            return label + after
        self.targets.append(link.title)
        return f"{OPEN}{len(self.targets) - 1}{SEPARATOR}{label}{CLOSE}{after}"

    def _outer_link(self, match: re.Match[str]) -> str:
        """A link that contains links; only those to files and categories may."""
        link = self._cache.get(match[1]) or self._resolve(match[1])
        if link.kind in ("nothing", "category") or OPEN not in (match[2] or ""):
            return self._link(match)
        return match[0]

    def _resolve(self, raw: str) -> _Link:
        link = self._resolve_uncached(raw)
        if "''" in link.label:  # apostrophes of a title are not markup
            link = link._replace(label=link.label.replace("''", "&#39;&#39;"))
        # Bounded, because a wiki has millions of targets.
        if len(self._cache) < _MAX_CACHED_TARGETS:
            self._cache[raw] = link
        return link

    def _resolve_uncached(self, raw: str) -> _Link:
        target = decode_references(raw).strip(" _\u00a0")
        # A template made a part of the target: the page is unknown, but the text is shown.
        if HOLE in target or NOTE in target:
            return _Link("text", "", target.lstrip(":"))
        label = raw.strip().removeprefix(":")
        if NOTHING in raw:
            return _Link("invalid", "", label)
        if _PERCENT.search(target):
            target = _percent_decoded(target)
            label = escape(target.removeprefix(":"), quote=False)
        colon_first = target.startswith(":")
        target = target.removeprefix(":").strip(" _")
        name = target.partition("#")[0].strip(" _")
        # MediaWiki keeps titles in 255 bytes.
        if not target or len(name.encode()) > 255 or INVALID_TITLE.search(name):
            return _Link("invalid", "", label)
        # `[[http://x]]` shows brackets around an address.
        if _URL.match(name):
            return _Link("invalid", "", label)
        if not name:
            return _Link("text", "", label)  # a section of the same page
        prefix, colon, _ = name.partition(":")
        if colon:
            prefix = prefix.replace("_", " ").strip().lower()
            # A namespace of this wiki wins over another wiki of that name (MediaWikiTitleCodec).
            number = self._site.namespace_numbers.get(prefix)
            if number is None and (group := self._site.interwiki(prefix)):
                # Links to other languages are in the margin; links to other projects are text.
                hidden = group == "languages" and not colon_first
                return _Link("nothing" if hidden else "text", "", label)
            if number == FILE and not colon_first:
                return _Link("nothing", "", "")
            if number == CATEGORY and not colon_first:
                return _Link("category", self._site.title(name).partition(":")[2], "")
            if number:  # pages of other namespaces are no entities
                is_page = name.partition(":")[2].strip(" _")
                return _Link("text" if is_page else "invalid", "", label)
        title = self._site.title(name)
        # The section tells what the link is about: see `names.named_target`.
        section = target.partition("#")[2].strip(" _")
        target = f"{title}#{section}" if section else title
        return _Link("page", target, label) if title else _Link("invalid", "", label)


def _percent_decoded(target: str) -> str:
    try:
        return unquote(target, errors="strict")
    except UnicodeDecodeError:
        return target
