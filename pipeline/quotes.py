"""Bold and italic quotes, as MediaWiki's doQuotes pairs them: which apostrophes a reader sees."""

from __future__ import annotations

import re

_RUN = re.compile(r"''+")


def strip_quotes(text: str) -> str:
    """`text` without the apostrophes that mean bold or italic; others stay.

    Source: MediaWiki, Parser::doQuotes (rules for four and more apostrophes, and for a line with an
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
        # Well-formed, as most lines are: no apostrophe is text.
        return line.replace("'''''", "").replace("'''", "").replace("''", "")
    return _strip_odd_line(line)


def _strip_odd_line(line: str) -> str:
    runs = [(m.start(), m.end() - m.start()) for m in _RUN.finditer(line)]
    kept = [_literal(length) for _, length in runs]
    bold = sum(length - extra in (3, 5) for (_, length), extra in zip(runs, kept, strict=True))
    italic = sum(length - extra in (2, 5) for (_, length), extra in zip(runs, kept, strict=True))
    if bold % 2 and italic % 2 and (odd := _bold_to_split(line, runs, kept)) is not None:
        kept[odd] += 1
    pieces, position = [], 0
    for (start, length), extra in zip(runs, kept, strict=True):
        pieces.append(line[position:start] + "'" * extra)
        position = start + length
    return "".join([*pieces, line[position:]])


def _literal(length: int) -> int:
    """Apostrophes of a run that are text: one of four, all beyond five."""
    return 1 if length == 4 else max(0, length - 5)


def _bold_to_split(line: str, runs: list[tuple[int, int]], kept: list[int]) -> int | None:
    """Index of the bold mark that is read as an apostrophe and an italic mark.

    The first after a one-letter word, else the first after a longer word, else the first after a
    space.
    """
    first_word = first_space = None
    for index, ((start, length), extra) in enumerate(zip(runs, kept, strict=True)):
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
