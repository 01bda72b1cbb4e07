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
from ontology.voting.statements import Bools, Floats, Hierarchy, Ints

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
    """Evidence for classes from the ending of a title, as logarithms of odds ratios."""

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
        is_training = voters > 1 if (voters > 1).sum() >= _SEVERAL else voters > 0
        is_training &= of_entity >= 0
        counts = np.bincount(of_entity[is_training], minlength=len(names))
        needed = max(_FEWEST, int(_SHARE * is_training.sum()))
        groups, members = _groups(names, counts, needed)
        self._group = np.append(groups, -1)[of_entity]  # the last one is for index -1
        used = is_training[answers.entities]
        entities, kinds = answers.entities[used], answers.kinds[used]
        cells = 1 / voters[entities], (of_entity[entities], kinds)
        sums = members @ (csr_matrix(cells, (len(names), len(credit))) @ credit)
        numbers = (members @ counts.astype(float))[:, None]
        total = np.bincount(answers.kinds, minlength=len(credit)) @ credit
        share = (total + 1) / (len(answers.kinds) + len(total))
        rates = (sums + _PRIOR * share) / (numbers + _PRIOR)
        ratios = np.clip(_log_odds(rates) - _log_odds(share), -_MOST, _MOST)
        self._ratios = np.round(ratios, 9)  # see `ontology.voting.reliability`
        self._kinds = hierarchy.kinds

    def of(self, entities: Ints, classes: Ints) -> Floats:
        """Logarithm of the odds ratio of each class for each entity, shape (entities,)."""
        groups = self._group[entities]
        ratios = np.zeros(len(groups))
        has_group = groups >= 0
        ratios[has_group] = self._ratios[groups[has_group], self._kinds[classes[has_group]]]
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
    groups, rows_of_groups = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    number = 0

    def add(rows: Ints, group: Ints, is_free: Bools) -> None:
        """Adds groups, from the next number on; their evidence holds for the free rows."""
        nonlocal number
        groups.append(number + group)
        rows_of_groups.append(rows)
        group_of[rows[is_free]] = number + group[is_free]
        number += int(group.max(initial=-1)) + 1

    endings = pa.array(names, pa.string())
    first = pc.utf8_slice_codeunits(endings, 0, 1).to_numpy(zero_copy_only=False)
    commas = np.flatnonzero(first == ",")
    if len(commas) and counts[commas].sum() >= needed:
        add(commas, np.zeros(len(commas), np.int64), np.ones(len(commas), bool))
    frequent = np.flatnonzero((counts >= needed) & (group_of < 0))
    add(frequent, np.arange(len(frequent)), np.ones(len(frequent), bool))
    words = np.flatnonzero((first != "(") & (first != ","))
    for length in _SUFFIXES:
        suffixes = pc.utf8_slice_codeunits(endings.take(words), -length).dictionary_encode()
        suffix = suffixes.indices.to_numpy()
        is_free = group_of[words] < 0
        n_suffixes = len(suffixes.dictionary)
        is_group = np.bincount(suffix, counts[words], n_suffixes) >= needed
        is_group &= np.bincount(suffix, is_free, n_suffixes) > 0
        used = is_group[suffix]
        add(words[used], (np.cumsum(is_group) - 1)[suffix[used]], is_free[used])
    of_row, flat = np.concatenate(groups), np.concatenate(rows_of_groups)
    return group_of, csr_matrix((np.ones(len(flat)), (of_row, flat)), (number, len(names)))
