"""The steps of MediaWiki's preprocessor: comments and extension tags, templates, tables.

Each step is one linear pass. Markers replace removed markup, so that later steps know where text is
missing. They are Unicode noncharacters, which no page may contain.
"""

from __future__ import annotations

import re
from collections.abc import Callable

HOLE = "\ufdd0"
"""Marks text that a reader sees and that we do not have."""
NOTE = "\ufdd3"
"""Marks something without running text, such as a footnote or a sound file."""
OPEN, SEPARATOR, CLOSE = "\ufdd1", "\ufdd4", "\ufdd2"
"""Mark a link in the later passes: OPEN index SEPARATOR text CLOSE."""
MARKERS = HOLE + NOTE + OPEN + SEPARATOR + CLOSE
NOTHING = "&#8203;"
"""A zero-width space, for `<nowiki/>`: it separates a link from its trail, and is removed later."""
MAX_DEPTH = 40
"""Templates that are nested deeper are not rendered. Source: MediaWiki, $wgMaxTemplateDepth."""

# Extension tags (MediaWiki: $wgParser->setHook) whose content is beside the running text: notes,
# maps, settings. Nothing is missing where they stand.
_NO_TEXT = (
    "ref references templatestyles indicator section mapframe maplink graph includeonly "
    "categorytree inputbox templatedata charinsert rss languages translate phonos"
).split()
# Their content is a part of the sentence, which we cannot write as words: a hole.
_FORMULAS = ["math", "chem", "ce", "hiero", "score", "syntaxhighlight", "source"]
# They end a paragraph and have no prose of their own.
_BLOCKS = ["gallery", "timeline", "imagemap", "pre"]
_TAG_NAMES = "|".join([*_NO_TEXT, *_FORMULAS, *_BLOCKS, "nowiki", "poem"])
_TAG = re.compile(rf"<!--|<({_TAG_NAMES})(?=[\s/>])", re.IGNORECASE)
_COMMENT = "<!--"
_CLOSING = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in _TAG_NAMES.split("|")}
# What is markup elsewhere is text inside <nowiki>.
_ESCAPES = {ord(c): f"&#{ord(c)};" for c in "<>[]{}|'=_-~!"}
# A list or preformatted line begins so; in <nowiki> it does not.
_LINE_START = re.compile(r"^[*#:; ]", re.MULTILINE)

_BRACES = re.compile(r"\{\{+|\}\}+")
# MediaWiki, Parser::handleTables: a table may be indented by colons, its end may not.
_WIKI_TABLE = re.compile(r"\n(?:[ \t:]*(\{\|)|[ \t]*(\|\}))")
# Its rows are shown as a table all the same; a line of prose ends it for us.
_UNCLOSED_TABLE = re.compile(r"\n[ \t:]*\{\|[^\n]*(?:\n[ \t]*[|!][^\n]*)*")
_HTML_TABLE = re.compile(r"<(?:(table\b[^<>]*>)|(/table\s*>))", re.IGNORECASE)
_HTML_LIST = re.compile(r"<(?:([uod]l\b[^<>]*>)|(/[uod]l\s*>))", re.IGNORECASE)


def strip_tags(text: str) -> str:
    """Removes comments and extension tags; the content of `<nowiki>` becomes character references.

    Of an unclosed comment the rest of its line is removed, of an unclosed tag only the tag.
    """
    pieces: list[str] = []
    position = 0
    unclosed: set[str] = set()
    while (match := _TAG.search(text, position)) is not None:
        start = match.start()
        name = (match[1] or "").lower()
        if not name:
            start, end, replacement = _comment(text, match, unclosed)
        elif name in unclosed:
            # No closing tag follows, and looking for it again would make the pass quadratic.
            end, replacement = _end_of_tag(text, match.end()), HOLE
        else:
            end, replacement = _extension(text, match, name, unclosed)
            if replacement == NOTE and start and _stands_alone(text[start - 1]):
                replacement = ""  # most footnotes need no marker
        pieces.append(text[position:start] if start > position else "")
        pieces.append(replacement)
        position = max(end, position)
    if not pieces:
        return text
    pieces.append(text[position:])
    return "".join(pieces)


def _stands_alone(before: str) -> bool:
    """Whether a note after this character needs no marker: no space or bracket is left behind."""
    return before.isalnum() or before in '.!?"'


def _comment(text: str, match: re.Match[str], unclosed: set[str]) -> tuple[int, int, str]:
    """Start, end and replacement of a comment. A line that holds only a comment is removed."""
    start = match.start()
    end = -1 if _COMMENT in unclosed else text.find("-->", match.end())
    if end < 0:
        unclosed.add(_COMMENT)
        newline = text.find("\n", start)
        return start, len(text) if newline < 0 else newline, ""
    end += 3
    line_start, line_end = start, end
    while line_start and text[line_start - 1] in " \t":
        line_start -= 1
    while line_end < len(text) and text[line_end] in " \t":
        line_end += 1
    if (line_start == 0 or text[line_start - 1] == "\n") and text[line_end : line_end + 1] == "\n":
        return line_start, line_end + 1, ""
    return start, end, ""


def _end_of_tag(text: str, position: int) -> int:
    # Bounded, because a page may have many `<` without any `>`.
    end = text.find(">", position, position + 2000)
    return position if end < 0 else end + 1


