"""CoNLL-like column files: one token per line, blank lines between sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nerbert.storage.places import Place
from nerbert.text.lines import Line, is_tag, read_lines
from nerbert.text.schemes import Scheme, TagError, read_tags

_CHUNKS = frozenset("ADJP ADVP CONJP INTJ LST NP PP PRT SBAR UCP VP NC PC VC".split())
"""Types of phrases, whose tags look like those of entities.

Source: Tjong Kim Sang and Buchholz 2000; the last three are those of CoNLL-2003 in German.
"""
_LANGUAGE = re.compile(r"[a-z]{2,}(?:-[a-z]+)*:")
_INDEXED = 0.9
"""Share of the lines whose first column must count the tokens of its sentence to be an index; and
share of the words that have a digit if they are no words."""
_NUMBER, _WITH_DIGIT = re.compile(r"\d[\d.,:;/-]*"), re.compile(r".*\d.*")
_REMEDY = "say which, such as --columns word=2,tag=3"


@dataclass(frozen=True)
class Sentence:
    """One sentence: its tokens and their tags."""

    tokens: list[str]
    tags: list[str]

    def __str__(self) -> str:
        """`Bern/B-City is/O old/O`."""
        return " ".join(map("/".join, zip(self.tokens, self.tags, strict=True)))


class Sentences(list[Sentence]):
    """The sentences of a set, in strict IOB2.

    Attributes:
        scheme: tagging scheme that the set had. If it is IOB2, `scheme.opened` tags were corrected.
    """

    def __init__(self, sentences: Iterable[Sentence], scheme: Scheme) -> None:
        super().__init__(sentences)
        self.scheme = scheme

    @property
    def types(self) -> list[str]:
        """Entity types, sorted."""
        return sorted({tag[2:] for sentence in self for tag in sentence.tags if tag != "O"})


def read_columns(path: Place, columns: str | None = None) -> Sentences:
    """Reads the sentences of a column file, which may be compressed (.xz, .bz2, .gz).

    Raises:
        ValueError: see `parse_columns`.
        OSError: the file cannot be read.
    """
    with path.open_decompressed() as file:
        content = file.read()
    return parse_columns(content, path, columns)


def parse_columns(content: bytes, where: str, columns: str | None = None) -> Sentences:
    """Reads the sentences of column text in UTF-8 or Latin-1, in strict IOB2.

    The last column is the tag; in files of two columns whose first one is, that one (the sets of
    MIT). The first column is the word. Tabs separate the columns of a line that has a tab, spaces
    those of other lines. A first column that counts the tokens of each sentence is ignored, as are
    comments (`# text = ...`, `IMGID:1`) and a prefix that all tokens share (`en:EU`, as in PAN-X);
    `-DOCSTART-` ends a sentence. In OntoNotes (`*_gold_conll` of CoNLL-2012, with lines `#begin
    document`), the fourth column is the token, and the eleventh has the names in brackets. For the
    tags, see `nerbert.text.schemes`.

    Args:
        content: the text.
        where: name of the file, for errors.
        columns: which columns are read, of `chosen_columns`; None for those above.

    Raises:
        ValueError: a line has no token and tag, the tags are of no scheme, the words are numbers,
            or several columns hold tags.
    """
    lines = read_lines(content, where, columns)
    if columns is None:
        _check_layers([line.cells for line in lines if line.cells], where)
    sentences = list(_sentences(lines, where))
    if not sentences:
        raise ValueError(f"{where}: no line with a token and a tag (CoNLL columns expected)")
    indexed = _is_indexed(sentences)
    tokens = [[_token(line, indexed, where) for line in rows] for rows in sentences]
    if columns is None:
        _check_words(tokens, len(sentences[0][0].cells or ()), where)
    tags, scheme = _read_tags(sentences, where)
    start = len(_shared_prefix(tokens))
    pairs = zip(tokens, tags, strict=True)
    return Sentences(
        (Sentence([word[start:] for word in words], row) for words, row in pairs), scheme
    )


def _check_layers(rows: Sequence[Sequence[str]], where: str) -> None:
    """Checks that only the last column holds tags of entities, as far as can be seen.

    Raises:
        ValueError: another column does, too.
    """
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
    table = [row for row in rows if len(row) == width]
    last = [row[-1] for row in table]
    for place in range(1, width - 1):
        column = [row[place] for row in table]
        types = {cell[2:] if is_tag(cell) else cell for cell in column if cell != "O"}
        counts = Counter(column)
        # Without prefixes, what is often O: a word, or its part of speech, is not.
        holds_tags = all(map(is_tag, counts)) or 4 * counts["O"] >= len(column)
        if holds_tags and types and not types <= _CHUNKS and column != last:
            raise ValueError(f"{where}: columns {place + 1} and {width} both hold tags; {_REMEDY}")


def _check_words(sentences: Sequence[Sequence[str]], width: int, where: str) -> None:
    """Checks that the words are no numbers; and, of more than two columns, no ids of sentences.

    Raises:
        ValueError: they are.
    """
    words = [word for sentence in sentences for word in sentence]
    pattern = _WITH_DIGIT if width > 2 else _NUMBER
    numbers = sum(pattern.fullmatch(word) is not None for word in words)
    longer = [sentence for sentence in sentences if len(sentence) > 1] if width > 2 else []
    repeated = sum(len(set(sentence)) == 1 for sentence in longer)
    if numbers > _INDEXED * len(words) or (longer and repeated > _INDEXED * len(longer)):
        sample = " ".join(words[:3])
        raise ValueError(f"{where}: the words are numbers or ids ({sample} ...); {_REMEDY}")


def _read_tags(sentences: Sequence[Sequence[Line]], where: str) -> tuple[list[list[str]], Scheme]:
    """The tags of the lines in strict IOB2.

    Raises:
        ValueError: a tag is of no scheme, or a file without prefixes has ragged lines.
    """
    cells = [[line.cells or [] for line in rows] for rows in sentences]
    try:
        tags, scheme = read_tags([[row[-1] for row in rows] for rows in cells])
    except TagError as error:
        line = sentences[error.sentence][error.token]
        raise ValueError(_no_token(line, where, str(error))) from None
    width = len(cells[0][0])
    ragged = (line for rows in sentences for line in rows if len(line.cells or ()) != width)
    if scheme.name == "IO" and (odd := next(ragged, None)):
        reason = f"the first one has {width} columns, and tags have no prefix such as B-"
        raise ValueError(_no_token(odd, where, reason))
    return tags, scheme


def _no_token(line: Line, where: str, reason: str) -> str:
    excerpt = line.text.strip()[:40]
    return f"{where}: line {line.number}: {excerpt!r} is no token with a tag ({reason})"


def _shared_prefix(sentences: Sequence[Sequence[str]]) -> str:
    """The language that all tokens of a file begin with, such as `en:`; empty if there is none."""
    match = _LANGUAGE.match(sentences[0][0])
    prefix = match[0] if match else ""
    return (
        prefix
        if prefix and all(word.startswith(prefix) for row in sentences for word in row)
        else ""
    )


def _sentences(lines: Iterable[Line], where: str) -> Iterator[list[Line]]:
    """The lines of each sentence."""
    block: list[Line] = []
    for line in lines:
        if line.cells is None:
            if block:
                yield block
            block = []
        elif len(line.cells) > 1:
            block.append(line)
        else:
            raise ValueError(_no_token(line, where, "columns are separated by tabs or spaces"))
    if block:
        yield block


def _is_indexed(sentences: Sequence[Sequence[Line]]) -> bool:
    """Whether the first column of a file counts the tokens of each sentence, from 0 or 1."""
    lines = counted = 0
    for sentence in sentences:
        rows = [line.cells or [""] for line in sentence]
        start = int(rows[0][0]) if rows[0][0] in ("0", "1") else -1
        lines += len(sentence)
        counted += sum(
            len(row) > 2 and row[0] == str(start + place) for place, row in enumerate(rows)
        )
    return counted > _INDEXED * lines


def _token(line: Line, indexed: bool, where: str) -> str:
    cells = line.cells or []
    if indexed and not (len(cells) > 2 and cells[0].isdecimal()):
        raise ValueError(
            f"{where}: line {line.number}: begins with {cells[0]!r}, but the first column of this "
            "file is the number of the token"
        )
    return cells[indexed]  # it may be empty: some sets have lost the characters of a token
