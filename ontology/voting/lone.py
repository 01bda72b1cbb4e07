"""Classes that one unreliable voter states alone count if links to the page bear them out.

The weight of a voter is measured where others know the entity, too. Where it is alone it may do
worse: a file that is right about towns, which all files know, may call a religion, which no other
file knows, a food. So a model learns how entities of each kind (person, place, species, ...) look
that several voters know: their titles, the words around links to them, and their pages. Its mean
probability tells how much of what a voter states alone is right: it lies between that for entities
of the stated kind and that for others.

Pages that the dump has say more than those that it only links, so each are judged by their like;
where no other voter knows any, as with one file of types and a piece of a wiki, none is doubted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nerbert.arrays import unique
from ontology.classes import ClassTree
from ontology.entity_table import NO_CLASS
from ontology.titles import Keys
from ontology.voting.page_features import Pages
from ontology.voting.page_typer import MOST_PAGES, PageTyper
from ontology.voting.statements import Bools, Floats, Ints, among
from ontology.voting.votes import Decision

_FEWEST_COMPARED = 100
"""Statements of a voter that others speak of, before its weight says that it is unreliable."""
_FOLDS, _MOST_FEATURES = 3, 1 << 12
"""Kinds need less than classes: a fifth of the time, and the same classes on all slices."""
_PRIOR, _PRIOR_RIGHT = 10.0, 9.0
_LEAST, _MOST = 1e-4, 1 - 1e-4


@dataclass(frozen=True)
class LinkFeatures:
    """Features of the pages that the dump has or links.

    Attributes:
        keys: keys of their titles, sorted.
        of_dump: keys of those that the dump has.
        read: reads the features of some of them, by sorted keys; a title may have several rows.
    """

    keys: Keys
    of_dump: Keys
    read: Callable[[Keys], Pages]


@dataclass(frozen=True)
class Alone:
    """Counts of the classes that an unreliable voter alone states about pages of the dump.

    Attributes:
        entities: number of these pages.
        right: estimated share that have the kind that the voter states.
        kept: number of those that keep their class.
    """

    entities: int
    right: float
    kept: int

    def plus(self, counts: Alone) -> Alone:
        """The counts of both."""
        entities = self.entities + counts.entities
        right = (self.right * self.entities + counts.right * counts.entities) / entities
        return Alone(entities, right, self.kept + counts.kept)


def doubt(
    decision: Decision,
    kinds: Sequence[str],
    weights: Floats,
    compared: Ints,
    titles: tuple[Keys, npt.NDArray[np.int32]],
    links: LinkFeatures,
    tree: ClassTree,
    precision: float,
) -> dict[int, Alone]:
    """Takes back classes that an unreliable voter states alone, unless they are probably right.

    Args:
        decision: the classes of the entities; those that are not probable enough become NO_CLASS.
        kinds: name of the kind of each class.
        weights: weight of each voter; those below `precision` are unreliable.
        compared: number of statements of each voter that others speak of.
        titles: sorted keys of the titles, and the entity of each.
        links: features.
        tree: the classes.
        precision: least probability that the kind of a kept class is right.

    Returns:
        What each unreliable voter states alone; {} if there is too little to learn from.
    """
    typed = decision.classes != NO_CLASS
    unreliable = np.flatnonzero((weights < precision) & (compared >= _FEWEST_COMPARED)).tolist()
    lone_of = {voter: typed & (decision.voters == 1 << voter) for voter in unreliable}
    is_confirmed = typed & (decision.voters & (decision.voters - np.uint32(1)) != 0)
    lone = np.any([np.zeros_like(typed), *lone_of.values()], axis=0)
    entities, pages = _pages(lone, is_confirmed, titles, links)
    keys, entity_of = titles
    with_page = entity_of[np.searchsorted(keys, links.of_dump[among(links.of_dump, keys)])]
    has_page = np.isin(entities, with_page)
    lone_results: dict[int, Alone] = {}
    for group in (has_page, ~has_page):
        of_group, pages_of_group = entities[group], pages.where(group)
        stated_kinds = np.array([*kinds, ""], dtype=object)[decision.classes[of_group]]
        is_known = is_confirmed[of_group]
        training_pages = pages_of_group.where(is_known)
        if not lone[of_group].any():
            continue
        typer = kind_typer(training_pages, stated_kinds[is_known].tolist(), tree, precision)
        if typer is None:
            continue
        judge = _Judge(typer, training_pages, stated_kinds[is_known])
        for voter, is_lone in lone_of.items():
            rows = np.flatnonzero(is_lone[of_group])
            if len(rows):
                lone_pages = pages_of_group.where(is_lone[of_group])
                chances, right = judge.chances(lone_pages, stated_kinds[rows])
                n_kept = _take_back(decision, of_group[rows], chances, precision)
                before = lone_results.get(voter, Alone(0, 0.0, 0))
                lone_results[voter] = before.plus(Alone(len(rows), right, n_kept))
    return lone_results


def _take_back(decision: Decision, entities: Ints, chances: Floats, precision: float) -> int:
    """Takes back the classes that are not probable enough; returns the number of the others."""
    gone = entities[chances < precision]
    percent = np.rint(100 * chances).astype(np.uint8)
    decision.support[entities] = np.minimum(decision.support[entities], percent)
    decision.classes[gone], decision.support[gone] = NO_CLASS, 0
    return len(entities) - len(gone)


def kind_typer(
    pages: Pages, kinds: Sequence[str], tree: ClassTree, precision: float
) -> PageTyper | None:
    """A typer that knows kinds only; see `PageTyper.train`."""
    return PageTyper.train(pages, kinds, tree, precision, _FOLDS, _MOST_FEATURES)


def _pages(
    lone: Bools,
    is_confirmed: Bools,
    titles: tuple[Keys, npt.NDArray[np.int32]],
    links: LinkFeatures,
) -> tuple[Ints, Pages]:
    """Entities and their features: of all lone ones, and of some that are known."""
    keys, entity_of = titles
    present = links.keys[among(links.keys, keys)]
    of_key = entity_of[np.searchsorted(keys, present)]
    confirmed = unique(of_key[is_confirmed[of_key]].astype(np.int64))
    # Keys are digests, so the first ones are drawn at random.
    bound = np.sort(present[is_confirmed[of_key]])[MOST_PAGES - 1 : MOST_PAGES]
    in_sample = is_confirmed[of_key] & (
        present <= (bound[0] if len(confirmed) > MOST_PAGES else ~np.uint64(0))
    )
    pages = links.read(present[lone[of_key] | in_sample])
    # The links to redirects of an entity count for it.
    rows = np.repeat(entity_of[np.searchsorted(keys, pages.keys)].astype(np.int64), pages.sizes)
    pairs = unique(rows << np.int64(32) | pages.features)
    entities, sizes = np.unique(pairs >> np.int64(32), return_counts=True)
    first = np.full(len(lone), -1)
    first[entity_of[::-1]] = np.arange(len(keys))[::-1]
    features = (pairs & np.int64(0xFFFFFFFF)).astype(np.int32)
    return entities, Pages(keys[first[entities]], features, sizes)


class _Judge:
    """Gives the probability that entities have the kinds that a voter states."""

    def __init__(self, typer: PageTyper, pages: Pages, kinds: npt.NDArray[np.object_]) -> None:
        """Measures the mean probabilities of entities whose kinds are known."""
        self._typer = typer
        chances = typer.chances(pages)
        self._means = {
            kind: (chances[kinds == kind, number].mean(), chances[kinds != kind, number].mean())
            for number, kind in enumerate(typer.names)
            if 0 < (kinds == kind).sum() < len(kinds)
        }
        self._share = {kind: float((kinds == kind).mean()) for kind in self._means}

    def chances(self, pages: Pages, kinds: npt.NDArray[np.object_]) -> tuple[Floats, float]:
        """Probability that each page is of the kind that is stated, and the mean share."""
        typer_chances = self._typer.chances(pages)
        known_kinds = [kind for kind in sorted(set(kinds)) if kind in self._means]
        counts = {kind: int((kinds == kind).sum()) for kind in known_kinds}
        shares = {}
        for kind in known_kinds:
            inside, outside = self._means[kind]
            mean = typer_chances[kinds == kind, self._typer.names.index(kind)].mean()
            shares[kind] = min(max((mean - outside) / max(inside - outside, _LEAST), 0), 1)
        right = sum(counts[kind] * shares[kind] for kind in known_kinds) + _PRIOR_RIGHT
        right /= sum(counts.values()) + _PRIOR
        chances = np.full(len(kinds), right)
        for kind in known_kinds:
            of_kind = kinds == kind
            share = (counts[kind] * shares[kind] + _PRIOR * right) / (counts[kind] + _PRIOR)
            chance = np.clip(typer_chances[of_kind, self._typer.names.index(kind)], _LEAST, _MOST)
            odds = share / (1 - share) * _odds(chance) / _odds(np.array(self._share[kind]))
            chances[of_kind] = odds / (1 + odds)
        # Sums depend on the order of their terms, which differs between processors.
        return chances.round(6), float(right)


def _odds(chance: Floats) -> Floats:
    odds: Floats = chance / (1 - chance)
    return odds
