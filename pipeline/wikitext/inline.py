"""Inline markup without text: character references, and marks of bold and italic."""

from __future__ import annotations

import re
from functools import lru_cache
from html.entities import html5

_REFERENCE = re.compile(r"&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def decode_references(text: str) -> str:
    """Decodes the character references of a text. As in MediaWiki, they must end in `;`."""
    return _REFERENCE.sub(_decode_reference, text) if "&" in text else text


@lru_cache(maxsize=4096)
def _reference(name: str) -> str | None:
    if name[0] != "#":
        return html5.get(name + ";")
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    # White space, surrogates, our markers (U+FDD0 to U+FDEF) and what is not Unicode become a
    # space; other control characters vanish, as in a browser.
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


_RUN = re.compile(r"''+")


def strip_quotes(text: str) -> str:
    """Removes the apostrophes that mean bold or italic.

    Source: MediaWiki, Parser::doQuotes (rules for four and more apostrophes, and for lines with an
    odd number of both bold and italic marks).
    """
    if "''" not in text:
        return text
    lines = text.split("\n")
    return "\n".join(_strip_line(line) if "''" in line else line for line in lines)


def _strip_line(line: str) -> str:
    lengths = [len(run) for run in _RUN.findall(line)]
    bold = lengths.count(3) + lengths.count(5)
    if not bold % 2 and lengths.count(2) + bold == len(lengths):
        # Well-formed, like most lines: all these apostrophes are markup.
        return line.replace("'''''", "").replace("'''", "").replace("''", "")
    return _strip_odd_line(line)


def _strip_odd_line(line: str) -> str:
    runs = [(m.start(), m.end() - m.start()) for m in _RUN.finditer(line)]
    literal = [_literal(length) for _, length in runs]
    bold = sum(length - extra in (3, 5) for (_, length), extra in zip(runs, literal, strict=True))
    italic = sum(length - extra in (2, 5) for (_, length), extra in zip(runs, literal, strict=True))
    if bold % 2 and italic % 2 and (odd := _bold_to_split(line, runs, literal)) is not None:
        literal[odd] += 1
    pieces, position = [], 0
    for (start, length), extra in zip(runs, literal, strict=True):
        pieces.append(line[position:start] + "'" * extra)
        position = start + length
    return "".join([*pieces, line[position:]])


def _literal(length: int) -> int:
    """Number of apostrophes of a run that are text: one of four, and those beyond five."""
    return 1 if length == 4 else max(0, length - 5)


def _bold_to_split(line: str, runs: list[tuple[int, int]], literal: list[int]) -> int | None:
    """Index of the bold mark that is read as an apostrophe and an italic mark.

    It is the first one after a one-letter word, else the first one after a longer word, else the
    first one after a space.
    """
    first_word = first_space = None
    for index, ((start, length), extra) in enumerate(zip(runs, literal, strict=True)):
        if length - extra != 3:
            continue
        before = line[max(0, start - 1) : start] if not extra else "'"
        earlier = line[start - 2 : start - 1] if start >= 2 and not extra else ""
        if before == " ":
            first_space = index if first_space is None else first_space
        elif earlier == " ":
            return index
        elif first_word is None:
            first_word = index
    return first_word if first_word is not None else first_space
