"""Names of typed pages, which an open head learns beside the sentences of a corpus.

The links of a small corpus mention few names of few classes. The files of types have the titles of
all typed pages; lists of these ("Labour Party, Aladdin Sane and Danube") teach what names of a
class look like.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt
from datasets import Dataset

from nerbert.errors import UserError
from nerbert.storage.places import Place
from nerbert.text.columns import Sentence
from nerbert.text.tokens import tokenize
from ontology.classes import ClassTree
from ontology.sources.types import UNREADABLE, read_types

_LOGGER = logging.getLogger("nerbert")
LISTS_VERSION = 3
"""Raised if the code makes other lists or posts, with which a stopped run cannot go on."""
_MOST_TITLES = 1_000_000
"""Number of titles that are kept; of more, those with certain checksums."""
MOST_LISTS = 100_000
_NAMES = 6
"""Largest number of names of a list."""
_WORDS = 8
"""Largest number of words of a name."""
_ALPHA = 0.5
"""The share of a class grows with this power of the number of its names."""
_DETAIL = re.compile(r" \([^()]*\)$")
_BETWEEN = (",", ",", ",", ";")
_BEFORE_LAST = (",", "and")

Names = Mapping[str, Sequence[Sequence[str]]]
"""Class -> the words of each of its names."""


def names_of_classes(paths: Sequence[Place], languages: Sequence[str], tree: ClassTree) -> Names:
    """The names of each class: titles of its pages, without the detail in brackets.

    Args:
        paths: files of types.
        languages: languages of the titles.
        tree: the classes. The class of a page is its deepest one.

    Raises:
        UserError: a file cannot be read, or none of the titles is of these languages.
    """
    names: defaultdict[str, list[list[str]]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    language = languages[0] if len(languages) == 1 else ""
    for title, stated_names in sorted(_classes_of_titles(paths, languages).items()):
        classes = {class_name for name in stated_names if (class_name := tree.known_name(name))}
        depth = max(map(tree.depth, classes), default=0)
        deepest = [name for name in classes if tree.depth(name) == depth]
        text = _DETAIL.sub("", title.replace("_", " "))
        words = [text[start:end] for start, end in tokenize(text, language)]
        if len(deepest) != 1:
            left_out["classes"] += 1
        elif not 0 < len(words) <= _WORDS:
            left_out["words"] += 1
        else:
            names[deepest[0]].append(words)
    if not names:
        raise UserError(
            f"--types {paths[0]}: no title of language {' or '.join(languages)} with a class; give "
            "the types of the corpus's wiki"
        )
    _LOGGER.info(
        "--types: names of %d typed pages in %d classes (left out: %d of several classes or none, "
        "%d of more than %d words)",
        *(sum(map(len, names.values())), len(names)),
        *(left_out["classes"], left_out["words"], _WORDS),
    )
    return dict(sorted(names.items()))


def _classes_of_titles(paths: Sequence[Place], languages: Sequence[str]) -> dict[str, set[str]]:
    """The stated classes of each title; of too many titles, those with certain checksums."""
    classes: dict[str, set[str]] = {}
    step = 1  # the titles whose checksum is divisible by it are kept
    for path in paths:
        for statement in read_types(path):
            if statement is None or statement is UNREADABLE or statement[0] not in languages:
                continue
            _, title, name = statement
            if step > 1 and crc32(title.encode()) % step:
                continue
            classes.setdefault(title, set()).add(name)
            if len(classes) > _MOST_TITLES:
                step *= 2
                classes = {t: c for t, c in classes.items() if not crc32(t.encode()) % step}
    return classes


def lists_of_names(names: Names, sentences: int) -> list[Sentence]:
    """Draws lists of names, one for every second sentence; the same ones in every run.

    Args:
        names: names of each class.
        sentences: number of sentences.
    """
    draw = np.random.default_rng(0)
    classes, weights = list(names), weights_of(names)
    lists = []
    for _ in range(min(sentences // 2, MOST_LISTS) or 1):
        class_numbers = draw.choice(len(classes), size=draw.integers(1, _NAMES + 1), p=weights)
        tokens: list[str] = []
        tags: list[str] = []
        for place, number in enumerate(class_numbers):
            if place:
                marks = _BEFORE_LAST if place == len(class_numbers) - 1 else _BETWEEN
                tokens.append(marks[int(draw.integers(len(marks)))])
                tags.append("O")
            name = classes[number]
            words = names[name][int(draw.integers(len(names[name])))]
            tokens += words
            tags += [f"B-{name}", *[f"I-{name}"] * (len(words) - 1)]
        if draw.integers(2):
            tokens.append(".")
            tags.append("O")
        lists.append(Sentence(tokens, tags))
    return lists


def weights_of(names: Names) -> npt.NDArray[np.float64]:
    """How often names of each class are drawn, shape (classes,)."""
    weights = np.array([len(of_class) for of_class in names.values()]) ** _ALPHA
    shares: npt.NDArray[np.float64] = weights / weights.sum()
    return shares


def as_rows(
    lists: Sequence[Sentence], ids: Mapping[str, int], like: Dataset, kind: str = "list"
) -> Dataset:
    """Lists as rows of a corpus.

    Args:
        lists: the lists.
        ids: label id of each tag.
        like: rows of the corpus, whose columns they get.
        kind: what they are, for their ids.
    """
    columns = {
        "id": [f"{kind}:{number}" for number in range(len(lists))],
        "tokens": [row.tokens for row in lists],
        "ner_tags": [[ids[tag] for tag in row.tags] for row in lists],
        "unlinked": [[False] * len(row.tags) for row in lists],
        "phrases": [[[] for tag in row.tags if tag[0] == "B"] for row in lists],
    }
    return Dataset.from_dict({name: columns[name] for name in like.features}, like.features)
