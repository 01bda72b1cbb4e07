"""Finds test sentences in a training corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from nerbert.errors import UserError
from nerbert.storage.files import open_decompressed
from nerbert.text.corpus import SPLITS, Corpus
from nerbert.text.overlap import EQUAL, SentenceIndex


def find(corpus: str, sets: Sequence[Sequence[Sequence[str]]]) -> list[dict[int, str]]:
    """For each set: number of a sentence in the corpus -> "equal" or "13-gram".

    Lower-case words and punctuation marks are compared, as by `nerbert corpus --exclude`.

    Args:
        corpus: folder of a corpus, or a text file, which may be compressed.
        sets: sentences of each set, as tokens.

    Raises:
        UserError: there is no such corpus.
    """
    index = SentenceIndex(sets)
    found: list[dict[int, str]] = [{} for _ in sets]
    for text in _texts(corpus):
        for kind, number, row in index.hits(text):
            if kind == EQUAL:
                found[number][row] = kind
            else:
                found[number].setdefault(row, kind)
    return found


def _texts(corpus: str) -> Iterator[str]:
    if Path(corpus).is_dir():
        opened = Corpus.open(corpus)
        for split in SPLITS:
            yield from (" ".join(sentence.tokens) for sentence in opened.sentences(split))
        return
    try:
        with open_decompressed(corpus) as file:
            for line in file:
                yield line.decode("utf-8", "replace")
    except (OSError, EOFError) as error:
        raise UserError(str(error), corpus) from error
