"""The answers of voters: all that each states about one entity, and the classes that this means."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from nerbert.arrays import unique
from ontology.entity_table import Int8, Int32
from ontology.titles import Keys
from ontology.voting.statements import MOST_VOTERS, Bools, Floats, Hierarchy, Ints, Statements

_PIECE = 1 << 19
"""Entities whose answers are made together: it bounds the memory."""


@dataclass(frozen=True)
class Answers:
    """Each voter's answer about each entity that it knows.

    Attributes:
        entities: entity of each answer, ascending, shape (answers,).
        voters: voter of each answer, shape (answers,).
        kinds: number of the kind of each answer, shape (answers,). Answers of one kind are of the
            same voter and state the same classes.
        kind_voters: voter of each kind, shape (kinds,).
        statement_keys: kinds and classes that these state, as kind * classes + class, sorted.
    """

    entities: Int32
    voters: Int8
    kinds: Int32
    kind_voters: Int8
    statement_keys: Ints

    @classmethod
    def of(cls, statements: Statements, size: int) -> Answers:
        """The answers of some statements about `size` classes."""
        bounds = range(0, int(statements.entities.max(initial=0)) + 1, _PIECE)
        pieces = [_answers(_between(statements, start, start + _PIECE), size) for start in bounds]
        hashes = unique(np.concatenate([piece[3] for piece in pieces]))
        kinds = [
            np.searchsorted(hashes, piece_hashes).astype(np.int32)[of]
            for _, _, of, piece_hashes, *_ in pieces
        ]
        entities, voters, _, _, hash_numbers, classes = map(
            np.concatenate, zip(*pieces, strict=True)
        )
        kind_voters = np.zeros(len(hashes), np.int8)
        all_kinds = np.concatenate(kinds)
        kind_voters[all_kinds] = voters
        statement_keys = unique(np.searchsorted(hashes, hash_numbers) * size + classes)
        return cls(entities, voters, all_kinds, kind_voters, statement_keys)

    def where(self, rows: Bools) -> Answers:
        """Some of the answers."""
        columns = self.entities[rows], self.voters[rows], self.kinds[rows]
        return replace(self, entities=columns[0], voters=columns[1], kinds=columns[2])


def _between(statements: Statements, start: int, stop: int) -> Statements:
    """The statements about a range of entities."""
    return statements.where((statements.entities >= start) & (statements.entities < stop))


def _answers(statements: Statements, size: int) -> tuple[Int32, Int8, Int32, Keys, Keys, Ints]:
    """The answers of some statements about `size` classes.

    Returns:
        Entity, voter and kind of each answer, shape (answers,). Hash of the voter and the classes
        of each kind, shape (kinds,). These hashes once for each class, and the classes.
    """
    codes = statements.entities * MOST_VOTERS + statements.voters
    codes = unique(codes * size + statements.classes)
    of_answer, classes = np.divmod(codes, size)
    is_first = np.ones(len(codes), bool)
    is_first[1:] = of_answer[1:] != of_answer[:-1]
    first = np.flatnonzero(is_first)
    entities, voters = np.divmod(of_answer[first], MOST_VOTERS)
    # Independent of the order of the classes: a sum of random 64-bit keys.
    draw = np.random.default_rng(0).integers(0, 1 << 63, size, np.uint64)
    sums = np.add.reduceat(draw[classes], first) if len(first) else draw[:0]
    sums ^= (voters.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    hashes = unique(sums)
    kinds = np.searchsorted(hashes, sums).astype(np.int32)
    example = np.zeros(len(hashes), np.int64)
    example[kinds] = np.arange(len(kinds))  # any answer of the kind
    sizes = np.diff(np.append(first, len(codes)))[example]
    rows = np.repeat(first[example] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    small = entities.astype(np.int32), voters.astype(np.int8), kinds
    return *small, hashes, np.repeat(hashes, sizes), classes[rows]


class Meanings:
    """Tables of kinds of answers (rows) and classes (columns).

    Attributes:
        own: whether it states the class or one below it, shape (kinds, classes).
        credit: share of its most specific classes that are this class or below it, shape (kinds,
            classes). An answer that states a city and a song supports each by half.
        open: whether it states a class above this one, and nothing about this one, shape (kinds,
            classes): a voter that states "Place" says nothing about cities.
    """

    def __init__(self, answers: Answers, hierarchy: Hierarchy) -> None:
        """Computes the tables."""
        size, n_kinds = len(hierarchy.names), len(answers.kind_voters)
        self.stated = np.zeros((n_kinds, size), bool)
        self.stated[answers.statement_keys // size, answers.statement_keys % size] = True
        above = hierarchy.above.astype(np.float32)
        proper = above - np.eye(size, dtype=np.float32)
        is_inner = self.stated @ proper > 0
        self.leaves = self.stated & ~is_inner
        self.own = self.stated @ above > 0
        self.credit = _shares(self.leaves, above)
        self.open = ~self.own & (self.stated @ proper.T > 0)
        self._above = above

    def credit_beside(self, kinds: Ints, other_kinds: Ints) -> Floats:
        """Credit by each of some answers, beside an answer to which it is compared.

        Of several classes that contradict each other, those that fit the compared answer count.
        """
        fits = self.leaves @ self._above + self.leaves @ self._above.T > 0
        fitting = self.leaves[kinds] & fits[other_kinds]
        none = ~fitting.any(1)
        fitting[none] = self.leaves[kinds[none]]
        return _shares(fitting, self._above)

    @property
    def agrees(self) -> Floats:
        """Credit of each class; 1 for classes that the answer leaves open."""
        agreement: Floats = np.where(self.open, 1.0, self.credit)
        return agreement


def _shares(leaves: Bools, above: npt.NDArray[np.float32]) -> Floats:
    """Share of the leaves of each row that are each class or below it."""
    shares: Floats = leaves @ above / np.maximum(leaves.sum(1, keepdims=True), 1)
    return shares
