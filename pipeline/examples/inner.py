"""Mentions inside of mentions: "Minnesota" in "University of Minnesota".

A part of a name is a mention only if the page of the longer name links it: the page of the
university links the state, and that of North York links no York. Such links are counted with the
dictionary of the dump, each under the page that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ontology.dictionary import Dictionary
from ontology.entity_table import NO_CLASS, EntityTable
from pipeline.examples.mentions import ENTITY_INDEX, Ints, Labelling, Sentences
from pipeline.examples.page_names import plain_title
from pipeline.examples.rows import INNER, Tokenised
from pipeline.wikitext.english import is_people

LINKS = 1_000_000
"""A page links such a name once and means it everywhere: it counts as so many links."""
_MOST_TOKENS = 12
"""Tokens of a mention in which others are sought; longer ones are titles of works and laws."""
_OF = (" of ", " of the ", ", ", " de ", " di ", " von ")
"""What stands before a place that the name is not only called after."""
_INHABITED = frozenset(
    "PopulatedPlace Settlement City CityDistrict Town Village Municipality Country State Region "
    "AdministrativeRegion HistoricalRegion GovernmentalAdministrativeRegion Province Territory "
    "Island Continent HistoricalSettlement Capital".split()
)
_AFTER = np.iinfo(np.int64).max


def inner_key(entity: int, text: str) -> str:
    """The text under which the dictionary has a name that the page of an entity links."""
    return f"{entity}\n{text}"


def linked_inside(
    titles: pa.Array,
    names: Sequence[Sequence[str]],
    documents: Ints,
    surfaces: Sequence[str],
    sentences: Sentences,
    table: EntityTable,
    language: str,
) -> tuple[list[str], Ints]:
    """The links of pages with a class whose texts are a part of a name of the page.

    Args:
        titles: titles of the documents.
        names: their other names; see `pipeline.documents.rows.bold_names`.
        documents: document of each link, shape (links,).
        surfaces: texts of the links.
        sentences: the sentences with the links.
        table: the entity table.
        language: code of the language.

    Returns:
        Key of each such link, see `inner_key`, and its number.
    """
    pages = table.lookup(titles).tolist()
    all_names = [
        [plain_title(title), title, *other_names]
        for title, other_names in zip(titles.to_pylist(), names, strict=True)
    ]
    entities, classes = sentences.entities, np.append(table.classes, NO_CLASS)
    class_names, kinds = [*table.class_names, ""], [*table.class_kinds, ""]
    keys, numbers = [], []
    for number in np.flatnonzero(classes[entities] != NO_CLASS).tolist():
        document, surface = int(documents[number]), surfaces[number]
        page, target = pages[document], classes[entities[number]]
        if page in (-1, int(entities[number])) or class_names[target] == "EthnicGroup":
            continue
        before = [
            text for name in all_names[document] if (text := _before(surface, name)) is not None
        ]
        if not before or is_people(surface, language):
            continue
        is_part = not _may_be_alike(class_names[classes[page]], kinds[classes[page]], kinds[target])
        # "City of New York" is New York City.
        if is_part or ("" not in before and any(text.endswith(_OF) for text in before)):
            keys.append(inner_key(page, surface))
            numbers.append(number)
    return keys, np.array(numbers, np.int64)


def _before(text: str, name: str) -> str | None:
    """What stands in a longer name before a text; None if it is no part between other words."""
    place = name.find(text)
    if place < 0 or len(text) == len(name):
        return None
    around = name[place - 1 : place], name[place + len(text) : place + len(text) + 1]
    return None if any(map(str.isalnum, around)) else name[:place]


def _may_be_alike(page_class: str, page_kind: str, kind: str) -> bool:
    """Whether a page may be called after something that it is not a part of.

    Persons are called after persons and places ("Silvio" in "Pier Silvio"), places after places:
    "New York City" is no city of the state, "Tyler, Texas" is.
    """
    return page_kind == "Person" or (kind == "Place" and page_class in _INHABITED)


class _Place(NamedTuple):
    """A part of a mention: number of the mention, first token, and one after the last."""

    mention: int
    first: int
    after: int


class InnerMentions:
    """Finds mentions inside of mentions."""

    def __init__(self, dictionary: Dictionary | None, labelling: Labelling) -> None:
        """Takes the dictionary of the dump's links, and the categories of its entities."""
        self._dictionary, self._labelling = dictionary, labelling

    def read(self, sentences: Sentences, tokenised: Tokenised) -> pa.ListArray:
        """INNER of each tokenised sentence; of two that overlap, the longer one."""
        rows = self._inside(self._dictionary, sentences, tokenised) if self._dictionary else []
        mentions = np.array([mention for mention, *_ in rows], np.int64)
        owners = sentences.anchor_sentences[tokenised.anchors[mentions]]
        bounds = np.searchsorted(owners, np.append(tokenised.rows, _AFTER))
        bases = tokenised.tokens.bounds[np.searchsorted(tokenised.rows, owners)].tolist()
        values = [
            {"start": first - base, "end": after - base, "label": label, "target": target}
            for (_, first, after, label, target), base in zip(rows, bases, strict=True)
        ]
        return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), pa.array(values, INNER))

    def _inside(
        self, dictionary: Dictionary, sentences: Sentences, tokenised: Tokenised
    ) -> list[tuple[int, int, int, str, str]]:
        """Mention, first token, one after the last, category and title, in order."""
        places = list(_parts(tokenised))
        entities = sentences.entities[tokenised.anchors].tolist()
        starts, ends, text = tokenised.tokens.starts, tokenised.tokens.ends, tokenised.tokens.text
        keys = [
            inner_key(entities[place.mention], text[starts[place.first] : ends[place.after - 1]])
            for place in places
        ]
        names, by_entity = self._labelling.names, self._labelling.by_entity
        mentions_inside: list[tuple[int, int, int, str, str]] = []
        for number, entity, target, _ in dictionary.lookup(keys):
            mention, first, after = places[number]
            label = int(by_entity[entity])
            is_last = mentions_inside and mentions_inside[-1][0] == mention
            if label == ENTITY_INDEX or (is_last and first < mentions_inside[-1][2]):
                continue
            mentions_inside.append((mention, first, after, names[label], target))
        return mentions_inside


def _parts(tokenised: Tokenised) -> Iterator[_Place]:
    """The parts of mentions that begin with a capital; of those that begin alike longer first."""
    words = tokenised.words
    columns = tokenised.first.tolist(), tokenised.after.tolist()
    for mention, (first, after) in enumerate(zip(*columns, strict=True)):
        if not 1 < after - first <= _MOST_TOKENS:
            continue
        for start in range(first, after):
            if not words[start][0].isalpha() or words[start][0].islower():
                continue
            for stop in range(after, start, -1):
                if stop - start < after - first and words[stop - 1][-1].isalnum():
                    yield _Place(mention, start, stop)
