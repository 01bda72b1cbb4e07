"""Opening a corpus folder: its labels, its parts, and views of its categories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ontology.categories import ENTITY, CategorySet
from ontology.classes import ClassTree
from ontology.labels import LabelSet
from pipeline.errors import UserError
from pretrain.config import AS_IN_CORPUS

COLUMNS = ("id", "tokens", "ner_tags", "unlinked")
"""Columns of an example that the pre-training reads; the last where there is one."""

_NEEDED = COLUMNS[:3]
SPLITS = ("train", "validation")


@dataclass(frozen=True)
class Corpus:
    """A checked corpus folder.

    Attributes:
        folder: with `train/`, `validation/` and `labels.json`.
        labels: of the corpus.
    """

    folder: Path
    labels: LabelSet

    @classmethod
    def open(cls, folder: str, unlinked: bool = False) -> Corpus:
        """Opens and checks a corpus.

        Args:
            folder: of the corpus.
            unlinked: whether the column `unlinked` is needed.

        Raises:
            UserError: the folder is no corpus, its labels do not fit, a split is empty or damaged.
        """
        path = Path(folder)
        if not (path / "labels.json").is_file():
            inner = path / "corpus"
            hint = f"did you mean {inner}" if (inner / "labels.json").is_file() else (
                "give the folder `corpus` that run_pipeline.py wrote")  # fmt: skip
            raise UserError(f"{folder}: no corpus (labels.json is missing); {hint}")
        corpus = cls(path, _labels(path / "labels.json"))
        for split in SPLITS:
            corpus._check_parts(split, unlinked)
        for split in SPLITS:
            if not sum(corpus.rows[split]):
                raise UserError(
                    f"{path / split}: no examples; use a larger dump or another --validation-share"
                )
        return corpus

    def parts(self, split: str) -> list[Path]:
        """The Parquet files of a split, in order."""
        return sorted((self.folder / split).glob("part-*.parquet"))

    def token_lists(self, split: str) -> Iterator[list[str]]:
        """The tokens of each example of a split."""
        for part in self.parts(split):
            for batch in pq.ParquetFile(part).iter_batches(columns=["tokens"]):
                yield from batch.column("tokens").to_pylist()

    @cached_property
    def rows(self) -> dict[str, list[int]]:
        """Examples of each part, by split."""
        return {s: [pq.read_metadata(part).num_rows for part in self.parts(s)] for s in SPLITS}

    @cached_property
    def fingerprint(self) -> str:
        """Tells corpora apart: by labels, and names, sizes and lengths of the parts."""
        facts: list[Any] = [self.labels.tags]
        for split, rows in self.rows.items():
            for part, length in zip(self.parts(split), rows, strict=True):
                facts.append((split, part.name, part.stat().st_size, length))
        return blake2b(json.dumps(facts).encode(), digest_size=8).hexdigest()

    @cached_property
    def columns(self) -> list[str]:
        """Those of `COLUMNS` that every part has."""
        parts = [part for split in SPLITS for part in self.parts(split)]
        names = [set(pq.read_schema(part).names) for part in parts]
        return [column for column in COLUMNS if all(column in found for found in names)]

    def _check_parts(self, split: str, unlinked: bool) -> None:
        for part in self.parts(split):
            try:
                names = pq.read_schema(part).names
            except (pa.ArrowInvalid, OSError) as error:
                raise UserError(
                    f"{part}: no Parquet file ({error}); make the corpus anew"
                ) from error
            for name in COLUMNS if unlinked else _NEEDED:
                if name not in names:
                    raise UserError(f"{part}: no column {name!r}; make the corpus anew")


def _labels(path: Path) -> LabelSet:
    """Labels of `labels.json`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        labels = LabelSet(tuple(content["categories"]))
        fits = content["tags"] == labels.tags
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: no labels ({error!r}); make the corpus anew") from error
    if not fits or not labels.categories:
        raise UserError(
            f"{path}: its tags are not O and B-, I- of each of its categories in order; "
            "make the corpus anew"
        )
    return labels


def view(labels: LabelSet, name: str) -> tuple[LabelSet, npt.NDArray[np.int64]]:
    """The labels of a category view, and the new label id of each old one, shape (old tags,).

    A corpus's category is a class of the ontology or, in corpora made with `nerbert315`, a name of
    that list; a table of one's own may name the corpus's categories themselves.

    Raises:
        UserError: there is no such view, or it does not know a category of the corpus.
    """
    if name == AS_IN_CORPUS:
        return labels, np.arange(len(labels.tags))
    try:
        categories = CategorySet.load(name).coarsening(labels.categories, ClassTree.shipped())
    except ValueError as error:
        raise UserError(f"--categories {name}: {error}") from error
    new = LabelSet((ENTITY, *sorted(set(categories) - {ENTITY})))
    position = {category: index for index, category in enumerate(new.categories)}
    begins = np.array([new.begin(position[category]) for category in categories])
    return new, np.concatenate([[0], np.stack([begins, begins + 1], axis=1).ravel()])
