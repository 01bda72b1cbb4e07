"""Test sentences that a training corpus holds: equal, or sharing an n-gram of 13 tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ontology.compressed import open_bytes
from pipeline.errors import UserError
from pipeline.filters import NGRAM, normal_words
from pretrain.corpus import SPLITS, Corpus


class SentenceIndex:
    """The sentences of test sets, by their words and their n-grams."""

    def __init__(self, sets: Sequence[Sequence[Sequence[str]]]) -> None:
        """Takes sets of sentences of tokens."""
        self._whole: defaultdict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        self._ngrams: defaultdict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        for number, sentences in enumerate(sets):
            for row, tokens in enumerate(sentences):
                words = tuple(normal_words(" ".join(tokens)))
                self._whole[words].append((number, row))
                for start in range(len(words) - NGRAM + 1):
                    self._ngrams[words[start : start + NGRAM]].append((number, row))
        self.hits: list[dict[int, str]] = [{} for _ in sets]

    def look_at(self, text: str) -> None:
        """Notes which sentences a text of a corpus holds, in `hits`: by set, sentence -> kind."""
        words = tuple(normal_words(text))
        for number, row in self._whole.get(words, ()):
            self.hits[number][row] = "equal"
        for start in range(len(words) - NGRAM + 1):
            for number, row in self._ngrams.get(words[start : start + NGRAM], ()):
                self.hits[number].setdefault(row, "13-gram")


def find(corpus: str, sets: Sequence[Sequence[Sequence[str]]]) -> list[dict[int, str]]:
    """For each set: number of the sentence -> "equal" or "13-gram".

    Equal and shared n-grams are told on lower-case words and punctuation marks, as
    `run_pipeline.py --exclude` does.

    Args:
        corpus: folder of run_pipeline.py, or a text file, which may be compressed.
        sets: sentences of tokens.

    Raises:
        UserError: there is no such corpus.
    """
    index = SentenceIndex(sets)
    for text in _texts(corpus):
        index.look_at(text)
    return index.hits


def _texts(corpus: str) -> Iterator[str]:
    path = Path(corpus)
    if path.is_dir():
        yield from _of_parts(corpus)
        return
    try:
        with open_bytes(corpus) as file:
            for line in file:
                yield line.decode("utf-8", "replace")
    except (OSError, EOFError) as error:
        raise UserError(f"--check-contamination {corpus}: {error}") from error


def _of_parts(corpus: str) -> Iterable[str]:
    opened = Corpus.open(corpus)
    return (" ".join(tokens) for split in SPLITS for tokens in opened.token_lists(split))
