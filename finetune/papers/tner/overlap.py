"""Measures how many of their most frequent words data sets and domain corpora share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from finetune.data.registry import expand
from finetune.data.sets import DataSets
from finetune.data.split_files import SPLITS
from finetune.papers.tner.options import OverlapOptions
from finetune.scoring import plots
from finetune.scoring.tables import markdown
from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.corpus import domain_parts, domain_texts
from nerbert.text.tokens import tokenize


def token_lists(name: str, sets: DataSets) -> Iterator[Sequence[str]]:
    """Reads the tokens of all sentences of a domain corpus, or of all splits of a set.

    Raises:
        UserError: there is no such corpus or set.
    """
    if domain_parts(name):
        for text in domain_texts(name):
            yield [text[start:end] for start, end in tokenize(text)]
    else:
        for split in SPLITS:
            rows = sets.raw_sentences(name, split, needed=split == "train")
            yield from (row.tokens for row in rows)


def top_words(texts: Iterable[Sequence[str]], size: int, stop_words: frozenset[str]) -> set[str]:
    """The most frequent words that have a letter, in lower case; ties in alphabetical order.

    Source: Liu et al. 2021 (CrossNER), arXiv:2012.04373, figure 1.

    Args:
        texts: tokens of each text.
        size: number of words.
        stop_words: words that are ignored.
    """
    counts = Counter(token.casefold() for tokens in texts for token in tokens)
    words = [word for word in counts if word not in stop_words and any(c.isalpha() for c in word)]
    return set(sorted(words, key=lambda word: (-counts[word], word))[:size])


def matrix(vocabularies: Sequence[set[str]]) -> npt.NDArray[np.float64]:
    """Shared words of each pair, in per cent of the smaller vocabulary, shape (sets, sets)."""
    return np.array(
        [
            [
                100 * len(first & second) / max(1, min(len(first), len(second)))
                for second in vocabularies
            ]
            for first in vocabularies
        ]
    )


def _stop_words(path: str | None) -> frozenset[str]:
    if path is None:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # takes a second

        return frozenset(ENGLISH_STOP_WORDS) | {"n't", "'s", "'re", "'ve", "'ll", "'d", "'m"}
    try:
        return frozenset(Path(path).read_text(encoding="utf-8").casefold().split())
    except OSError as error:
        raise UserError(f"{error.strerror}; give a text file", path) from error


def compare_words(options: OverlapOptions) -> str:
    """Writes the table, its numbers, and a heat map; returns the table.

    Raises:
        UserError: a set, a corpus or the file of stop words is missing.
    """
    stop_words = _stop_words(options.stop_words)
    names, sets = expand(options.data), DataSets.of_options(options)
    frequent = [top_words(token_lists(name, sets), options.words, stop_words) for name in names]
    values = matrix(frequent)
    output = Path(options.output)
    output.mkdir(parents=True, exist_ok=True)
    rows = [
        ["", *names],
        *(
            [name, *(f"{value:.1f}" for value in row)]
            for name, row in zip(names, values, strict=True)
        ),
    ]
    title = f"Shared words of the {options.words:,} most frequent, in per cent"
    text = "\n".join([f"{title}.", "", *markdown(rows)]) + "\n"
    (output / "overlap.md").write_text(text, encoding="utf-8")
    Place(output / "overlap.json").write_json(
        {
            "words": {name: len(words) for name, words in zip(names, frequent, strict=True)},
            "per_cent": values.tolist(),
        }
    )
    picture = plots.heat_map(values, names, names, title, "", "")
    (output / "overlap.png").write_bytes(picture)
    return text
