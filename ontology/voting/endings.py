"""How a title ends, and what this says about its class.

Titles of one ending are of few classes: "... Ocean", "... River", "... (band)", "...ism". A class
that nearly no title of this ending has is no class for one more, if a single source states it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix

from ontology.voting.reliability import Comparisons
from ontology.voting.statements import Floats, Hierarchy, Ints

_SUFFIXES = (4, 3, 2)
"""Letters of an ending that count if the whole word is too rare."""
_FEWEST, _SHARE = 20, 1 / 20_000
"""Entities of an ending, and the share of all entities, that it needs."""
_PRIOR = 10.0
_MOST = np.log(50.0)
"""No ending makes a class more than 50 times more or less likely."""
_SEVERAL = 10_000
"""If so many entities have several voters, endings are learned from these alone."""


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


class TitleEvidence:
    """What the ending of a title says about classes, as logarithms of odds ratios."""

    def __init__(
        self,
        names: Sequence[str],
        of_entity: npt.NDArray[np.int32],
        comparisons: Comparisons,
        hierarchy: Hierarchy,
    ) -> None:
        """Learns the kinds of the titles of each ending: person, place, work, species, ...

        Args:
            names: the endings.
            of_entity: index of the ending of each entity, -1 for an unknown one, shape (entities,).
            comparisons: answers of all voters, and what they say.
            hierarchy: the classes.
        """
        # Share of the classes of an answer that are of each kind.
        of_kind = np.eye(hierarchy.kinds.max(initial=-1) + 1)[hierarchy.kinds]
        answers = comparisons.answers
        credit = comparisons.meanings.leaves @ of_kind
        credit /= np.maximum(credit.sum(1, keepdims=True), 1)
        voters = np.bincount(answers.entities, minlength=len(of_entity))
        taught = voters > 1 if (voters > 1).sum() >= _SEVERAL else voters > 0
        taught &= of_entity >= 0
        counts = np.bincount(of_entity[taught], minlength=len(names))
        needed = max(_FEWEST, int(_SHARE * taught.sum()))
        groups, members = _groups(names, counts, needed)
        self._group = np.append(groups, -1)[of_entity]  # the last one is for index -1
        used = taught[answers.entities]
        entities, kinds = answers.entities[used], answers.kinds[used]
        cells = 1 / voters[entities], (of_entity[entities], kinds)
        sums = members @ (csr_matrix(cells, (len(names), len(credit))) @ credit)
        numbers = (members @ counts.astype(float))[:, None]
        every = np.bincount(answers.kinds, minlength=len(credit)) @ credit
        share = (every + 1) / (len(answers.kinds) + len(every))
        rates = (sums + _PRIOR * share) / (numbers + _PRIOR)
        ratios = np.clip(_log_odds(rates) - _log_odds(share), -_MOST, _MOST)
        self._ratios = np.round(ratios, 9)  # see `ontology.voting.reliability`
        self._kinds = hierarchy.kinds

    def of(self, entities: Ints, classes: Ints) -> Floats:
        """Logarithm of the odds ratio of each class for each entity, shape (entities,)."""
        groups = self._group[entities]
        ratios = np.zeros(len(groups))
        known = groups >= 0
        ratios[known] = self._ratios[groups[known], self._kinds[classes[known]]]
        return ratios


def _log_odds(share: Floats) -> Floats:
    limited = np.clip(share, 1e-6, 1 - 1e-6)
    log_odds: Floats = np.log(limited) - np.log1p(-limited)
    return log_odds


def _groups(names: Sequence[str], counts: Ints, needed: int) -> tuple[Ints, csr_matrix]:
    """Groups of endings: those with a comma, each frequent one, words with a frequent suffix.

    Args:
        names: the endings.
        counts: number of entities of each ending.
        needed: number of entities that a group needs.

    Returns:
        The group whose evidence holds for each ending, the most specific one, -1 for none, shape
        (endings,); whether each ending counts for each group, shape (groups, endings).
    """
    group_of = np.full(len(names), -1)
    members: list[Sequence[int]] = []
    commas = [row for row, name in enumerate(names) if name[:1] == ","]
    if commas and counts[commas].sum() >= needed:
        group_of[commas] = 0
        members.append(commas)
    for row in np.flatnonzero((counts >= needed) & (group_of < 0)).tolist():
        group_of[row] = len(members)
        members.append([row])
    words = [row for row, name in enumerate(names) if name[:1] not in ("(", ",")]
    for length in _SUFFIXES:
        by_suffix: dict[str, list[int]] = {}
        for row in words:
            by_suffix.setdefault(names[row][-length:], []).append(row)
        for rows in by_suffix.values():
            rest = [row for row in rows if group_of[row] < 0]
            if rest and counts[rows].sum() >= needed:
                group_of[rest] = len(members)
                members.append(rows)
    flat = np.array([row for rows in members for row in rows], np.int64)
    of_row = np.repeat(np.arange(len(members)), [len(rows) for rows in members])
    return group_of, csr_matrix((np.ones(len(flat)), (of_row, flat)), (len(members), len(names)))
