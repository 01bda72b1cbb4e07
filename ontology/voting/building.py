"""Builds the entity table: follows redirects, and decides the class of each entity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from nerbert.arrays import unique
from ontology.classes import ClassTree
from ontology.entity_table import INFOBOX, NO_CLASS, EntityTable, Int32
from ontology.titles import Keys
from ontology.voting.election import Election
from ontology.voting.lone import Alone, LinkFeatures, doubt
from ontology.voting.reliability import agreement, weights
from ontology.voting.statements import (
    MOST_VOTERS,
    Bools,
    Conflict,
    Hierarchy,
    Ints,
    Statements,
    conflicts,
    places,
)
from ontology.voting.support import SupportBin
from ontology.voting.votes import Decision

Rule = Literal["votes", "deepest"]
"""How the class of an entity is chosen from what the sources state."""


@dataclass(frozen=True)
class Facts:
    """Facts from the dump, one entry per page, or from a voter, one entry per statement.

    Attributes:
        keys: keys of the titles, shape (facts,).
        classes: names of classes.
        class_indices: index into `classes` of each fact, -1 for none, shape (facts,).
        name: name of the voter.
        endings: endings of the titles.
        ending_indices: index into `endings` of each fact, shape (facts,); None if not known.
        targets: key of the title that a redirect leads to, 0 for other pages, shape (facts,); None
            without redirects.
    """

    keys: Keys
    classes: Sequence[str]
    class_indices: Int32
    name: str = "types"
    endings: Sequence[str] = ()
    ending_indices: Int32 | None = None
    targets: Keys | None = None


@dataclass(frozen=True)
class _Titles:
    """All titles, and the entities that they lead to.

    Attributes:
        keys: keys of the titles, sorted, shape (titles,).
        final: index of the title where the redirects of each title end, shape (titles,).
        entity_of: entity of each title, shape (titles,).
    """

    keys: Keys
    final: Ints
    entity_of: Int32

    def find(self, keys: Keys) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Entity of each key, and whether its title is no redirect."""
        index = places(self.keys, keys)
        return self.entity_of[index].astype(np.int64), self.final[index] == index


@dataclass(frozen=True)
class Built:
    """An entity table, and how its sources agree.

    Attributes:
        table: the table.
        weights: weight of each voter.
        agreed: numbers of agreeing statements, shape (voters, voters).
        compared: numbers of compared statements, shape (voters, voters).
        conflicts: the most frequent disagreements.
        alone: what unreliable voters state alone, by voter.
        support: how the probabilities of the classes were calibrated.
    """

    table: EntityTable
    weights: list[float]
    agreed: Ints
    compared: Ints
    conflicts: list[Conflict]
    alone: dict[int, Alone]
    support: list[SupportBin]


def build(
    pages: Facts,
    types: Sequence[Facts],
    tree: ClassTree,
    rule: Rule = "votes",
    least: float = 0.8,
    links: LinkFeatures | None = None,
    precision: float = 0.95,
) -> Built:
    """Builds the table of a dump.

    Chains of redirects are followed. Titles in a cycle of redirects are entities without class. A
    statement about a redirect counts for its target if the same source states nothing about the
    target itself.

    Args:
        pages: facts from the dump; their infoboxes are the first voter.
        types: facts from files of instance types; each file is a voter.
        tree: the classes.
        rule: "votes": see `ontology.voting.votes`. "deepest": the deepest class of the files of
            instance types; without one, the class of the infobox, as in the paper.
        least: smallest probability of a class, for "votes".
        links: what the dump says about the pages that it links; without, no voter is doubted.
        precision: see `ontology.voting.lone`.
    """
    if len(types) >= MOST_VOTERS:
        raise ValueError(f"{len(types)} files of instance types; at most {MOST_VOTERS - 1}")
    targets = np.zeros(len(pages.keys), np.uint64) if pages.targets is None else pages.targets
    is_redirect = targets != 0
    titles, nodes, circular = _indexed(pages, types, targets, is_redirect)
    hierarchy = Hierarchy(
        [*pages.classes, *(name for facts in types for name in facts.classes)], tree
    )
    boxed = (pages.class_indices >= 0) & ~is_redirect
    boxes = Facts(pages.keys[boxed], pages.classes, pages.class_indices[boxed], INFOBOX)
    voters = [boxes, *types]
    statements = _all_statements(voters, titles, hierarchy)
    if len(circular):
        statements = statements.where(~np.isin(nodes[statements.entities], circular))
    endings = _endings([pages, *types], titles, len(nodes))
    names, index = [facts.name for facts in voters], (titles.keys, titles.entity_of)
    election = Election(hierarchy, names, *index, endings, least)
    comparisons = election.comparisons(statements)
    agreed, compared = agreement(comparisons)
    weight = weights(agreed, compared)
    alone: dict[int, Alone] = {}
    bins: list[SupportBin] = []
    if rule == "votes":
        decision, bins = election.elect(statements, comparisons, weight)
        if links is not None:
            kinds = [tree.kind(name) or name for name in hierarchy.names]
            alone = doubt(decision, kinds, weight, compared.sum(1), index, links, tree, precision)
    else:
        decision = _deepest(statements, hierarchy, len(nodes))
    kinds = [tree.kind(name) or "" for name in hierarchy.names]
    of_entities = decision.classes, decision.support, decision.voters
    table = EntityTable(hierarchy.names, kinds, names, titles.keys, titles.entity_of, *of_entities)
    return Built(
        table, weight.tolist(), agreed, compared, conflicts(statements, hierarchy), alone, bins
    )


