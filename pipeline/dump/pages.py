"""Parses the pages of a dump, for export versions 0.3 to 0.11."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.parsers import expat

from lxml import etree

from pipeline.dump.site import Site, language, xml_parser

MAX_PAGE_BYTES = 16 << 20
"""Larger pages are set aside: MediaWiki saves no wikitext above 2 MiB ($wgMaxArticleSize)."""


WIKITEXT = "wikitext"
_WITHHELD = "page/revision/withheld"
_DEEPEST = 16
"""Elements of a page are nested four deep."""
_AFTER_NAME = (b">", b" ", b"\t", b"\r", b"\n")
_PAGE_END = re.compile(rb"</page\s*>")


@dataclass(frozen=True, slots=True)
class Page:
    """One entry of a dump.

    Attributes:
        redirect: normal title that a redirect leads to, else None.
        model: content model, such as wikitext or json.
    """

    page_id: int
    namespace: int
    title: str
    redirect: str | None
    revision_id: int
    timestamp: str
    wikitext: str
    model: str = WIKITEXT


@dataclass(frozen=True, slots=True)
class BadPage:
    """A page that could not be read: the reason, and what is known about the page."""

    reason: str
    page_id: int | None
    title: str | None
    detail: str


def failed_page(error: Exception, page_id: int | None, title: str | None) -> BadPage:
    """A page on which our code failed. It is set aside, and the run continues with the others."""
    return BadPage(f"error-{type(error).__name__}", page_id, title, str(error)[:200])


def redirect_target(wikitext: str, site: Site) -> str | None:
    """Normal title, without section, that `#REDIRECT [[...]]` or a localised form leads to."""
    leads_to = _redirect(wikitext, site)
    return leads_to and (site.title(leads_to.partition("#")[0].strip(" _:")) or None)


def redirect_section(wikitext: str, site: Site) -> str:
    """The section that a redirect leads to; empty for a whole page."""
    return (_redirect(wikitext, site) or "").partition("#")[2].strip(" _")


def _redirect(wikitext: str, site: Site) -> str | None:
    words = "|".join(map(re.escape, ("REDIRECT", *language(site.language).redirect)))
    pattern = rf"\s*#(?:{words})\s*:?\s*\[\[([^\[\]|{{}}<>\n]+?)(?:\|[^\]\n]*)?\]\]"
    match = re.match(pattern, wikitext, re.IGNORECASE)
    return match[1] if match else None


def parse_page(xml: bytes, site: Site) -> Page | BadPage:
    """Parses one `<page>` element. If it has several revisions, the last one is used."""
    try:
        return _page(_page_fields(xml), site)
    except expat.ExpatError as error:
        return _bad_page(xml, _xml_reason(xml), str(error))
    except Exception as error:
        return _bad_page(xml, f"error-{type(error).__name__}", str(error))


def _page(fields: dict[str, str], site: Site) -> Page | BadPage:
    title, page_id = fields.get("page/title"), fields.get("page/id", "")
    if not title or "page/revision" not in fields or not page_id.isdecimal():
        page_number = int(page_id) if page_id.isdecimal() else None
        return BadPage("incomplete", page_number, title, "page without title, id or revision")
    wikitext = fields.get("page/revision/text", "")
    if not wikitext and _WITHHELD in fields:
        detail = "its text was deleted, or is not in this kind of dump (stub)"
        return BadPage("no-text", int(page_id), title, detail)
    number = fields.get("page/ns")
    namespace = int(number) if number is not None else site.split(title)[0]
    # Old exports have no <redirect>, or one without a title: then the wikitext decides. Its first
    # characters are enough to see that most pages are no redirect.
    leads_to = fields.get("page/redirect")
    redirect = None
    if leads_to:
        redirect = site.title(leads_to.partition("#")[0]) or None
    if redirect is None and (leads_to is not None or "#" in wikitext[:64]):
        redirect = redirect_target(wikitext, site)
    return Page(
        page_id=int(page_id),
        namespace=namespace,
        title=site.title(title),
        redirect=redirect,
        revision_id=int(fields.get("page/revision/id") or 0),
        wikitext=wikitext,
        timestamp=fields.get("page/revision/timestamp", ""),
        model=fields.get("page/revision/model") or WIKITEXT,
    )


def _page_fields(xml: bytes) -> dict[str, str]:
    """Texts of the elements by path, the last of several; for a redirect the title it leads to.

    Raises:
        ExpatError: the XML is not well-formed, or uses an entity that XML does not predefine.
    """
    fields: dict[str, str] = {}
    path: list[str] = []
    text: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        path.append(name)
        text.clear()
        if len(path) > _DEEPEST:  # the path of each element would take quadratic memory
            raise expat.ExpatError(f"elements are nested deeper than {_DEEPEST}")
        if name == "revision":
            # A full-history dump has several revisions: forget all fields of the one before.
            for earlier_path in [
                earlier_path for earlier_path in fields if earlier_path.startswith("page/revision")
            ]:
                del fields[earlier_path]
        elif name == "redirect":
            text.append(attributes.get("title", ""))
        elif name == "text" and ("deleted" in attributes or attributes.get("bytes", "0") != "0"):
            fields[_WITHHELD] = "yes"  # unless text follows

    def end(name: str) -> None:
        fields["/".join(path)] = "".join(text)
        path.pop()
        text.clear()

    # A tree is not needed: only the texts of a few elements are read.
    parser = expat.ParserCreate()
    # Without this, expat calls back for each line of the wikitext.
    parser.buffer_text = True
    parser.buffer_size = max(1, min(len(xml), 1 << 20))
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text.append
    parser.Parse(xml, True)
    return fields


def _xml_reason(xml: bytes) -> str:
    """Why XML is not well-formed: one of the kinds of damage that occur in dumps."""
    # libxml2's message for a zero byte differs between its versions.
    if b"\x00" in xml:
        return "control-character"
    try:
        etree.fromstring(xml, xml_parser())
    except etree.XMLSyntaxError as error:
        message = str(error)
        if "UTF-8" in message or "encoding" in message:
            return "invalid-utf8"
        if "invalid Char" in message or "invalid xmlChar" in message:
            return "control-character"
        if "ntity" in message:
            return "undefined-entity"
    return "broken-xml"


def _bad_page(xml: bytes, reason: str, detail: str) -> BadPage:
    """A bad page; its id and title are searched in the first 4 KiB."""
    head = xml[:4096]
    page_id = re.search(rb"<id>\s*(\d{1,18})\s*</id>", head)
    title = re.search(rb"<title>([^<]*)</title>", head)
    return BadPage(
        reason,
        int(page_id[1]) if page_id else None,
        title[1].decode("utf-8", "replace") if title else None,
        detail[:200],
    )


def split_pages(chunks: Iterable[tuple[bytes | None, bool]]) -> Iterator[bytes | BadPage]:
    """Splits a unit into its pages: the `<page>` elements that begin in the unit, in order.

    Args:
        chunks: pieces of XML, each with a flag: whether it lies beyond the end of the unit. Such
            pieces only complete the last page. A piece None stands for bytes that are lost.

    Yields:
        The bytes of each element, or a BadPage for an element that is truncated or larger than
        MAX_PAGE_BYTES.
    """
    buffer, limit = b"", None  # limit: position in `buffer` where the unit ends
    for chunk, beyond in chunks:
        if beyond and limit is None:
            limit = len(buffer)
        if chunk is not None:
            buffer += chunk
        pages, buffer, limit = _take_pages(buffer, limit, cut=chunk is None)
        yield from pages
        if limit is not None and not _page_is_open(buffer, limit):
            return
    yield from _take_pages(buffer, limit, cut=True)[0]


def _page_is_open(buffer: bytes, limit: int) -> bool:
    """Whether a page, or a part of its start tag, begins before `limit`."""
    start = _next_page(buffer, 0)
    if start >= 0:
        return start < limit
    cut_tags = (n for n in range(1, 6) if buffer.endswith(b"<page>"[:n]))
    return any(len(buffer) - n < limit for n in cut_tags)


def _next_page(buffer: bytes, position: int, end: int | None = None) -> int:
    """Where the next `<page>`, or `<page ...>`, begins; -1 without one."""
    start = buffer.find(b"<page", position, end)
    while start >= 0 and buffer[start + 5 : start + 6] not in _AFTER_NAME:
        start = buffer.find(b"<page", start + 5, end)
    return start


def _page_end(buffer: bytes, position: int) -> re.Match[bytes] | None:
    """The next `</page>`; None without one."""
    start = buffer.find(b"</page", position)
    return _PAGE_END.search(buffer, start) if start >= 0 else None


def _take_pages(
    buffer: bytes, limit: int | None, cut: bool
) -> tuple[list[bytes | BadPage], bytes, int | None]:
    """Takes the complete pages from the front of a buffer.

    Args:
        buffer: bytes of the dump.
        limit: position in the buffer where the unit ends; None if it ends later.
        cut: whether nothing follows the buffer, so that an open page is truncated.

    Returns:
        The pages, the rest of the buffer, and the limit as a position in the rest.
    """
    pages: list[bytes | BadPage] = []
    position, end = 0, -2
    match: re.Match[bytes] | None = None
    while (start := _next_page(buffer, position)) >= 0:
        if limit is not None and start >= limit:
            break
        if end == -2 or 0 <= end < start:  # one search for the end of many open pages
            match = _page_end(buffer, start)
            end = match.start() if match else -1
        following = _next_page(buffer, start + 6, end if end >= 0 else len(buffer))
        # Pages are not nested, and wikitext has `&lt;page>`: bytes between were lost.
        if following >= 0:
            pages.append(_bad_page(buffer[start:following], "cut-off", "page without an end"))
            position = following
        elif match:
            xml = buffer[start : match.end()]
            too_large = len(xml) > MAX_PAGE_BYTES
            pages.append(_bad_page(xml, "too-large", f"{len(xml)} bytes") if too_large else xml)
            position = match.end()
        elif cut:
            pages.append(_bad_page(buffer[start:], "cut-off", "the input ends inside this page"))
            position = len(buffer)
        elif len(buffer) - start > MAX_PAGE_BYTES + (1 << 20):
            # Keep the head, which names the page, and forget the body as it streams by.
            head_and_tail = buffer[start : start + 4096] + buffer[-(MAX_PAGE_BYTES + 1) :]
            return pages, head_and_tail, None if limit is None else max(1, limit - start)
        else:
            position = start
            break
    else:
        # No further page, but the last 5 bytes may be the beginning of `<page>`.
        position = max(position, len(buffer) - 5)
        if cut:
            position = len(buffer)
    remaining = buffer[position:]
    return pages, remaining, None if limit is None else max(0, limit - position)
