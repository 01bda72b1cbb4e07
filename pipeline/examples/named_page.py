"""A page with the names that it has, and what each of them means there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from pipeline.examples.mentions import SOURCES
from pipeline.wikitext.english import is_ambiguous, is_people
from pipeline.wikitext.names import WITHOUT_CAPITALS, begins_with_number, has_common_word

TITLE, REPEAT, SURNAME, OWN_NAME = map(SOURCES.index, ("title", "repeat", "surname", "own-name"))
RARE = 10
"""One other meaning, or one word in lower case, for so many names leaves a name its meaning."""

Meaning = tuple[int, str, int]
"""Entity, title, index of the source of a name."""


@dataclass(frozen=True)
class NamedPage:
    """A document with sentences, and its names.

    Attributes:
        number: number of the document in the batch.
        text: its text.
        title: its title.
        names: what its first paragraph has in bold letters.
        entity: its entity, -1 for an unknown one.
        is_known: whether it is known what it is about.
        spans: start and end of each anchor.
        targets: title that each anchor leads to.
        entities: entity of each anchor.
        typed: whether each anchor has a category.
        longer: names without a meaning, in which no other name is found: "Paris" in "An American in
            Paris", "Turing" in "Turing machine", a link that is no name.
        first_meanings: name -> what it means, by its first link.
        own_meanings: the names of the page itself -> what they mean.
        meanings: name -> the entities that it may mean, or titles of unknown ones.
    """

    number: int
    text: str
    title: str
    names: list[str]
    entity: int
    is_known: bool
    spans: list[tuple[int, int]]
    targets: list[str]
    entities: list[int]
    typed: list[bool]
    longer: set[str]
    first_meanings: dict[str, Meaning] = field(default_factory=dict)
    own_meanings: dict[str, Meaning] = field(default_factory=dict)
    meanings: dict[str, set[int | str]] = field(default_factory=dict)

    def links(self) -> Iterator[tuple[tuple[int, int], int, str, bool]]:
        """Span, entity, title of each anchor, and whether it has a category."""
        return zip(self.spans, self.entities, self.targets, self.typed, strict=True)

    def add(self, name: str, meaning: Meaning, language: str) -> None:
        """Adds a name, unless it may mean something else in another sentence."""
        entity, target, source = meaning
        # Half of the surnames look like demonyms: "Davis", "Reagan", "Piëch".
        doubts = is_people if source == SURNAME else partial(is_ambiguous, title=target)
        may_be_name = (
            name[:1].isupper()
            or language in WITHOUT_CAPITALS
            or has_common_word(name, target, language)
            or begins_with_number(name, target, language)
        )
        if may_be_name and not doubts(name, language=language):
            self.mean(name, entity if entity >= 0 else target)
            self.first_meanings.setdefault(name, meaning)
            if entity == self.entity >= 0:
                self.own_meanings.setdefault(name, meaning)

    def mean(self, name: str, entity: int | str) -> None:
        """Adds an entity that a name may mean, or the title of an unknown one."""
        self.meanings.setdefault(name, set()).add(entity)

    def settle_own_names(self) -> None:
        """Leaves the page's own names their meaning if links hardly ever have another one.

        The page of the band Metallica links its album "Metallica" once, and says the name 165
        times.
        """
        for name, meaning in self.own_meanings.items():
            if self.has_several(name) and self._is_mostly_own(name, meaning):
                self.meanings[name] = {self.entity}
                self.first_meanings[name] = meaning

    def _is_mostly_own(self, name: str, meaning: Meaning) -> bool:
        """Whether the page says a name of its own much more often than it links it to others.

        A surname that the dump knows as something else stays doubtful ("Portugal"), as does a bold
        name that is not in the title ("Sarkozy" of his former wife).
        """
        *_, source = meaning
        if source == OWN_NAME and name not in self.title:
            return False
        if source == SURNAME and self.meanings[name].difference(
            [self.entity], self.entities, self.targets
        ):
            return False
        n_others = sum(
            self.text[start:end] == name and entity != self.entity
            for (start, end), entity, *_ in self.links()
        )
        return RARE * n_others < self.text.count(name)

    def has_several(self, name: str) -> bool:
        """Whether a name may mean several entities."""
        return len(self.meanings.get(name, ())) > 1