def _extension(text: str, match: re.Match[str], name: str, unclosed: set[str]) -> tuple[int, str]:
    """End of an extension tag, and its replacement."""
    after = _end_of_tag(text, match.end())
    if text[after - 2 : after] == "/>":
        return after, NOTHING if name == "nowiki" else NOTE
    closing = _CLOSING[name].search(text, after)
    if closing is None:
        unclosed.add(name)
        return after, HOLE
    content = text[after : closing.start()]
    if name == "nowiki":
        escaped = content.translate(_ESCAPES)
        visible = _LINE_START.sub(lambda first: f"&#{ord(first[0])};", escaped)
        return closing.end(), NOTHING + visible  # so that no link has it in its target
    if name == "poem":
        # Each verse is a line of its own, but lines of wikitext are joined to paragraphs.
        return closing.end(), content.replace("\n", "\n\n")
    if name in _FORMULAS:
        return closing.end(), HOLE
    return closing.end(), NOTE if name in _NO_TEXT else "\n\n"


def expand_braces(text: str, template: Callable[[str, int, int], str]) -> str:
    """Replaces every `{{...}}` by what `template` returns for it, innermost first.

    `{{{name|default}}}` becomes its default. Unpaired braces are kept. Braces are paired as in
    MediaWiki: a closing run of braces closes three of an open run if both have three, else two.

    Args:
        text: text without comments and extension tags.
        template: called with the content (inner templates already replaced), and start and end of
            the whole template in `text`.
    """
    if "{{{" in text:
        return _expand_runs(text, template)
    # Without runs of three braces, `split` does the work of a pattern in less time.
    first, *opened = text.split("{{")
    open_pieces = [[first]]  # text in each open template so far, outermost first
    starts = [0]
    position = len(first)
    for piece in opened:
        starts.append(position)
        position += 2
        inner, *closed = piece.split("}}")
        open_pieces.append([inner])  # what follows belongs to the innermost open template
        position += len(inner)
        for after in closed:
            position += 2
            if len(open_pieces) > 1:
                content, start = "".join(open_pieces.pop()), starts.pop()
                is_deep = len(open_pieces) - 1 > MAX_DEPTH
                value = HOLE if is_deep else template(content, start, position)
                open_pieces[-1] += (value, after)
            else:
                open_pieces[0] += ("}}", after)
            position += len(after)
    # Templates that are still open are shown as they are typed, by MediaWiki too. Text may be
    # missing there, so a hole marks the sentence.
    return f"{HOLE}{{{{".join(map("".join, open_pieces))


def _expand_runs(text: str, template: Callable[[str, int, int], str]) -> str:
    """The same for texts with runs of three or more braces, which are slower to pair."""
    open_runs: list[tuple[int, int, list[str]]] = []  # braces, position, pieces before
    pieces: list[str] = []
    position = 0
    for match in _BRACES.finditer(text):
        pieces.append(text[position : match.start()])
        position = match.end()
        n_braces = match.end() - match.start()
        if text[match.start()] == "{":
            open_runs.append((n_braces, match.start(), pieces))
            pieces = []
            continue
        while n_braces >= 2 and open_runs:
            braces, start, before = open_runs.pop()
            width = 3 if n_braces >= 3 and braces >= 3 else 2
            content = "".join(pieces)
            n_braces, braces = n_braces - width, braces - width
            if width == 3:  # a parameter of a template, which a page shows as its default
                value = content.partition("|")[2]
            elif len(open_runs) > MAX_DEPTH:
                value = HOLE
            else:
                value = template(content, start + braces, match.end() - n_braces)
            pieces = [value]
            if braces >= 2:
                open_runs.append((braces, start, before))
            else:
                before.append("{" * braces + value)
                pieces = before
        pieces.append("}" * n_braces)
    flat: list[str] = []
    for braces, _, before in open_runs:
        flat.extend(before)
        flat.append(HOLE + "{" * braces)
    return "".join([*flat, *pieces, text[position:]])


def drop_tables(text: str, list_items: bool) -> str:
    """Removes wiki tables, HTML tables and (unless `list_items`) HTML lists.

    Of an unclosed table only the lines that begin with `|`, `!` or `{|` are removed.
    """
    if "{|" in text:
        # A table begins a line; the first line of the page has no newline before it.
        text = _drop_nested("\n" + text, _WIKI_TABLE)
        text = _UNCLOSED_TABLE.sub("\n\n", text)
    if "</" in text:
        text = _drop_nested(text, _HTML_TABLE)
        if not list_items:
            text = _drop_nested(text, _HTML_LIST)
    return text


def _drop_nested(text: str, delimiters: re.Pattern[str]) -> str:
    """Removes the text from each opening delimiter (group 1) to its closing delimiter."""
    pieces: list[str] = []
    copied_to = 0
    starts: list[int] = []
    spans: list[tuple[int, int]] = []
    for match in delimiters.finditer(text):
        if match[1]:
            starts.append(match.start())
        elif starts:
            start = starts.pop()
            # Keep the outermost spans only: they contain those that ended before.
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, match.end()))
    for start, end in spans:
        pieces += (text[copied_to:start], "\n\n")
        copied_to = end
    return "".join([*pieces, text[copied_to:]]) if spans else text
