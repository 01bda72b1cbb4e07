"""Plain text as sentences of words: files, documents of a corpus, and domain corpora."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from finetune.data.sets import draw
from nerbert.errors import UserError
from nerbert.storage import parts
from nerbert.storage.places import Place
from nerbert.text.columns import Sentence
from nerbert.text.corpus import domain_parts
from nerbert.text.words import words_of

_DRAWN_FROM = 100_000
"""Number of sentences at the start of a text from which sentences are drawn."""


def drawn_sentences(path: str, flag: str, size: int, seed: int) -> list[Sentence]:
    """Draws sentences of a text, without labels.

    Args:
        path: see `plain_sentences`.
        flag: flag that names the text, for errors.
        size: number of sentences; 0 for all.
        seed: seed of the draw.

    Raises:
        UserError: there is no such text.
    """
    rows = [Sentence(words, []) for words in islice(plain_sentences(path, flag), _DRAWN_FROM)]
    return draw(rows, size or len(rows), seed)


def plain_sentences(path: str, flag: str) -> Iterator[list[str]]:
    """Reads the words of each sentence of a text.

    Args:
        path: file with one sentence per line; output of nerbert corpus or nerbert domain.
        flag: flag that names the text, for errors.

    Raises:
        UserError: it is neither.
    """
    folder = Path(path)
    inner = folder / "documents"
    documents = sorted((inner if inner.is_dir() else folder).glob("part-*.parquet"))
    if folder.is_file():
        with folder.open(encoding="utf-8-sig") as file:
            lines = (line.strip() for line in file)
            yield from (words_of(line) for line in lines if line)
    elif paths := domain_parts(path):
        for part in paths:
            for batch in parts.read_batches(Place(part), ["text"]):
                yield from (words_of(text) for text in batch.column("text").to_pylist())
    elif documents:
        for part in documents:
            yield from _of_documents(part)
    else:
        raise UserError(
            f"{flag} {path}: no text file, documents or domain corpus; give a file with one "
            "sentence per line, or the output of nerbert corpus or nerbert domain"
        )


def _of_documents(part: Path) -> Iterator[list[str]]:
    columns = ["text", "sentence_starts", "sentence_ends"]
    for batch in parts.read_batches(Place(part), columns, rows=256):
        for row in batch.to_pylist():
            spans = zip(row["sentence_starts"] or (), row["sentence_ends"] or (), strict=True)
            yield from (words_of(row["text"][start:end]) for start, end in spans)
