"""Regions that sources call settlements, and alliances that they call countries.

They have the infoboxes of settlements and countries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ontology.classes import rows_of
from ontology.titles import Keys, title_keys
from ontology.voting.statements import Bools, Hierarchy, Ints, Statements, among

_SETTLEMENT, _REGION, _EITHER = "Settlement", "AdministrativeRegion", "PopulatedPlace"
_COUNTRY, _MUNICIPALITY, _ALLIANCE = "Country", "Municipality", "Organisation"
_PLACE, _WATER = "Place", "BodyOfWater"
_FEWEST_INSIDE = 5
"""Titles "..., X" that make X a region. In DBpedia's English files 61 settlements have so many, and
no class below Settlement; 60 are regions (the other one is the city of Sao Paulo)."""
_FEWEST_PLACES, _REGION_SHARE = 20, 0.5
"""Settlements and regions whose titles end alike, and the share of regions that makes all of them
regions: 0.75 for "County", 0.59 for "Province", 0.01 for "Municipality"."""


def endings(titles: pa.Array) -> pa.Array:
    """The ending of each title: a word in brackets, what follows a comma, or the last word.

    >>> endings(pa.array(["Blur (English band)", "Ulm, Montana", "Pacific Ocean"])).to_pylist()
    ['(band', ', Montana', 'ocean']
    """
    bracket = pc.struct_field(
        pc.extract_regex(titles, r"\((?:[^()]* )?(?P<word>[^ ()]+)\)$"), "word"
    )
    last = pc.struct_field(pc.extract_regex(titles, r"(?P<word>[^ ]+) *$"), "word")
    comma = pc.struct_field(pc.extract_regex(titles, r"(?P<rest>, [^,]+)$"), "rest")
    return pc.coalesce(
        pc.binary_join_element_wise("(", bracket, ""), comma, pc.utf8_lower(last), ""
    )


def without_settlements(
    statements: Statements,
    hierarchy: Hierarchy,
    keys: Keys,
    entity_of: npt.NDArray[np.int32],
    names: Sequence[str],
    of_entity: npt.NDArray[np.int32],
    first_sentence: int = -1,
) -> Statements:
    """The statements; regions are populated places where a source says "settlement".

    Regions are what one source calls both a settlement and a region or a country (it is neither),
    and titles that others follow by a comma, or that end as those of most regions do. An entity
    that a source calls a city, or another class below Settlement, and nothing else, is none.

    Titles of the table `ontology/data/regions.tsv` have its class where a source calls them a
    populated place. Cities and regions share infoboxes, so where the first sentence of a page says
    which of both it is, others do not say the opposite.

    Args:
        statements: statements of all voters.
        hierarchy: the classes.
        keys: sorted title keys, shape (titles,).
        entity_of: entity of each key, shape (titles,).
        names: endings of titles; see `endings`.
        of_entity: index of the ending of each entity, -1 for an unknown one, shape (entities,).
        first_sentence: the voter of first sentences; -1 for none.
    """
    if not {_SETTLEMENT, _REGION} <= hierarchy.index.keys():
        return statements
    if first_sentence >= 0:
        statements = statements.where(~_contradicted(statements, hierarchy, first_sentence))
    settlement = hierarchy.index[_SETTLEMENT]
    is_settlement = statements.classes == settlement
    below = hierarchy.above[statements.classes, settlement] & ~is_settlement
    beside = hierarchy.above[statements.classes, hierarchy.index[_REGION]]

    def has_statement(selection: Bools) -> Bools:
        is_stated = np.zeros(len(of_entity), bool)
        is_stated[statements.entities[selection]] = True
        return is_stated

    is_region = _by_ending(has_statement(is_settlement), has_statement(beside), names, of_entity)
    is_region[_containers(keys, entity_of, names, of_entity)] = True
    country = statements.classes == hierarchy.index.get(_COUNTRY, -1)
    is_ambiguous = _of_answers_with(beside | country, statements) & is_settlement
    is_region[statements.entities[is_ambiguous]] = True
    on_line = hierarchy.above[settlement, statements.classes] | below
    is_region &= ~has_statement(below & ~_of_answers_with(~on_line, statements))
    changed = is_settlement | country & _of_answers_with(is_ambiguous, statements)
    changed &= is_region[statements.entities]
    classes = np.where(changed, hierarchy.index[_EITHER], statements.classes)
    statements = Statements(statements.entities, classes, statements.voters)
    return _by_table(statements, hierarchy, _tabled(keys, entity_of), first_sentence)


def _by_table(
    statements: Statements,
    hierarchy: Hierarchy,
    entities_of_classes: list[tuple[str, Ints]],
    first_sentence: int,
) -> Statements:
    """The statements; entities of the shipped table have its class where they are places.

    Regions are places where people live; seas, which some infoboxes call lakes, any place.
    """
    classes = statements.classes.copy()
    either = hierarchy.index[_EITHER]
    for name, regions in entities_of_classes:
        if name in hierarchy.index:
            number = hierarchy.index[name]
            # First sentences call them what not every dump says: a page may be in another one.
            deeper = hierarchy.above[classes, number] & (statements.voters != first_sentence)
            is_water = (
                _WATER in hierarchy.index and hierarchy.above[number, hierarchy.index[_WATER]]
            )
            places = hierarchy.above[classes, hierarchy.index[_PLACE] if is_water else either]
            wrong = places if name in (_EITHER, _WATER) else places & ~deeper
            classes[wrong & np.isin(statements.entities, regions)] = number
    return Statements(statements.entities, classes, statements.voters)


def _contradicted(statements: Statements, hierarchy: Hierarchy, voter: int) -> Bools:
    """The statements of other voters that call cities regions, and so on.

    That is a city a region, a region a settlement, or an alliance a country.
    """
    is_first_sentence = statements.voters == voter
    allied = is_first_sentence & (statements.classes == hierarchy.index.get(_ALLIANCE, -1))
    country = statements.classes == hierarchy.index.get(_COUNTRY, -1)
    settled = hierarchy.above[statements.classes, hierarchy.index[_SETTLEMENT]]
    regional = hierarchy.above[statements.classes, hierarchy.index[_REGION]]
    # Towns are often called by their rank among municipalities.
    strictly = regional & (statements.classes != hierarchy.index.get(_MUNICIPALITY, -1))
    cities = np.isin(statements.entities, statements.entities[is_first_sentence & settled])
    regions = np.isin(statements.entities, statements.entities[is_first_sentence & strictly])
    alliances = np.isin(statements.entities, statements.entities[allied])
    wrong: Bools = ~is_first_sentence & (
        regional & cities | settled & regions | country & alliances
    )
    return wrong


def _of_answers_with(selection: Bools, statements: Statements) -> Bools:
    """The statements whose voter makes one of some statements about the same entity."""
    answers = statements.entities * (statements.voters.max(initial=0) + 1) + statements.voters
    of_answers: Bools = np.isin(answers, answers[selection])
    return of_answers


def _tabled(keys: Keys, entity_of: npt.NDArray[np.int32]) -> list[tuple[str, Ints]]:
    """The classes of the table, and the entities that have them."""
    entities_of_class = []
    for name, _, titles in rows_of("regions.tsv"):
        of_titles = np.sort(title_keys(titles.split("; ")))
        entities_of_class.append((name, _entities(of_titles, keys, entity_of)))
    return entities_of_class


def _entities(wanted_keys: Keys, keys: Keys, entity_of: npt.NDArray[np.int32]) -> Ints:
    """Entities of the titles that are known."""
    return entity_of[np.searchsorted(keys, wanted_keys[among(wanted_keys, keys)])].astype(np.int64)


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
    return _entities(titles, keys, entity_of)


def _by_ending(
    is_settlement: Bools, is_region: Bools, names: Sequence[str], of_entity: npt.NDArray[np.int32]
) -> Bools:
    """Entities whose titles end as those of regions do."""
    # What follows a comma says where a place is, not what it is.
    says_what = np.array([not name.startswith(",") for name in names] + [False], bool)
    has_ending = says_what[of_entity]
    places = np.bincount(
        of_entity[has_ending & (is_settlement | is_region)], minlength=len(names) + 1
    )
    regions = np.bincount(of_entity[has_ending & is_region], minlength=len(names) + 1)
    region = (places >= _FEWEST_PLACES) & (regions > _REGION_SHARE * places)
    is_named_so: Bools = region[of_entity] & says_what[of_entity]
    return is_named_so
