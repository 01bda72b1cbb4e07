"""Texts with labels, by people or by a tagger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from finetune.tagger.entities import Entity, Prediction, entities_of, joined
from nerbert.text.columns import Sentence
from nerbert.text.tags import TypedSpan, tags_to_spans
from nerbert.text.tokens import Span
from nerbert.text.words import text_of
from ontology.categories import ENTITY


@dataclass(frozen=True)
class Labelled:
    """A text with its words and mentions.

    Attributes:
        text: the text.
        words: first character of each word, and one after its last.
        tags: tag of each word.
        entities: the mentions, with offsets in characters.
        is_predicted: whether a tagger found them.
        doubtful: whether a word may belong to a mention whose score is too small.
        inner: mentions inside of mentions: first word, one after the last, type.
        has_unknown: whether there are names of unknown type, or mentions that are not sure.
    """

    text: str
    words: list[Span]
    tags: list[str]
    entities: list[Entity]
    is_predicted: bool
    doubtful: list[bool]
    inner: Sequence[TypedSpan] = ()
    has_unknown: bool = False

    @classmethod
    def of_sentence(
        cls,
        sentence: Sentence,
        starts: Sequence[int] | None = None,
        inner: Sequence[TypedSpan] = (),
        unlinked: Sequence[bool] = (),
    ) -> Labelled:
        """A sentence of a set or a corpus.

        Args:
            sentence: the sentence.
            starts: first character of each token; None if single spaces join the tokens.
            inner: mentions inside of mentions.
            unlinked: whether each token may belong to a name that is not marked.
        """
        if starts is None:
            text, words = joined(sentence.tokens)
        else:
            text = text_of(sentence.tokens, starts)
            words = [(s, s + len(w)) for w, s in zip(sentence.tokens, starts, strict=True)]
        entities = entities_of(words, sentence.tags, [1.0] * len(words), text)
        unknown = any(unlinked) or f"B-{ENTITY}" in sentence.tags
        certain = [False] * len(words)
        return cls(text, words, sentence.tags, entities, False, certain, inner, unknown)

    @classmethod
    def of_prediction(cls, text: str, prediction: Prediction, min_score: float = 0) -> Labelled:
        """A text that a tagger has labelled, with the mentions of at least some score."""
        filtered = prediction.at_least(min_score)
        doubtful = [tag != all_ for tag, all_ in zip(filtered.tags, prediction.tags, strict=True)]
        return cls(
            text,
            prediction.spans,
            filtered.tags,
            filtered.entities,
            True,
            doubtful,
            has_unknown=any(doubtful),
        )

    @property
    def spans(self) -> list[TypedSpan]:
        """All mentions, also those inside of others: first word, one after the last, type."""
        return sorted([*tags_to_spans(self.tags), *self.inner])

    @property
    def tokens(self) -> list[str]:
        """The words, without their offsets."""
        return [self.text[start:end] for start, end in self.words]