def _indexed(
    pages: Facts, types: Sequence[Facts], targets: Keys, is_redirect: Bools
) -> tuple[_Titles, Ints, Ints]:
    """All titles, and which of them are the ends of redirects, and ends in a circle of these."""
    types_keys = [facts.keys for facts in types]
    keys = unique(np.concatenate([pages.keys, targets[is_redirect], *types_keys]))
    final, circular = _follow(keys, pages.keys, targets, is_redirect)
    nodes = np.flatnonzero(np.bincount(final, minlength=len(keys)))
    return _Titles(keys, final, np.searchsorted(nodes, final).astype(np.int32)), nodes, circular


def _all_statements(voters: Sequence[Facts], titles: _Titles, hierarchy: Hierarchy) -> Statements:
    """The statements of all voters, whose numbers are their places."""
    pieces = [_statements(facts, n, titles, hierarchy) for n, facts in enumerate(voters)]
    return Statements(
        np.concatenate([piece.entities for piece in pieces]),
        np.concatenate([piece.classes for piece in pieces]),
        np.concatenate([piece.voters for piece in pieces]),
    )


def _endings(facts: Sequence[Facts], titles: _Titles, n: int) -> tuple[list[str], Int32]:
    """The endings of titles, and the index of the ending of each of `n` entities, -1 for none."""
    numbers: dict[str, int] = {}
    of_entity = np.full(n, -1, np.int32)
    for source in facts:
        if source.ending_indices is None or not source.endings:
            continue
        index = np.array([numbers.setdefault(name, len(numbers)) for name in source.endings])
        entities, direct = titles.find(source.keys)
        # A redirect's title says nothing about its target.
        direct &= source.ending_indices >= 0
        of_entity[entities[direct]] = index[source.ending_indices[direct]]
    return list(numbers), of_entity


def _statements(facts: Facts, voter: int, titles: _Titles, hierarchy: Hierarchy) -> Statements:
    """The statements of a voter about entities."""
    entities, direct = titles.find(facts.keys)
    has_direct = np.zeros(int(titles.entity_of.max(initial=-1)) + 1, bool)
    has_direct[entities[direct]] = True
    is_used = direct | ~has_direct[entities]
    index = np.array([hierarchy.index[name] for name in facts.classes], np.int16)
    classes = index[facts.class_indices[is_used]] if len(index) else np.zeros(0, np.int16)
    return Statements(entities[is_used], classes, np.full(len(classes), voter, np.int8))


def _deepest(statements: Statements, hierarchy: Hierarchy, n_entities: int) -> Decision:
    """The deepest class that the files of instance types state, else that of the infobox."""
    names = np.argsort(np.lexsort((np.arange(len(hierarchy.names)), -hierarchy.depths)))
    classes = np.full(n_entities, NO_CLASS, np.int16)
    order = np.argsort(names)  # class of each rank, the most specific first
    for of_voter in (statements.voters > 0, statements.voters == 0):
        best = np.full(n_entities, len(order), np.int64)
        np.minimum.at(best, statements.entities[of_voter], names[statements.classes[of_voter]])
        gaps = (classes == NO_CLASS) & (best < len(order))
        classes[gaps] = order[best[gaps]]
    voters = np.zeros(n_entities, np.uint32)
    bits = np.uint32(1) << statements.voters.astype(np.uint32)
    np.bitwise_or.at(voters, statements.entities, bits)
    return Decision(classes, np.where(classes == NO_CLASS, 0, 100).astype(np.uint8), voters)


def _follow(
    keys: Keys, sources: Keys, targets: Keys, is_redirect: npt.NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """Index of the key where the redirects of each key end, and indices of keys in cycles."""
    following = np.arange(len(keys))
    source = places(keys, sources[is_redirect])
    following[source] = places(keys, targets[is_redirect])
    pages = places(keys, sources[~is_redirect])
    # Two titles may share a normal form; an article wins over a redirect.
    following[pages] = pages
    step = following.copy()
    # Each round doubles the number of redirects that are followed.
    for _ in range(len(keys).bit_length()):
        further = step[step]
        if np.array_equal(further, step):
            break
        step = further
    circular = np.flatnonzero(following[step] != step)
    step[circular] = circular
    return step, circular
