"""What a page says about its kind: features for the page typer, the same in every language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ontology.titles import Keys, title_keys

N_FEATURES = 1 << 18
"""Features are numbers below this one: hashes of their texts."""

Features = npt.NDArray[np.int32]

_NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Letters of scripts without spaces between words: each of them counts as a word."""
_WORDS = re.compile(rf"[{_NO_SPACES}]|[^\W\d_{_NO_SPACES}]+|\d+")
_OPENING = 300
_MOST_WORDS = 40
"""The first characters and words of the first sentence, which say what the page is about."""


def words_of(text: str) -> list[str]:
    """Words in lower case; digits become zeros, so that "1926 births" is as "1931 births"."""
    return ["0" * len(word) if word.isdigit() else word for word in _WORDS.findall(text.lower())]


def _grams(kind: str, words: Sequence[str]) -> Iterator[str]:
    """The words, and each pair of neighbours."""
    for number, word in enumerate(words):
        yield f"{kind}:{word}"
        if number:
            yield f"{kind}:{words[number - 1]} {word}"


def page_features(
    title: str,
    categories: Iterable[str],
    templates: Iterable[tuple[str, Sequence[str]]],
    first_sentence: str,
) -> set[str]:
    """Features of a page.

    Source: Nothman et al. 2013 type pages by bags of words of title, first sentence, wiki
    categories and templates, too.

    Args:
        title: title of the page.
        categories: its wiki categories.
        templates: name and arguments of its templates, without those that state its class.
        first_sentence: first sentence of its text.
    """
    plain, _, bracket = title.partition(" (")
    name = words_of(plain)
    features = {f"title:{word}" for word in name}
    features.update(f"bracket:{word}" for word in words_of(bracket))
    if name:
        features.update((f"title begins:{name[0]}", f"title ends:{name[-1]}"))
    for category in categories:
        words = words_of(category)
        features.update(_grams("category", words))
        if words:
            features.update((f"category is:{' '.join(words)}", f"category ends:{words[-1]}"))
    for template, arguments in templates:
        words = words_of(template)
        features.add(f"template is:{' '.join(words)}")
        features.update(f"template:{word}" for word in words)
        if words == ["short", "description"]:
            for argument in arguments:
                features.update(_grams("description", words_of(argument.partition("=")[2])))
    opening = words_of(first_sentence[:_OPENING])[:_MOST_WORDS]
    title_words = {word for word in name if len(word) > 1}
    features.update(_grams("opening", [word for word in opening if word not in title_words]))
    return features


_AROUND = 24
"""Characters before and after a link whose nearest words are looked at."""


def title_features(title: str) -> set[str]:
    """Features of a page that is linked, by its title."""
    plain, _, bracket = title.partition(" (")
    name = words_of(plain)
    features = {f"title:{word}" for word in name}
    features.update(f"bracket:{word}" for word in words_of(bracket)[-1:])
    if name:
        features.add(f"title ends:{name[-1]}")
        features.update(f"suffix:{name[-1][-length:]}" for length in (2, 3, 4))
    return features


def link_features(text: str, start: int, end: int) -> set[str]:
    """Features of a page that is linked, by the words around the link.

    Args:
        text: text with the link.
        start: start of the link in the text.
        end: end of the link.
    """
    before = words_of(text[max(0, start - _AROUND) : start])[-2:]
    after = words_of(text[end : end + _AROUND])[:2]
    features = {f"before:{' '.join(before)}", f"after:{' '.join(after)}"}
    features.update(f"before {distance}:{word}" for distance, word in enumerate(before[::-1]))
    features.update(f"after {distance}:{word}" for distance, word in enumerate(after))
    return features


def hashed(pages: Sequence[Iterable[str]]) -> tuple[Features, npt.NDArray[np.int64]]:
    """Numbers of the features of some pages, one page after the other, and numbers per page."""
    rows = [sorted(features) for features in pages]
    flat = [feature for row in rows for feature in row]
    keys = title_keys(pa.array(flat, pa.string())) % np.uint64(N_FEATURES)
    return keys.astype(np.int32), np.array([len(row) for row in rows], np.int64)


@dataclass(frozen=True)
class Pages:
    """Features of some pages.

    Attributes:
        keys: keys of their titles, shape (pages,).
        features: numbers of their features, one page after the other, shape (features,).
        sizes: number of features of each page, shape (pages,).
    """

    keys: Keys
    features: Features
    sizes: npt.NDArray[np.int64]

    def where(self, selection: npt.NDArray[np.bool_]) -> Pages:
        """Some of the pages."""
        features = self.features[np.repeat(selection, self.sizes)]
        return Pages(self.keys[selection], features, self.sizes[selection])

    def fold(self, folds: int) -> npt.NDArray[np.int64]:
        """The part of the data that each page belongs to. No model sees the pages that it types."""
        return ((self.keys >> np.uint64(32)) % np.uint64(folds)).astype(np.int64)
