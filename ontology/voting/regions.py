"""Regions that sources call settlements.

Wikipedia's infobox for settlements is the one of provinces and counties as well, and DBpedia gives
all its pages the class Settlement. What other titles say tells regions from towns: "Banff, Alberta"
makes Alberta a region, and most titles that end in "County" have the class AdministrativeRegion,
too, from one source or another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ontology.titles import Keys, title_keys
from ontology.voting.statements import Bools, Hierarchy, Ints, Statements, among

_SETTLEMENT, _REGION, _EITHER = "Settlement", "AdministrativeRegion", "PopulatedPlace"
_FEWEST_INSIDE = 5
"""Titles "..., X" that make X a region. In DBpedia's English files 61 settlements have so many, and
no class below Settlement; 60 are regions (the other one is the city of Sao Paulo)."""
_FEWEST, _SHARE = 20, 0.5
"""Settlements and regions whose titles end alike, and the share of regions that makes all of them
regions: 0.75 for "County", 0.59 for "Province", 0.01 for "Municipality"."""


def without_settlements(
    statements: Statements,
    hierarchy: Hierarchy,
    keys: Keys,
    entity_of: npt.NDArray[np.int32],
    names: Sequence[str],
    of_entity: npt.NDArray[np.int32],
) -> Statements:
    """The statements; regions are populated places where a source says "settlement".

    An entity that a source calls a city, or another class below Settlement, is none of these.

    Args:
        statements: statements of all voters.
        hierarchy: the classes.
        keys: sorted title keys, shape (titles,).
        entity_of: entity of each key, shape (titles,).
        names: endings of titles; see `ontology.voting.endings`.
        of_entity: index of the ending of each entity, -1 for an unknown one, shape (entities,).
    """
    if not {_SETTLEMENT, _REGION} <= hierarchy.index.keys():
        return statements
    settlement = hierarchy.index[_SETTLEMENT]
    is_settlement = statements.classes == settlement

    def stated(which: Bools) -> Bools:
        found = np.zeros(len(of_entity), bool)
        found[statements.entities[which]] = True
        return found

    region_stated = stated(hierarchy.above[statements.classes, hierarchy.index[_REGION]])
    is_region = _by_ending(stated(is_settlement), region_stated, names, of_entity)
    is_region[_containers(keys, entity_of, names, of_entity)] = True
    is_region &= ~stated(hierarchy.above[statements.classes, settlement] & ~is_settlement)
    changed = is_settlement & is_region[statements.entities]
    classes = np.where(changed, hierarchy.index[_EITHER], statements.classes)
    return Statements(statements.entities, classes, statements.voters)


def _containers(
    keys: Keys,
    entity_of: npt.NDArray[np.int32],
    names: Sequence[str],
    of_entity: npt.NDArray[np.int32],
) -> Ints:
    """Entities whose title follows the comma of other titles."""
    counts = np.bincount(of_entity[of_entity >= 0], minlength=len(names))
    often = [names[row] for row in np.flatnonzero(counts >= _FEWEST_INSIDE).tolist()]
    titles = np.sort(title_keys([name[2:] for name in often if name.startswith(", ")]))
    return entity_of[np.searchsorted(keys, titles[among(titles, keys)])].astype(np.int64)


def _by_ending(
    is_settlement: Bools, is_region: Bools, names: Sequence[str], of_entity: npt.NDArray[np.int32]
) -> Bools:
    """Entities whose titles end as those of regions do."""
    # What follows a comma says where a place is, not what it is.
    says_what = np.array([not name.startswith(",") for name in names] + [False], bool)
    known = says_what[of_entity]
    places = np.bincount(of_entity[known & (is_settlement | is_region)], minlength=len(names) + 1)
    regions = np.bincount(of_entity[known & is_region], minlength=len(names) + 1)
    region = (places >= _FEWEST) & (regions > _SHARE * places)
    found: Bools = region[of_entity] & says_what[of_entity]
    return found
