"""An election: the classes of entities by votes, and how probable they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nerbert.arrays import unique
from ontology.entity_table import FIRST_SENTENCE, PAGE_TYPER, Int32
from ontology.titles import Keys
from ontology.voting.answers import Answers
from ontology.voting.regions import without_settlements
from ontology.voting.reliability import Comparisons, Reliability, agreement, precisions, weights
from ontology.voting.statements import Bools, Floats, Hierarchy, Statements, without_twins
from ontology.voting.support import SupportBin, calibrate, left_out
from ontology.voting.votes import Decision, decide

_WELL_KNOWN = 3
"""If so many other voters know an entity, the page typer has no vote."""


@dataclass(frozen=True)
class Election:
    """Decides the classes of entities by votes; see `ontology.voting.votes`."""

    hierarchy: Hierarchy
    voters: list[str]
    keys: Keys
    entity_of: Int32
    titles: tuple[list[str], Int32]
    least: float

    def elect(
        self, statements: Statements, comparisons: Comparisons, weight: Floats
    ) -> tuple[Decision, list[SupportBin]]:
        """Decides all entities, and says how their probabilities were calibrated.

        The page typer has learnt from the others, so it would only repeat one of them: entities
        that several others know are decided as if it were not there, and it is no judge of them.

        Args:
            statements: statements of all voters.
            comparisons: comparisons of their answers.
            weight: weight of each voter.
        """
        decision = self.decide(comparisons, weight)
        if PAGE_TYPER in self.voters:
            statements = statements.where(statements.voters != self.voters.index(PAGE_TYPER))
            comparisons = self.comparisons(statements)
            weight = weights(*agreement(comparisons))
            self._decide_again(statements, comparisons, weight, decision)
        reliability = Reliability.of(comparisons, self.hierarchy, weight)
        facts = self.hierarchy, reliability, len(self.titles[1]), self.least
        bins = left_out(
            comparisons,
            precisions(*agreement(comparisons)),
            lambda answers: decide(answers, *facts),
        )
        calibrate(decision, bins)
        return decision, bins

    def comparisons(self, statements: Statements) -> Comparisons:
        """Compares the answers of the voters."""
        telling = self.voters.index(FIRST_SENTENCE) if FIRST_SENTENCE in self.voters else -1
        by_meaning = without_settlements(
            statements, self.hierarchy, self.keys, self.entity_of, *self.titles, telling
        )
        answers = Answers.of(without_twins(by_meaning, self.hierarchy), len(self.hierarchy.names))
        return Comparisons(answers, self.hierarchy, len(self.voters))

    def decide(
        self, comparisons: Comparisons, weight: Floats, selection: Bools | None = None
    ) -> Decision:
        """The classes of all entities, or of those that are wanted."""
        reliability = Reliability.of(comparisons, self.hierarchy, weight)
        answers, n_entities = comparisons.answers, len(self.titles[1])
        if selection is not None:
            answers = answers.where(selection[answers.entities])
        return decide(answers, self.hierarchy, reliability, n_entities, self.least)

    def _decide_again(
        self, statements: Statements, comparisons: Comparisons, weight: Floats, decision: Decision
    ) -> None:
        """Replaces the decisions about entities that several of the voters know."""
        pairs = unique(statements.entities * len(self.voters) + statements.voters)
        counts = np.bincount(pairs // len(self.voters), minlength=len(decision.classes))
        is_well_known = counts >= _WELL_KNOWN
        if is_well_known.any():
            decided = self.decide(comparisons, weight, is_well_known)
            decision.classes[is_well_known] = decided.classes[is_well_known]
            decision.support[is_well_known] = decided.support[is_well_known]
