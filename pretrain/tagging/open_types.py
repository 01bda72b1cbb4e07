"""How an open head tags words: a path of O, B and I, and the type of each mention; without torch.

Scores of words are compared with the vectors of the names of types; see `open_head`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nerbert.errors import UserError
from nerbert.text.tags import LabelSet, tags_to_spans
from ontology.categories import ENTITY
from ontology.sources.nouns import words_of_languages
from pretrain.training.subwords import softmax

TAGS = 3
"""Number of tags without types: O, B and I."""

Floats = npt.NDArray[np.float32]
LABELS = LabelSet((ENTITY,))
"""Labels of mentions without types."""

SIZE = 256
"""Size of the vectors that are compared."""
_BATCH = 256  # names that are encoded together
_KEPT = 1000  # names whose vectors are kept
_FITS = 0.75  # smallest probability of a type against none that counts as clear
_RIVALS = 6
"""Types that a mention may have. On CrossNER's dev splits of science and music, with 200 classes of
the ontology beside the types of the set, F1 is 4.9 and 5.6 points higher than with all of them, and
without these the same."""
PERSON_COST = 2.0
"""What "person" loses beside a kind of persons; see `person_costs`. On CrossNER's dev splits F1 is
1.6 points higher than without, with a small encoder and with a base one, and 1.5 and 3 are within
0.3 points of it."""
_LIKE_PERSON = 0.35
"""Smallest cosine of a kind of persons with "person". In the shipped taggers "researcher" has 0.43
and 0.44, "nationality" 0.17 and 0.07; in a weak one of five languages "location" has 0.27."""


class Numbers(NamedTuple):
    """The numbers of an open head.

    Attributes:
        none: cosine of what is of none of the types.
        scale: logarithm of the factor of the cosines.
        evidence: what the score of the best type above that of none is worth against O.
        person: what "person" loses beside a kind of persons; see `person_costs`.
    """

    none: float
    scale: float
    evidence: float = 0.0
    person: float = 0.0


def encoded_names(
    encode: Callable[[Sequence[str]], Floats], names: Sequence[str], cached: dict[str, Floats]
) -> Floats:
    """Vectors of the names of types, shape (names, size).

    Args:
        encode: makes the vectors of at most `_BATCH` names.
        names: the names, in words.
        cached: vectors of names that are encoded already, at most `_KEPT`; new ones are added.
    """
    # A copy: other threads add names, too, and remove the oldest.
    vectors = {name: vector for name in names if (vector := cached.get(name)) is not None}
    new = [name for name in dict.fromkeys(names) if name not in vectors]
    for first in range(0, len(new), _BATCH):
        batch = new[first : first + _BATCH]
        vectors.update(zip(batch, encode(batch), strict=True))
    cached.update({name: vectors[name] for name in new})
    for name in list(cached)[: max(0, len(cached) - _KEPT)]:
        cached.pop(name, None)
    return np.stack([vectors[name] for name in names])


@cache
def _persons() -> frozenset[str]:
    """Names of the class of all persons, in all languages that have one, in lower case."""
    labels = [classes.get("Person", []) for classes in words_of_languages("labels.tsv").values()]
    return frozenset({"person", "people", *(name.lower() for row in labels for name in row)})


def person_costs(words: Sequence[str], names: Floats, cost: float) -> Floats:
    """What is taken from the scores of types, and of none of them, when they are compared.

    Whoever looks for persons and researchers means by persons those who are no researchers, and
    "person" is nearer to all of them than a name that training hardly had.

    Args:
        words: the types, in words.
        names: vectors of their names, shape (types, size).
        cost: what "person" loses if another type is a kind of persons, by its vector.

    Returns:
        Shape (types + 1,).
    """
    costs = np.zeros(len(words) + 1, np.float32)
    is_person = np.array([word.lower() in _persons() for word in words])
    if cost and is_person.any():
        is_kind = (names[~is_person] @ names[is_person].T >= _LIKE_PERSON).any(0)
        costs[:-1][is_person] = cost * is_kind
    return costs


def check_names(names: Sequence[str], subwords: int, limit: int) -> None:
    """Refuses names that are too long for the encoder.

    Args:
        names: names of types.
        subwords: number of sub-words of the longest one, with special ones.
        limit: largest number of sub-words that the encoder takes.

    Raises:
        UserError: one has more.
    """
    if subwords > limit:
        longest = max(names, key=len)[:40]
        raise UserError(f"the type {longest!r}... has more than {limit} sub-words")


def best_path(chances: Floats) -> list[int]:
    """The most probable tags of the words of a text, in which an I follows a B or an I.

    Args:
        chances: probabilities of O, B and I, shape (words, 3).
    """
    best = [0.0, -np.inf, -np.inf]
    before: list[tuple[int, int, int]] = []
    for outside, begins, goes_on in np.log(np.maximum(chances, 1e-9)).tolist():
        last = max(range(TAGS), key=best.__getitem__)
        inner = 1 if best[1] >= best[2] else 2
        before.append((last, last, inner))
        best = [best[last] + outside, best[last] + begins, best[inner] + goes_on]
    path = [max(range(TAGS), key=best.__getitem__)]
    for follows in reversed(before[1:]):
        path.append(follows[path[-1]])
    return path[::-1][: len(chances)]


def _chances(means: Floats) -> Floats:
    """Probabilities of types, and of none of them, by their scores.

    Types far behind have none: 200 of them would make the best one improbable together.
    """
    rivals = np.argsort(-means[:-1], kind="stable")[:_RIVALS]
    among = [*rivals.tolist(), len(means) - 1]
    chances = np.zeros_like(means)
    chances[among] = softmax(means[among])
    return chances


class Types:
    """Tags words by the scores of an open head, with some types.

    Attributes:
        names: vectors of the names of the types, shape (types, size).
        none: cosine of what is of none of the types.
        factor: factor of the cosines.
    """

    def __init__(
        self, words: Sequence[str], names: Floats, numbers: Numbers, keeps_others: bool = False
    ) -> None:
        """Takes the vectors of the types' names.

        Args:
            words: the types, in words.
            names: vectors of the names, shape (types, size).
            numbers: numbers of the head.
            keeps_others: whether mentions of none of the types are kept, as of a further type.
        """
        self.names, self.none, self.factor = names, numbers.none, float(np.exp(numbers.scale))
        self._evidence = numbers.evidence
        self._types, self._keeps_others = len(names), keeps_others
        self._costs = person_costs(words, names, numbers.person)

    def decode(self, logits: Floats) -> tuple[list[int], list[float]]:
        """Tag of each word, and its probability.

        Args:
            logits: scores and vectors, shape (words, 3 + size or more).
        """
        parts, kinds = self._scores(logits)
        tags = [0] * len(logits)
        scores: list[float] = parts[:, 0].tolist()
        spans = tags_to_spans([LABELS.tags[tag] for tag in best_path(parts)])
        for first, end, _ in spans:
            chances = _chances(kinds[first:end].mean(0) - self._costs)
            kind = int(chances.argmax())
            if kind < self._types or self._keeps_others:
                tags[first:end] = [2 * kind + 1] + [2 * kind + 2] * (end - first - 1)
                scores[first:end] = (chances[kind] * (1 - parts[first:end, 0])).tolist()
        return tags, scores

    def fitting(self, logits: Floats, first: int, end: int) -> dict[int, float]:
        """Types that fit a mention clearly better than none, and the probability of each by itself.

        Args:
            logits: scores and vectors of the words of a sentence, shape (words, 3 + size or more).
            first: first word of the mention.
            end: one after its last word.
        """
        parts, kinds = self._scores(logits[first:end])
        means = kinds.mean(0)
        fits = 1 / (1 + np.exp(means[-1] - means[: self._types]))
        chances = (fits * (1 - parts[0, 0])).tolist()
        return {kind: chances[kind] for kind in np.flatnonzero(fits >= _FITS).tolist()}

    def probabilities(self, logits: Floats) -> Floats:
        """Probabilities of the tags of each word, shape (words, 1 + 2 * types).

        If mentions of none of the types are kept, these are one type more.
        """
        parts, scores = self._scores(logits)
        kinds = softmax(scores - self._costs)[:, : self._types + self._keeps_others]
        joint = kinds[:, :, None] * parts[:, None, 1:]
        chances: Floats = np.concatenate([parts[:, :1], joint.reshape(len(joint), -1)], 1)
        return chances

    def _scores(self, logits: Floats) -> tuple[Floats, Floats]:
        """Probabilities of O, B and I, and scores of the types and of none, of each word."""
        cosines = logits[:, TAGS : TAGS + SIZE] @ self.names.T
        none = np.full((len(logits), 1), self.none, np.float32)
        kinds: Floats = np.concatenate([cosines, none], 1) * np.float32(self.factor)
        tags = logits[:, :TAGS].copy()
        tags[:, 0] -= self._evidence * (kinds[:, :-1].max(1) - kinds[:, -1])
        return softmax(tags), kinds
