"""Reads corpora: checked corpus folders, and the sentences of domain corpora."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nerbert.digests import fingerprint
from nerbert.errors import UserError
from nerbert.storage import parts
from nerbert.storage.identity import Identities
from nerbert.storage.places import Place
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet, TypedSpan

_NEEDED = ("id", "tokens", "ner_tags")
COLUMNS = (*_NEEDED, "unlinked", "phrases")
"""Columns of an example that pre-training reads; older corpora lack the last ones."""
SPLITS = ("train", "validation")
"""Splits of a corpus."""


def load_corpus(folder: str | os.PathLike[str]) -> Corpus:
    """Opens and checks a corpus.

        corpus = load_corpus("demo-corpus")
        print(next(corpus.sentences("train")))
        corpus.table("train").to_pandas()

    Args:
        folder: output folder of `nerbert corpus`, or the folder `corpus` in it.

    Raises:
        UserError: the folder holds no corpus, or a damaged one.
    """
    path = Path(folder)
    inner = path / "corpus"
    return Corpus.open(str(inner if (inner / "labels.json").is_file() else path))


class PlacedSentence(NamedTuple):
    """A tagged sentence of a corpus.

    Attributes:
        sentence: tokens and tags.
        starts: first character of each token; None in a corpus without the column `token_starts`.
        inner: mentions inside of mentions: first token, one after the last, category.
        unlinked: whether each token may belong to a name that is not marked; empty in a corpus
            without the column `unlinked`.
    """

    sentence: Sentence
    starts: list[int] | None
    inner: list[TypedSpan]
    unlinked: list[bool]


@dataclass(frozen=True)
class Corpus:
    """A checked corpus folder.

    Attributes:
        folder: folder with `train/`, `validation/` and `labels.json`.
        labels: categories of the corpus and their tags.
    """

    folder: Path
    labels: LabelSet

    @classmethod
    def open(cls, folder: str, unlinked: bool = False) -> Corpus:
        """Opens and checks a corpus.

        Args:
            folder: folder of the corpus.
            unlinked: whether the column `unlinked` is needed.

        Raises:
            UserError: the folder is not a corpus, its labels are inconsistent, or a split is empty
                or damaged.
        """
        path = Path(folder)
        if not (path / "labels.json").is_file():
            inner = path / "corpus"
            hint = (
                f"did you mean {inner}"
                if (inner / "labels.json").is_file()
                else "give the folder `corpus` that nerbert corpus wrote"
            )
            raise UserError(f"{folder}: no corpus (labels.json is missing); {hint}")
        corpus = cls(path, _labels(path / "labels.json"))
        for part in (part for split in SPLITS for part in corpus.parts(split)):
            parts.check_columns(part, (*_NEEDED, "unlinked") if unlinked else _NEEDED)
        for split in SPLITS:
            if not sum(corpus.rows[split]):
                raise UserError(
                    f"{path / split}: no examples; use a larger dump or another --validation-share"
                )
        return corpus

    def __len__(self) -> int:
        """Number of examples of both splits."""
        return sum(map(sum, self.rows.values()))

    def __repr__(self) -> str:
        """Folder and sizes, such as `Corpus('demo-corpus/corpus', 348 train, ...)`."""
        sizes = [f"{sum(rows):,} {split}" for split, rows in self.rows.items()]
        sizes.append(f"{len(self.labels.categories)} categories")
        return f"Corpus({str(self.folder)!r}, {', '.join(sizes)})"

    def parts(self, split: str) -> list[Path]:
        """The Parquet files of a split, in order.

        Raises:
            UserError: there is no such split.
        """
        if split not in SPLITS:
            raise UserError(f"no split {split!r}; there are {' and '.join(SPLITS)}")
        return sorted((self.folder / split).glob("part-*.parquet"))

    def sentences(self, split: str) -> Iterator[Sentence]:
        """Reads the tagged sentences of a split, in order."""
        for placed in self.placed(split):
            yield placed.sentence

    def placed(self, split: str) -> Iterator[PlacedSentence]:
        """Reads the tagged sentences of a split, in order, with the places of their tokens."""
        tags = self.labels.tags
        for part in self.parts(split):
            names = parts.column_names(part)
            optional = [name for name in ("token_starts", "inner", "unlinked") if name in names]
            for batch in parts.read_batches(Place(part), ["tokens", "ner_tags", *optional]):
                columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
                starts = columns.get("token_starts", [None] * len(batch))
                all_inner = columns.get("inner", [()] * len(batch))
                unlinked = columns.get("unlinked", [()] * len(batch))
                labelled = columns["tokens"], columns["ner_tags"]
                rows = zip(*labelled, starts, all_inner, unlinked, strict=True)
                for tokens, label_ids, places, inner, names_aside in rows:
                    sentence = Sentence(tokens, [tags[label_id] for label_id in label_ids])
                    spans = [(each["start"], each["end"], each["label"]) for each in inner or ()]
                    yield PlacedSentence(sentence, places, spans, list(names_aside))

    def table(self, split: str) -> pa.Table:
        """Reads all columns of a split into memory; `to_pandas()` makes a data frame of it.

        Raises:
            UserError: there is no such split.
        """
        paths = self.parts(split)
        return parts.read_tables(list(map(Place, paths)), pq.read_schema(paths[0]))

    @property
    def has_unlinked(self) -> bool:
        """Whether every part says which tokens may belong to names that are not marked."""
        all_parts = (part for split in SPLITS for part in self.parts(split))
        return all("unlinked" in pq.read_schema(part).names for part in all_parts)

    @cached_property
    def rows(self) -> dict[str, list[int]]:
        """Number of examples of each part, by split."""
        return {split: [parts.n_rows(part) for part in self.parts(split)] for split in SPLITS}

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the labels, and of the names and contents of the parts."""
        pairs = [(split, part) for split in SPLITS for part in self.parts(split)]
        facts = [(split, part.name, *Identities().of(Place(part))) for split, part in pairs]
        return fingerprint(self.labels.tags, facts)

    @cached_property
    def columns(self) -> list[str]:
        """The columns of `COLUMNS` that every part of the corpus has."""
        names = [parts.column_names(part) for split in SPLITS for part in self.parts(split)]
        return [column for column in COLUMNS if all(column in of_part for of_part in names)]


def _labels(path: Path) -> LabelSet:
    """Reads `labels.json`."""
    try:
        content = Place(path).read_json()
        labels = LabelSet(tuple(content["categories"]))
        fits = content["tags"] == labels.tags
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: no labels ({error!r}); make the corpus again") from error
    if not fits or not labels.categories:
        raise UserError(
            f"{path}: its tags are not O and B-, I- of each of its categories in order; "
            "make the corpus again"
        )
    return labels


def report_of(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The report of a corpus or a domain corpus; empty if the folder has none."""
    return (Place(folder) / "report.json").read_json_or_none() or {}


def domain_parts(folder: str) -> list[Path]:
    """The parts of a domain corpus, in order; empty if the folder is not a domain corpus."""
    return sorted((Path(folder) / "sentences").glob("part-*.parquet"))


def domain_texts(folder: str) -> Iterator[str]:
    """Reads the sentences of a domain corpus, in order."""
    for part in domain_parts(folder):
        for batch in parts.read_batches(Place(part), ["text"]):
            yield from batch.column("text").to_pylist()
