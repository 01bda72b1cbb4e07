"""A small multistream dump, and ways to damage it, drawn with a seed."""

import bz2
import random

HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    "<siteinfo><dbname>enwiki</dbname><case>first-letter</case><namespaces>"
    '<namespace key="0" case="first-letter" /></namespaces></siteinfo>\n'
)
PAGES = 120
PER_STREAM = 8


def page(number, text="A [[town]] in [[Italy]]. It has a wall.", title=None):
    return (
        f"<page><title>{title or f'Page {number}'}</title><ns>0</ns><id>{number}</id><revision>"
        f"<id>{number + 5000}</id><timestamp>2024-01-01T00:00:00Z</timestamp>"
        f'<text xml:space="preserve">{text}</text></revision></page>\n'
    ).encode()


def multistream(pages):
    """The bytes of a dump, and where its streams begin."""
    groups = [pages[start : start + PER_STREAM] for start in range(0, len(pages), PER_STREAM)]
    data, starts = b"", []
    for chunk in [HEAD.encode(), *(b"".join(group) for group in groups), b"</mediawiki>\n"]:
        starts.append(len(data))
        data += bz2.compress(chunk)
    return data, starts


def bad_pages():
    """Name -> (bytes in the place of a page, the reason for which it is set aside)."""
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    return {
        "nul": (page(60, "a\x00b"), "control-character"),
        "control": (page(60, "a\x07b"), "control-character"),
        "latin-1": (page(60, "caf\u00e9").decode().encode("latin-1"), "invalid-utf8"),
        "entity": (page(60, "a &bomb; b"), "undefined-entity"),
        "bomb": (page(60).replace(b"<page>", b"<page>" + bomb.encode()), "broken-xml"),
        "attribute": (page(60).replace(b"<text ", b'<text x="' + b"y" * 5_000_000 + b'" '), None),
        "unclosed": (page(60).replace(b"</title>", b""), "broken-xml"),
        "no revision": (page(60).split(b"<revision>")[0] + b"</page>", "incomplete"),
        "huge id": (page(10**30), "error-OverflowError"),
        "odd namespace": (page(60).replace(b"<ns>0", b"<ns>zero"), "error-ValueError"),
        "huge": (page(60, "x" * 100_000_000), "too-large"),
        "external": (
            page(60).replace(b"<page>", b'<page><!ENTITY x SYSTEM "file:///etc/passwd">'),
            "broken-xml",
        ),
    }


def flipped(data, draw: random.Random, start, end, times=1):
    """The same bytes with some in [start, end) changed."""
    damaged = bytearray(data)
    for _ in range(times):
        damaged[draw.randrange(start, end)] ^= draw.randrange(1, 256)
    return bytes(damaged)
