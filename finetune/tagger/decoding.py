"""Decoders: what makes tags and mentions of the scores that a model gives words."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from finetune.data.views import type_words
from finetune.heads.windows import Floats, LinearHead
from finetune.scoring.calibration import AS_THEY_ARE, Calibration
from finetune.tagger.entities import Entities, Prediction, entities_of
from nerbert.errors import UserError
from nerbert.text.tags import tags_to_spans
from nerbert.text.tokens import Span
from ontology.classes import spaced

Tagged = tuple[list[str], Floats]
"""Words of a sentence, and their scores."""


@dataclass(frozen=True)
class Decoder:
    """Makes tags and mentions of the scores of words.

    Attributes:
        tags: the tags, by label id.
        head: the decoding head: a `finetune.heads.head.Head`, `windows.LinearHead` or `Types`.
        in_iob2: makes strict IOB2 of the tags of a sentence; see `nerbert.text.schemes.ModelTags`.
        calibration: makes the mean score of a mention's words its score.
        min_score: smallest score of a mention that is kept.
    """

    tags: list[str]
    head: Any
    in_iob2: Callable[[Sequence[str]], list[str]] = list
    calibration: Calibration = AS_THEY_ARE
    min_score: float = 0.0

    @property
    def types(self) -> list[str]:
        """The types, in the order of their tags."""
        return list(dict.fromkeys(tag[2:] for tag in self.tags if tag != "O"))

    def decode(self, logits: Floats) -> tuple[list[str], list[float]]:
        """Tag of each word of a sentence, in strict IOB2, and its probability."""
        best, scores = self.head.decode(logits)
        return self.in_iob2([self.tags[index] for index in best]), scores

    def prediction(
        self,
        text: str | Sequence[str],
        spans: Sequence[Sequence[Span]],
        sentences: Sequence[Tagged],
        probabilities: bool,
        overlapping: bool,
    ) -> Prediction:
        """Puts the sentences of a text together: places of words, words, tags and mentions.

        Args:
            text: the text, or its tokens.
            spans: place of each word of each sentence.
            sentences: words and scores of each sentence.
            probabilities: whether the probabilities of all tags are kept.
            overlapping: whether a mention has an entity of each type that fits.
        """
        decoded = [self.decode(logits) for _, logits in sentences]
        places = [span for sentence in spans for span in sentence]
        tags = [tag for best, _ in decoded for tag in best]
        scores = [score for _, chances in decoded for score in chances]
        rows = None
        if probabilities:
            per_sentence = [self.head.probabilities(logits) for _, logits in sentences]
            rows = np.concatenate([np.empty((0, len(self.tags)), np.float32), *per_sentence])
        words = [word for words, _ in sentences for word in words]
        entities = entities_of(places, tags, scores, text, self.calibration)
        prediction = Prediction(words, places, tags, scores, entities, rows).at_least(
            self.min_score
        )
        return self._with_all_types(prediction, sentences) if overlapping else prediction

    def _with_all_types(self, prediction: Prediction, sentences: Sequence[Tagged]) -> Prediction:
        """A prediction with an entity of each type that fits a mention, the best one first."""
        entities = iter(prediction.entities)
        all_entities = []
        place = 0
        for words, logits in sentences:
            for first, end, _ in tags_to_spans(prediction.tags[place : place + len(words)]):
                best = next(entities)
                chances = self.head.fitting(logits, first, end)
                alternatives = [
                    replace(best, type=self.types[kind], score=chance)
                    for kind, chance in sorted(chances.items(), key=lambda pair: -pair[1])
                    if self.types[kind] != best.type and chance >= self.min_score
                ]
                all_entities += [best, *alternatives]
            place += len(words)
        return replace(prediction, entities=Entities(all_entities, prediction.entities.text))


NOT_TRAINED = Decoder([], LinearHead())
"""The decoder of a tagger without a model."""


def names_of_types(types: str | Sequence[str] | Mapping[str, str | None]) -> dict[str, str | None]:
    """Names of types for an open head -> in words; the type of all else, if any, is the last.

    Of several names that are alike but for case, spaces, underscores or marks that nobody sees, the
    first one counts. "PoliticalParty" is "political party", and "PER" is "person".

    Args:
        types: a name in words, such as "political party"; several; or name of each type -> in
            words, None for what is of none of the others.

    Raises:
        UserError: there is no type, one is no text, or two types of a mapping have the same words:
            they would share the score of what both fit.
    """
    names: list[tuple[str, str | None]]
    if isinstance(types, Mapping):
        names = sorted(types.items(), key=lambda pair: pair[1] is None)
    else:  # its mentions need a name, so None is no type here
        names = [(name, _checked(name)) for name in ([types] if isinstance(types, str) else types)]
    if not names or names[0][1] is None:
        raise UserError("--types: give at least one type")
    in_words: dict[str, str | None] = {}
    first: dict[str | None, str | None] = {}  # of the names with the same key
    for name, words in names:
        key = None if words is None else _key(_checked(words))
        if key not in first:
            first[key], in_words[name] = words, key
        elif isinstance(types, Mapping):
            raise UserError(f"--types: {first[key]!r} and {words!r} are alike; give one of them")
    return in_words


def _checked(words: object) -> str:
    """A name of a type; an error if it is none."""
    if not isinstance(words, str) or not _key(words):
        raise UserError(f"--types: {words!r} is no type; give names in words")
    if "," in words.replace(", ", ""):
        raise UserError(f"--types: {words!r} has a comma; give types with spaces between them")
    return words


def _key(name: str) -> str:
    """The words of a name, in lower case: "PoliticalParty" and "political_party" are alike."""
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf").strip()
    if visible.isupper():
        visible = type_words(visible) or visible
    return " ".join(unicodedata.normalize("NFKC", spaced(visible)).split())


def calibration_in(config: Any, where: str) -> Calibration | None:
    """The calibration in the configuration of a model; None if there is none.

    Raises:
        UserError: it has another form.
    """
    value = getattr(config, "mention_scores", None)
    try:
        return None if value is None else Calibration.parsed(value)
    except ValueError as error:
        raise UserError(f"mention_scores in its config.json: {error}", where) from None
