"""Character references: `&nbsp;`, `&#65;`, `&#x41;`."""

from __future__ import annotations

import re
from functools import lru_cache
from html.entities import html5

_REFERENCE = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


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
