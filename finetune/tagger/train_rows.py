"""Collects the training sentences: target, optional source, unlabelled text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from finetune.data.sets import Data, DataSets, are_named_sets
from finetune.data.views import UNIFIED, View
from finetune.heads.head import SOURCE, TARGET, TEXT, head_class
from finetune.settings import FitSettings
from nerbert.errors import UserError
from nerbert.text.columns import Sentence


@dataclass(frozen=True)
class TrainRows:
    """The sentences of a training.

    Attributes:
        before: sentences of the source to train on before; empty for none.
        before_kinds: domain of each, plus `TEXT` if it has no labels.
        train: train sentences.
        kinds: domain of each, likewise.
        dev: dev sentences, of the target.
        types: entity types of the target and of the source, sorted.
    """

    before: list[Sentence]
    before_kinds: list[int]
    train: list[Sentence]
    kinds: list[int]
    dev: list[Sentence]
    types: list[list[str]]


def train_rows(
    data: Data,
    dev: Data | None,
    before: Data | None,
    keep_types: bool,
    kinds: Sequence[int] | None,
    settings: FitSettings,
) -> TrainRows:
    """Reads the sentences of `Tagger.fit`; see there for the arguments.

    Raises:
        UserError: they, or the text of the target, cannot be read.
    """
    are_several = any(
        are_named_sets(given_data) for given_data in (data, before) if given_data is not None
    )
    sets = DataSets(view=View(UNIFIED) if are_several and not keep_types else View())
    first = sets.sentences(before, "train") if before is not None else []
    train = sets.sentences(data, "train")
    if not train:
        raise UserError("there are no sentences to train on; give some, or names of sets")
    dev_rows = sets.sentences(data if dev is None else dev, "dev", needed=dev is not None)
    if not settings.attend_padding:
        dev_rows = sorted(dev_rows, key=lambda row: len(row.tokens))  # batches need less padding
    head = head_class(settings.head)
    train, train_kinds = head.train_rows(train, kinds or [TARGET] * len(train), settings)
    first, source_kinds = head.train_rows(first, [SOURCE] * len(first), settings)
    type_sets: list[set[str]] = [set(), set()]
    domains = [*source_kinds, *train_kinds, *[TARGET] * len(dev_rows)]
    for row, kind in zip([*first, *train, *dev_rows], domains, strict=True):
        type_sets[kind % TEXT].update(tag[2:] for tag in row.tags if tag != "O")
    if not any(type_sets):
        raise UserError("no train sentence has a mention; are the tags in another --columns?")
    return TrainRows(
        first,
        source_kinds,
        train,
        train_kinds,
        list(dev_rows),
        [sorted(types) for types in type_sets],
    )
