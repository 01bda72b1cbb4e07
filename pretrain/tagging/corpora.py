"""The corpora of a pre-training: their sentences together, with one set of labels."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, concatenate_datasets

from nerbert.digests import fingerprint
from nerbert.errors import UserError
from nerbert.storage.identity import Identities
from nerbert.text.corpus import Corpus, report_of
from nerbert.text.tags import LabelSet
from ontology.classes import ClassTree
from pretrain.settings import PretrainSettings
from pretrain.tagging.posts import posts
from pretrain.tagging.titles import LISTS_VERSION, Names, as_rows, lists_of_names, names_of_classes
from pretrain.training.features import category_view, load_split


class Corpora:
    """Corpora, and lists of names by `--types`.

    Attributes:
        labels: labels of the view, of all corpora.
        new_labels: label id of the view for each label id of the rows, shape (old tags,). The label
            ids of a corpus, but for O, follow those of the corpus before.
    """

    def __init__(self, settings: PretrainSettings) -> None:
        """Opens the corpora, and reads the files of types.

        Raises:
            UserError: a corpus or a file is unsuitable.
        """
        self._settings = settings
        self._all = [Corpus.open(path, bool(settings.mask_unlinked)) for path in settings.corpus]
        views = [category_view(corpus.labels, settings.categories) for corpus in self._all]
        self._names = self._read_names()
        categories = dict.fromkeys(name for labels, _ in views for name in labels.categories)
        self.labels = LabelSet((*categories, *sorted(self._names.keys() - categories.keys())))
        self._ids = {tag: label_id for label_id, tag in enumerate(self.labels.tags)}
        of_rows = [
            np.array([self._ids[tag] for tag in labels.tags])[new][1:] for labels, new in views
        ]
        if self._names:
            of_rows.append(np.arange(1, len(self._ids)))
        self.new_labels = np.concatenate([[0], *of_rows])

    def _read_names(self) -> Names:
        if self._settings.head != "open":
            for name in ("types", "teacher"):
                if getattr(self._settings, name):
                    raise UserError(f"--{name}: only --head open learns from it; leave it out")
        if not self._settings.types:
            return {}
        return names_of_classes(self._settings.types, self._languages, ClassTree.shipped())

    @property
    def _languages(self) -> list[str]:
        return self.facts("language") or ["en"]

    def __str__(self) -> str:
        return ", ".join(str(corpus.folder) for corpus in self._all)

    def facts(self, key: str) -> list[Any]:
        """The values of a key in the reports of the corpora, without repetition."""
        values = (report_of(corpus.folder).get(key) for corpus in self._all)
        flat = (
            fact for value in values for fact in (value if isinstance(value, list) else [value])
        )
        return [fact for fact in dict.fromkeys(flat) if fact]

    @property
    def description(self) -> str:
        """Names of the dumps and files that the sentences were made from, for the card."""
        dumps = ", ".join(self.facts("dumps")) or str(self)
        return f"{dumps}, and lists of titles of typed pages" if self._names else dumps

    @property
    def only(self) -> Corpus | None:
        """The corpus, if it is only one."""
        return self._all[0] if len(self._all) == 1 else None

    @property
    def has_unlinked(self) -> bool:
        """Whether all corpora say which tokens may belong to names that are not marked."""
        return all(corpus.has_unlinked for corpus in self._all)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the corpora and the files of types."""
        digests = [corpus.fingerprint for corpus in self._all]
        types = [Identities().of(path) for path in self._settings.types]
        return (
            digests[0]
            if len(digests) == 1 and not types
            else fingerprint(digests, types, LISTS_VERSION)
        )

    def rows(self, split: str) -> Dataset:
        """The sentences of all corpora, one corpus after the other, and the lists for training.

        Args:
            split: "train" or "validation".
        """
        settings, shift = self._settings, 0
        examples = settings.train_examples if split == "train" else 0
        parts = []
        for corpus in self._all:
            rows = load_split(corpus, split, examples, settings.cache_dir)
            parts.append(_shifted(rows, shift))
            shift += len(corpus.labels.tags) - 1
        common = [c for c in parts[0].column_names if all(c in of.column_names for of in parts)]
        together = concatenate_datasets([rows.select_columns(common) for rows in parts])
        if not self._names or split != "train":
            return together
        ids = {tag: label_id and label_id + shift for tag, label_id in self._ids.items()}
        lists = as_rows(lists_of_names(self._names, len(together)), ids, together)
        user_posts = posts(together, self._names, ids, ClassTree.shipped(), self._languages)
        return concatenate_datasets([together, lists, user_posts])


def _shifted(rows: Dataset, shift: int) -> Dataset:
    """Rows whose label ids, but for O, are larger by a number."""
    if shift == 0:
        return rows

    def shifted(table: pa.Table) -> pa.Table:
        column: Any = table.column("ner_tags").combine_chunks()
        old = column.flatten()
        new = pc.if_else(pc.equal(old, 0), old, pc.add(old, shift)).cast(old.type)
        ends = pc.cumulative_sum(pc.list_value_length(column))
        offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
        place = table.column_names.index("ner_tags")
        return table.set_column(place, "ner_tags", type(column).from_arrays(offsets, new))

    return rows.with_format("arrow").map(shifted, batched=True).with_format(None)
