"""Mentions without a link: names whose page is known from titles, and from links of page and dump.

Editors link a name once and never link a page to itself. The other occurrences of the name are
mentions of the same page, unless they are a part of a longer name.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ontology.entity_table import NO_CLASS, EntityTable
from pipeline.examples.contexts import Contexts, features_of
from pipeline.examples.dictionary import Dictionary
from pipeline.examples.mentions import ENTITY_INDEX, SOURCES, Ints, Sentences, doubtful_anchors
from pipeline.examples.name_search import occurrences, shares_word, whole_names
from pipeline.wikitext.names import is_ambiguous

_BRACKET = re.compile(r"\s*\([^()]*\)$")
_SHORTEST_SURNAME = 3
_OF = (" of", " the")
_LINK, _TITLE, _REPEAT, _SURNAME, _DICTIONARY, _OTHER_TITLE = range(len(SOURCES))

Known = dict[str, tuple[int, str, int]]
"""Name -> entity, title, index of the source."""

_Meanings = dict[int, tuple[int, str, int]]
"""Number of a name -> entity, title, index of the source."""

Found = tuple[int, int, int, int, str, int]
"""Sentence, start, end, entity, title, index of the source of a mention."""


@dataclass(frozen=True)
class _Page:
    """A document with sentences.

    Attributes:
        text: its text.
        title: its title.
        entity: its entity, -1 for an unknown one.
        first: number of its first sentence in the batch.
        starts: starts of its sentences.
        ends: ends of its sentences.
        spans: start and end of each anchor.
        targets: title that each anchor leads to.
        entities: entity of each anchor.
        typed: whether each anchor has a category.
        concepts: texts of links that are no names: "Turing machine".
    """

    text: str
    title: str
    entity: int
    first: int
    starts: list[int]
    ends: list[int]
    spans: list[tuple[int, int]]
    targets: list[str]
    entities: list[int]
    typed: list[bool]
    concepts: list[str]

    def links(self) -> Iterator[tuple[tuple[int, int], int, str, bool]]:
        """Span, entity, title of each anchor, and whether it has a category."""
        return zip(self.spans, self.entities, self.targets, self.typed, strict=True)


_Free = tuple[int, int, int, _Page]
"""Sentence, start and end of a name whose meaning the page does not say; the page."""


class Propagation:
    """Finds mentions without a link."""

    def __init__(
        self,
        entities: EntityTable,
        dictionary: Dictionary | None = None,
        common: Container[str] = (),
        language: str = "en",
        contexts: Contexts | None = None,
    ) -> None:
        """Takes what is known of the dump.

        Args:
            entities: the entity table.
            dictionary: the dictionary of its links.
            common: its most frequent words, in lower case.
            language: code of its language.
            contexts: judges names that are titles of other pages; None leaves them alone.
        """
        self._entities = entities
        self._dictionary, self._contexts = dictionary, contexts
        self._common, self._language = common, language
        # The last one is for NO_CLASS.
        self._is_person = [kind == "Person" for kind in entities.class_kinds] + [False]

    def extended(self, batch: pa.RecordBatch, sentences: Sentences, labels: Ints) -> Sentences:
        """The sentences with the mentions that were found, besides those of links.

        Args:
            batch: documents.
            sentences: their sentences, with the anchors of links.
            labels: category index of each anchor, shape (anchors,).
        """
        mentions: list[Found] = []
        free: list[_Free] = []
        for page in self._pages(batch, sentences, labels):
            known, several, longer = self._names(page)
            taken = list(page.spans)
            for row, start, end, name in occurrences(
                page.text, known.keys() | longer, page.spans, page.starts, page.ends
            ):
                if name in known:
                    mentions.append((page.first + row, start, end, *known[name]))
                taken.append((start, end))
            if self._dictionary is not None or self._contexts is not None:
                taken.sort()
                free.extend(
                    (page.first + row, start, end, page)
                    for row, start, end in whole_names(
                        page.text, taken, page.starts, page.ends, self._common
                    )
                    if page.text[start:end] not in several
                )
        return _merged(sentences, mentions + self._elsewhere(free))

    def _pages(self, batch: pa.RecordBatch, sentences: Sentences, labels: Ints) -> Iterator[_Page]:
        """The documents that have sentences."""
        documents = sentences.documents[sentences.anchor_sentences]
        sentence_bounds = np.searchsorted(sentences.documents, np.arange(len(batch) + 1))
        anchor_bounds = np.searchsorted(documents, np.arange(len(batch) + 1))
        texts, titles = batch.column("text"), batch.column("title").to_pylist()
        own = self._entities.lookup(batch.column("title")).tolist()
        targets = sentences.targets.to_pylist()
        no_names = doubtful_anchors(batch)
        no_name_bounds = np.searchsorted(no_names[0], np.arange(len(batch) + 1))
        for number, title in enumerate(titles):
            inside = slice(int(sentence_bounds[number]), int(sentence_bounds[number + 1]))
            if inside.start == inside.stop:
                continue
            linked = slice(int(anchor_bounds[number]), int(anchor_bounds[number + 1]))
            spans = zip(
                sentences.anchor_starts[linked].tolist(),
                sentences.anchor_ends[linked].tolist(),
                strict=True,
            )
            others = slice(int(no_name_bounds[number]), int(no_name_bounds[number + 1]))
            edges = zip(no_names[1][others].tolist(), no_names[2][others].tolist(), strict=True)
            text = texts[number].as_py()
            yield _Page(
                text=text,
                title=title,
                entity=own[number],
                first=inside.start,
                starts=sentences.starts[inside].tolist(),
                ends=sentences.ends[inside].tolist(),
                spans=list(spans),
                targets=targets[linked],
                entities=sentences.entities[linked].tolist(),
                typed=(labels[linked] != ENTITY_INDEX).tolist(),
                concepts=[text[start:end] for start, end in edges],
            )

    def _elsewhere(self, free: Sequence[_Free]) -> list[Found]:
        """Mentions of the dictionary and of other titles; of two that overlap, the first one."""
        names = [page.text[start:end] for _, start, end, page in free]
        listed = list(self._dictionary.lookup(names)) if self._dictionary is not None else []
        meanings = self._in_titles(free, names, {place: entity for place, entity, *_ in listed})
        for place, entity, target, is_known in listed:
            if is_known:
                meanings[place] = (entity, target, _DICTIONARY)
            elif target and entity in free[place][3].entities and shares_word(names[place], target):
                # What only few links have is another form of a name that the page itself links.
                meanings[place] = (entity, target, _REPEAT)
        mentions: list[Found] = []
        last = (-1, -1)  # sentence and end of the mention before
        for place, (entity, target, source) in sorted(meanings.items()):
            row, start, end, _ = free[place]
            overlaps = row == last[0] and start < last[1]
            if not overlaps and not is_ambiguous(names[place], target, self._language):
                mentions.append((row, start, end, entity, target, source))
                last = row, end
        return mentions

    def _in_titles(
        self, free: Sequence[_Free], names: Sequence[str], listed: dict[int, int]
    ) -> _Meanings:
        """The names that are titles of other pages, if the words around them bear them out.

        Args:
            free: names.
            names: their texts.
            listed: number of each name that the dictionary has -> entity; another one than that
                with the title is a doubt.
        """
        if self._contexts is None or not names:
            return {}
        table = self._entities
        entities = table.lookup(names)
        classes = np.where(entities >= 0, table.classes[entities], NO_CLASS)
        is_typed = np.flatnonzero(classes != NO_CLASS).tolist()
        rows = [row for row in is_typed if listed.get(row, entities[row]) == entities[row]]
        places = [free[row] for row in rows]
        borne_out = self._contexts.bear_out(
            [table.class_kinds[number] for number in classes[rows].tolist()],
            [features_of(page.text, start, end) for _, start, end, page in places],
            [page.title for *_, page in places],
        )
        return {
            row: (int(entities[row]), names[row], _OTHER_TITLE)
            for row, is_right in zip(rows, borne_out.tolist(), strict=True)
            if is_right
        }

    def _names(self, page: _Page) -> tuple[Known, set[str], set[str]]:
        """The names of a page and what they mean; names with several meanings; names without one.

        The links of the whole dump are a meaning, too, and so is the page with this title: a page
        may link "Tennessee" to a river. In names without a meaning no other name is found: "Paris"
        in "An American in Paris", "Turing" in "Turing machine".
        """
        meanings: dict[str, set[int]] = {}
        known: Known = {}
        longer = set(page.concepts)

        def add(name: str, entity: int, target: str, source: int) -> None:
            if name and name[0].isupper() and not is_ambiguous(name, target, self._language):
                meanings.setdefault(name, set()).add(entity)
                known.setdefault(name, (entity, target, source))

        for (start, end), entity, target, typed in page.links():
            surface = page.text[start:end]
            if ", " in surface:  # "Washington, D.C." makes "Washington" more than a surname
                meanings.setdefault(surface.partition(", ")[0], set()).add(entity)
            if not typed:
                meanings.setdefault(surface, set()).add(entity)
                longer.add(surface)
            elif shares_word(surface, target):
                add(surface, entity, target, _REPEAT)
        plain = _BRACKET.sub("", page.title)
        # All titles begin with a capital; in its text a page on tennis writes "tennis".
        lower = plain[:1].lower() + plain[1:]
        is_word = lower in page.text and re.search(rf"\b{re.escape(lower)}\b", page.text)
        if page.entity >= 0 and self._entities.classes[page.entity] != NO_CLASS and not is_word:
            add(plain, page.entity, page.title, _TITLE)
        elif not is_word:
            longer.add(plain)
        if known:
            self._add_titles(known, meanings)
        own = _surname(plain)  # of a person's page: relatives that it links are called otherwise
        for name, (entity, target, _) in list(known.items()):
            if self._is_person[self._entities.classes[entity]]:
                surname = _surname(name)
                if surname and (entity == page.entity or surname != own):
                    add(surname, entity, target, _SURNAME)
        if self._dictionary is not None:
            names = list(known)
            for place, entity, _, is_known in self._dictionary.lookup(names):
                if is_known:
                    meanings[names[place]].add(entity)
        several = {name for name, entities in meanings.items() if len(entities) > 1}
        known = {name: facts for name, facts in known.items() if name not in several}
        return known, several, {name for name in longer if " " in name} - known.keys()

    def _add_titles(self, known: Known, meanings: dict[str, set[int]]) -> None:
        """Adds the page that has a name as its title, if it is of another kind."""
        names = list(known)
        kinds = self._entities.class_kinds
        own = self._entities.classes[[entity for entity, *_ in known.values()]].tolist()
        for name, entity, mine in zip(
            names, self._entities.lookup(pa.array(names)).tolist(), own, strict=True
        ):
            number = self._entities.classes[entity] if entity >= 0 else NO_CLASS
            if number != NO_CLASS and kinds[number] != kinds[mine]:
                meanings[name].add(entity)


def _surname(name: str) -> str:
    """The last word of the name of a person; "" for "Alexander II of Russia"."""
    before, _, surname = name.rpartition(" ")
    surname = surname.removesuffix("'s").removesuffix("’s")  # a link may hold "Ulysses Grant's"
    is_surname = len(surname) >= _SHORTEST_SURNAME and before and not before.endswith(_OF)
    return surname if is_surname else ""


def _merged(sentences: Sentences, more: Sequence[tuple[int, int, int, int, str, int]]) -> Sentences:
    """The sentences with more mentions, in order."""
    if not more:
        return sentences
    rows, starts, ends, entities, targets, sources = zip(*more, strict=True)
    places = np.concatenate([sentences.anchor_sentences, np.array(rows, np.int64)])
    begins = np.concatenate([sentences.anchor_starts, np.array(starts, np.int64)])
    order = np.lexsort((begins, places))
    return replace(
        sentences,
        anchor_sentences=places[order],
        anchor_starts=begins[order],
        anchor_ends=np.concatenate([sentences.anchor_ends, np.array(ends, np.int64)])[order],
        targets=pa.concat_arrays(
            [sentences.targets, pa.array(targets, sentences.targets.type)]
        ).take(pa.array(order)),
        entities=np.concatenate([sentences.entities, np.array(entities, np.int32)])[order],
        sources=np.concatenate([sentences.sources, np.array(sources, np.uint8)])[order],
    )
