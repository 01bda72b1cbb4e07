"""The data of DualNER: a labelled source, text in the target languages, dev and test sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from finetune.data.plain import drawn_sentences
from finetune.data.sets import DataSets, draw
from finetune.papers.dualner.settings import DualSettings
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet


@dataclass(frozen=True)
class DualData:
    """Sentences of all languages.

    Attributes:
        languages: names of the sets; the source comes first.
        labelled: labelled sentences of the source.
        unlabelled: pairs of the number of a language and a sentence without labels; those of the
            source are sentences whose labels are not used.
        dev: dev sentences of each language.
        test: test sentences of each language.
    """

    languages: tuple[str, ...]
    labelled: Sequence[Sentence]
    unlabelled: Sequence[tuple[int, Sequence[str]]]
    dev: Mapping[str, Sequence[Sentence]]
    test: Mapping[str, Sequence[Sentence]]

    @property
    def labels(self) -> LabelSet:
        """The labels of the source."""
        types = sorted({tag[2:] for row in self.labelled for tag in row.tags if tag != "O"})
        return LabelSet(tuple(types))


@dataclass(frozen=True)
class Names:
    """The sets and texts of an experiment.

    Attributes:
        source: labelled set.
        targets: sets of other languages.
        texts: texts of target languages, `SET=PATH`, or only a path if there is one target. For
            other targets, the words of the train split are used.
    """

    source: str
    targets: tuple[str, ...]
    texts: tuple[str, ...] = ()

    def paths(self) -> dict[str, str]:
        """Target -> path of its text.

        Raises:
            UserError: a text has another form, or names another set.
        """
        paths: dict[str, str] = {}
        for text in self.texts:
            name, equals, path = text.partition("=")
            if not equals and len(self.targets) == 1:
                name, path = self.targets[0], text
            if name not in self.targets or not path:
                raise UserError(f"--target-text {text}: write SET=PATH with a set of --targets")
            paths[name] = path
        return paths


def read(
    names: Names, settings: DualSettings, sets: DataSets, share: float = 1.0, seed: int = 0
) -> DualData:
    """Reads the data of a run.

    Args:
        names: sets and texts.
        settings: numbers of sentences.
        sets: the data sets.
        share: share of the source's train sentences whose labels are used.
        seed: seed of the draws.

    Raises:
        UserError: a set or text is missing or unsuitable.
    """
    languages = (names.source, *names.targets)
    if len(set(languages)) < len(languages):
        raise UserError(f"--targets: {' '.join(languages)} name a set twice")
    train = _subset(sets.sentences(names.source, "train"), settings.source_sentences, 0)
    count = max(1, round(share * len(train)))
    order = np.random.default_rng(seed).permutation(len(train))
    labelled = [train[index] for index in sorted(order[:count].tolist())]
    unlabelled_source = [(0, train[index].tokens) for index in sorted(order[count:].tolist())]
    dev = {
        name: _subset(sets.sentences(name, "dev"), settings.dev_sentences, 2) for name in languages
    }
    test = {
        name: _subset(sets.sentences(name, "test"), settings.test_sentences, 3)
        for name in languages
    }
    unlabelled = [*unlabelled_source, *_target_text(names, settings.target_sentences, sets)]
    data = DualData(languages, labelled, unlabelled, dev, test)
    _check_types(data)
    return data


def _target_text(names: Names, size: int, sets: DataSets) -> Iterator[tuple[int, Sequence[str]]]:
    """Sentences without labels in the target languages, with the numbers of the languages."""
    paths = names.paths()
    for number, target in enumerate(names.targets, start=1):
        if target in paths:
            sentences = drawn_sentences(paths[target], "--target-text", size, 1)
        else:
            sentences = _subset(sets.sentences(target, "train"), size, 1)
        yield from ((number, row.tokens) for row in sentences)


def _check_types(data: DualData) -> None:
    """Checks that each target shares a type with the source.

    Raises:
        UserError: one shares none.
    """
    source_types = set(data.labels.categories)
    for name in data.languages[1:]:
        target_types = {tag[2:] for row in data.dev[name] for tag in row.tags if tag != "O"}
        if target_types and not target_types & source_types:
            raise UserError(
                f"{name}: its types ({', '.join(sorted(target_types))}) are none of the source's; "
                "give a --label-map"
            )


def fingerprint(names: Names, sets: DataSets) -> list[object]:
    """Facts that change if the data changes: digests of the sets; names and sizes of the texts."""
    sizes = [
        (str(file.name), file.stat().st_size)
        for path in names.paths().values()
        for file in (sorted(Path(path).glob("part-*.parquet")) or [Path(path)])
        if file.is_file()
    ]
    return [{name: sets.fingerprint(name) for name in (names.source, *names.targets)}, sizes]


def _subset(rows: list[Sentence], size: int, seed: int) -> list[Sentence]:
    """Draws `size` of the sentences; 0 for all."""
    return draw(rows, size or len(rows), seed)
