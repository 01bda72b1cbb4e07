"""Keeps the types of an old tagger, which labels them where a set of new types does not."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from finetune.tagger.tagger import Tagger
from nerbert.text.columns import Sentence
from nerbert.text.tags import spans_to_tags, tags_to_spans

_LOGGER = logging.getLogger("nerbert")


@dataclass(frozen=True)
class OldTypes:
    """The mentions of an old tagger in sentences that are labelled with new types.

    A set says nothing about types that it does not have: a person in it is O. Trained so, a tagger
    forgets persons. As in ExtendNER (Monaikul et al. 2021, AAAI) the old tagger says where they
    are.

    Attributes:
        tagger: the old tagger.
        new: types that the set has; what it says of them counts.
    """

    tagger: Tagger
    new: frozenset[str]

    @classmethod
    def of(cls, tagger: Tagger, rows: Sequence[Sentence]) -> OldTypes:
        """Takes a tagger, and all sentences of a set."""
        return cls(
            tagger, frozenset(name for row in rows for _, _, name in tags_to_spans(row.tags))
        )

    def added(self, rows: Sequence[Sentence]) -> list[Sentence]:
        """The sentences with the old tagger's mentions that overlap none of the set.

        Its types that the set has, too, are left out: there the set is right.
        """
        predicted = self.tagger.tag([row.tokens for row in rows])
        return [self._joined(row, tags) for row, tags in zip(rows, predicted, strict=True)]

    def _joined(self, row: Sentence, old_tags: Sequence[str]) -> Sentence:
        spans = tags_to_spans(row.tags)
        occupied = {place for start, end, _ in spans for place in range(start, end)}
        spans += [
            (start, end, name)
            for start, end, name in tags_to_spans(old_tags)
            if name not in self.new and occupied.isdisjoint(range(start, end))
        ]
        return Sentence(row.tokens, spans_to_tags(spans, len(row.tokens)))

    def kept_types(self, types: Collection[str], has_rows: bool) -> list[str]:
        """Old types that no train sentence has, and whose rows of the head can be kept.

        They are logged, also if they cannot be kept: nothing teaches these types.

        Args:
            types: types of the train sentences, with the mentions of the old tagger.
            has_rows: whether the training begins with the head of the old tagger.
        """
        without = [name for name in self.tagger.types if name not in types]
        if without:
            _LOGGER.warning(
                "%d old types have no example in these sentences, and %s: %s",
                len(without),
                "may be forgotten" if has_rows else "are lost; give the old tagger as --base-model",
                ", ".join(without),
            )
        return without if has_rows else []

    def scored(self, tags: Sequence[Sequence[str]]) -> list[list[str]]:
        """Predicted tags without the types that the set says nothing about."""
        return [[tag if tag[2:] in self.new else "O" for tag in row] for row in tags]
