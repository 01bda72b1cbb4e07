"""Finds sentences of evaluation sets in texts and corpora: equal ones, and shared 13-grams."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import xxhash

from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.columns import read_columns
from nerbert.text.corpus import SPLITS, Corpus
from nerbert.text.tokens import UNSPACED

NGRAM = 13
"""Tokens of an n-gram that counts as contamination if it is shared.

Source: Brown et al. 2020, appendix C.
"""

EQUAL, SHARED = "equal", "13-gram"
"""Kinds of hits: the same words, or a shared 13-gram."""

_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]")

Location = tuple[int, int]
"""Number of a set, and number of a sentence in it."""


def normal_words(text: str) -> list[str]:
    """Lower-case words and punctuation marks; the same for every tokenisation of a text."""
    text = text.replace("``", '"').replace("''", '"').casefold()
    return _WORD.findall(text)


def _key(words: Sequence[str]) -> int:
    return xxhash.xxh3_64_intdigest(" ".join(words).encode("utf-8", "surrogatepass"))


class SentenceIndex:
    """An index of the sentences of some sets, by all their words and by their n-grams."""

    def __init__(self, sets: Sequence[Iterator[Sequence[str]] | Sequence[Sequence[str]]]) -> None:
        """Indexes sets of sentences, each a list of tokens."""
        self._whole: dict[int, tuple[Location, ...]] = {}
        self._ngrams: dict[int, tuple[Location, ...]] = {}
        for number, sentences in enumerate(sets):
            for row, tokens in enumerate(sentences):
                words, place = normal_words(" ".join(tokens)), (number, row)
                key = _key(words)
                self._whole[key] = (*self._whole.get(key, ()), place)
                for key in _ngram_keys(words):
                    self._ngrams[key] = (*self._ngrams.get(key, ()), place)

    @classmethod
    def of_files(cls, paths: Sequence[Place], columns: str | None = None) -> SentenceIndex:
        """Indexes the sentences of CoNLL column files; see `nerbert.text.columns.parse_columns`.

        Raises:
            ValueError: a file has no such columns.
            OSError: a file cannot be read.
        """
        return cls([[row.tokens for row in read_columns(path, columns)] for path in paths])

    def hits(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Kind, set and sentence of each hit, equal sentences first. Hits may repeat."""
        if not self._whole:
            return
        words = normal_words(text)
        for place in self._whole.get(_key(words), ()):
            yield EQUAL, *place
        for key in _ngram_keys(words):
            for place in self._ngrams.get(key, ()):
                yield SHARED, *place


def _ngram_keys(words: Sequence[str]) -> Iterator[int]:
    return (_key(words[start : start + NGRAM]) for start in range(len(words) - NGRAM + 1))


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Names of files, with as many of their folders as are needed to distinguish them.

    >>> distinct_names(["/data/ai/test.txt", "/data/music/test.txt"])
    ['ai/test.txt', 'music/test.txt']
    """
    pieces = [path.replace("\\", "/").split("/") for path in paths]
    for length in range(1, max(map(len, pieces), default=1) + 1):
        names = ["/".join(piece[-length:]) for piece in pieces]
        if len(set(names)) == len(set(paths)):
            return names
    return list(paths)


def contamination(hits: Sequence[Sequence[Any]], exclude: Sequence[str]) -> dict[str, Any]:
    """Numbers of hits by file and kind, and a list of all hits."""
    names = distinct_names(exclude)
    by_file = {name: {EQUAL: 0, SHARED: 0} for name in names}
    for _, kind, file, _ in hits:
        by_file[names[file]][kind] += 1
    listed = [
        {"id": example, "kind": kind, "file": names[file], "sentence": sentence}
        for example, kind, file, sentence in hits
    ]
    return {"files": by_file, "hits": listed}


def find(corpus: Place, sets: Sequence[Sequence[Sequence[str]]]) -> list[dict[int, str]]:
    """For each set: number of a sentence in the corpus -> "equal" or "13-gram".

    Lower-case words and punctuation marks are compared, as by `nerbert corpus --exclude`.

    Args:
        corpus: folder of a corpus, or a text file, which may be compressed.
        sets: sentences of each set, as tokens.

    Raises:
        UserError: there is no such corpus.
    """
    index = SentenceIndex(sets)
    hits: list[dict[int, str]] = [{} for _ in sets]
    for text in _texts(corpus):
        for kind, number, row in index.hits(text):
            if kind == EQUAL:
                hits[number][row] = kind
            else:
                hits[number].setdefault(row, kind)
    return hits


def _texts(corpus: Place) -> Iterator[str]:
    if Path(corpus).is_dir():
        opened = Corpus.open(corpus)
        for split in SPLITS:
            yield from (" ".join(sentence.tokens) for sentence in opened.sentences(split))
        return
    try:
        with corpus.open_decompressed() as file:
            for line in file:
                yield line.decode("utf-8", "replace")
    except (OSError, EOFError) as error:
        raise UserError(str(error), corpus) from error
