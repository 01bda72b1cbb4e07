"""What DualNER learns from: labelled source, text of the target languages, dev sets of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from finetune.conll import Sentence
from finetune.dual_config import DualSettings
from finetune.labelmaps import View
from finetune.runs import read_view, set_fingerprint
from finetune.words import word_spans
from ontology.labels import LabelSet
from pipeline.errors import UserError

_DRAWN_FROM = 100_000
"""Sentences of a text, from its first, that some are drawn from."""


@dataclass(frozen=True)
class DualData:
    """Sentences of all languages.

    Attributes:
        languages: names of their sets, the source's first.
        labelled: sentences of the source.
        unlabelled: sentences without labels, and the number of the language of each; those of the
            source are the share whose labels are not used.
        dev: of each language.
        test: likewise.
    """

    languages: tuple[str, ...]
    labelled: Sequence[Sentence]
    unlabelled: Sequence[tuple[int, Sequence[str]]]
    dev: Mapping[str, Sequence[Sentence]]
    test: Mapping[str, Sequence[Sentence]]

    @property
    def labels(self) -> LabelSet:
        """Of the labelled source."""
        types = sorted({tag[2:] for row in self.labelled for tag in row.tags if tag != "O"})
        return LabelSet(tuple(types))


def read(
    source: str, targets: Sequence[str], texts: Sequence[str], settings: DualSettings, view: View,
    share: float = 1.0, seed: int = 0,
) -> DualData:  # fmt: skip
    """Reads all that a run needs.

    Args:
        source: set.
        targets: sets.
        texts: text of the target languages, `SET=PATH`, or a path alone for a single target; where
            none is named, the train sentences of the target's set, without their labels.
        settings: how many sentences are used.
        view: how the sets are read.
        share: of the source's train sentences whose labels are used.
        seed: of what is drawn.

    Raises:
        UserError: a set or text is missing, or does not fit.
    """
    languages = (source, *targets)
    if len(set(languages)) < len(languages):
        raise UserError(f"--targets: {' '.join(languages)} name a set twice")
    train = _drawn(read_view(view, source, "train"), settings.source_sentences, 0)
    count = max(1, round(share * len(train)))
    order = np.random.default_rng(seed).permutation(len(train))
    labelled = [train[index] for index in sorted(order[:count].tolist())]
    unlabelled: list[tuple[int, Sequence[str]]] = [
        (0, train[index].tokens) for index in sorted(order[count:].tolist())
    ]
    paths = _paths(texts, targets)
    for number, target in enumerate(targets, start=1):
        if target in paths:
            found = [Sentence(words, []) for words in islice(_text(paths[target]), _DRAWN_FROM)]
        else:
            found = read_view(view, target, "train")
        unlabelled += [(number, row.tokens)
                       for row in _drawn(found, settings.target_sentences, 1)]  # fmt: skip
    dev = {name: _drawn(read_view(view, name, "dev"), settings.dev_sentences, 2)
           for name in languages}  # fmt: skip
    test = {name: read_view(view, name, "test") for name in languages}
    data = DualData(languages, labelled, unlabelled, dev, test)
    known = set(data.labels.categories)
    for name in targets:
        other = {tag[2:] for row in dev[name] for tag in row.tags if tag != "O"}
        if other and not other & known:
            raise UserError(f"{name}: its types ({', '.join(sorted(other))}) are none of the "
                            "source's; give a --label-map")  # fmt: skip
    return data


def fingerprint(source: str, targets: Sequence[str], texts: Sequence[str]) -> list[object]:
    """Tells data apart: sentences of the sets; names and sizes of the texts."""
    sizes = [
        (str(file.name), file.stat().st_size)
        for path in _paths(texts, targets).values()
        for file in (sorted(Path(path).glob("part-*.parquet")) or [Path(path)]) if file.is_file()
    ]  # fmt: skip
    return [{name: set_fingerprint(name) for name in (source, *targets)}, sizes]


def _drawn(rows: list[Sentence], size: int, seed: int) -> list[Sentence]:
    if not size or size >= len(rows):
        return rows
    order = np.random.default_rng(seed).permutation(len(rows))[:size]
    return [rows[index] for index in sorted(order.tolist())]


def _paths(texts: Sequence[str], targets: Sequence[str]) -> dict[str, str]:
    paths: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals and len(targets) == 1:
            name, path = targets[0], text
        if name not in targets or not path:
            raise UserError(f"--target-text {text}: write SET=PATH with a set of --targets")
        paths[name] = path
    return paths


def _text(path: str) -> Iterator[list[str]]:
    """Words of each sentence of a text file (one a line), or of documents of the pipeline."""
    folder = Path(path)
    inner = folder / "documents"
    parts = sorted((inner if inner.is_dir() else folder).glob("part-*.parquet"))
    if folder.is_file():
        with folder.open(encoding="utf-8") as file:
            lines = (line.strip() for line in file)
            yield from (_words(line) for line in lines if line)
    elif not parts:
        raise UserError(f"--target-text {path}: no text file, and no folder of documents; give one "
                        "sentence a line, or the output of run_pipeline.py")  # fmt: skip
    for part in parts:
        columns = ["text", "sentence_starts", "sentence_ends"]
        for batch in pq.ParquetFile(part).iter_batches(256, columns=columns):
            for row in batch.to_pylist():
                spans = zip(row["sentence_starts"] or (), row["sentence_ends"] or (), strict=True)
                yield from (_words(row["text"][start:end]) for start, end in spans)


def _words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]
