"""The names of a page and what they mean: its links, its titles, bold names, surnames, initials."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nerbert.text.common_nouns import DETERMINERS
from ontology.dictionary import Dictionary
from ontology.entity_table import NO_CLASS, EntityTable
from pipeline.examples.mentions import ENTITY_INDEX, Ints, Sentences, doubtful_anchors
from pipeline.examples.named_page import OWN_NAME, RARE, REPEAT, SURNAME, TITLE, Meaning, NamedPage
from pipeline.wikitext.english import is_people
from pipeline.wikitext.names import are_initials, has_common_word, shares_word
from pipeline.wikitext.surnames import double_surname, surname_of

# "Mercury (planet)": the bracket tells pages of one name apart, and is not a part of it.
_BRACKET = re.compile(r"\s*\([^()]*\)$")
_INITIALS = re.compile(r"\s?\(([^\W\d_]{2,8})(?=[);,])")
"""What may be the initials of the name before it: " (NATO)"."""
_WITHOUT_GENITIVE = ("s", "x", "z", "ß")
_LEGAL_FORM = re.compile(
    r",? (?:A?FC|(?:A\.)?F\.C\.|Inc\.?|Ltd\.?|LLC|plc|Corp\.?|Corporation|GmbH|AG|S\.A\.|S\.p\.A\.|"
    r"N\.V\.|B\.V\.)$"
)
"""The end of a title of a club or company, which its page mostly leaves out."""
_STRESS = "\u0301"
"""The mark on a stressed vowel in Cyrillic letters."""
_ABOUT = (" of ", " of the ", " in ", " in the ")
"""Titles such as "Geography of England" are about England, and no other meaning of the name."""


class PageNames:
    """Finds the names of pages, and what they mean."""

    def __init__(
        self,
        entities: EntityTable,
        dictionary: Dictionary | None,
        language: str,
        describes: bool = False,
    ) -> None:
        """Takes the tables, and what the names of a page depend on.

        Args:
            entities: the entity table.
            dictionary: the dictionary of the dump's links.
            language: code of the language.
            describes: whether phrases say what a page is, as a class does.
        """
        self._entities, self._dictionary, self._language = entities, dictionary, language
        self._describes = describes
        # The last one is for NO_CLASS.
        self._is_person = [kind == "Person" for kind in entities.class_kinds] + [False]

    def read(
        self, batch: pa.RecordBatch, texts: Sequence[str], sentences: Sentences, labels: Ints
    ) -> dict[int, NamedPage]:
        """The documents that have sentences, with their names, by their numbers.

        Args:
            batch: documents.
            texts: their texts.
            sentences: their sentences, with the anchors of links.
            labels: category index of each anchor, shape (anchors,).
        """
        pages = self._pages(batch, texts, sentences, labels)
        self._find_names(list(pages.values()))
        return pages

    def _pages(
        self, batch: pa.RecordBatch, texts: Sequence[str], sentences: Sentences, labels: Ints
    ) -> dict[int, NamedPage]:
        """The documents that have sentences, by their numbers."""
        documents = sentences.documents[sentences.anchor_sentences]
        spans = _pairs(sentences.anchor_starts, sentences.anchor_ends)
        targets, entities = sentences.targets.to_pylist(), sentences.entities.tolist()
        typed = (labels != ENTITY_INDEX).tolist()
        no_names, *edges = doubtful_anchors(batch)
        no_name_spans = _pairs(*edges)
        numbers = np.arange(len(batch) + 1)
        bounds = np.searchsorted(documents, numbers).tolist()
        no_name_bounds = np.searchsorted(no_names, numbers).tolist()
        titles, page_entities = (
            batch.column("title").to_pylist(),
            self._entities.lookup(batch.column("title")),
        )
        is_known = page_entities >= 0
        is_known[is_known] = self._entities.classes[page_entities[is_known]] != NO_CLASS
        if self._describes:
            is_known |= self._entities.has_phrases(page_entities)
        names = batch.column("names").to_pylist()
        pages = {}
        for number in np.unique(sentences.documents).tolist():
            linked = slice(*bounds[number : number + 2])
            doubtful_spans = no_name_spans[slice(*no_name_bounds[number : number + 2])]
            pages[number] = NamedPage(
                number=number,
                text=texts[number],
                title=titles[number],
                names=names[number],
                entity=int(page_entities[number]),
                is_known=bool(is_known[number]),
                spans=spans[linked],
                targets=targets[linked],
                entities=entities[linked],
                typed=typed[linked],
                longer={texts[number][start:end] for start, end in doubtful_spans},
            )
        return pages

    def _find_names(self, pages: Sequence[NamedPage]) -> None:
        """Finds the names of pages, and what they mean.

        The links of the whole dump are a meaning, too, and so is the page with this title: a page
        may link "Tennessee" to a river.
        """
        for page in pages:
            self._add_links(page)
            self._add_title(page)
            self._add_own_names(page)
        self._add_titles([(page, name) for page in pages for name in page.first_meanings])
        for page in pages:
            self._add_surnames(page)
            self._add_genitives(page)
        if self._dictionary is not None:
            names = [(page, name) for page in pages for name in page.first_meanings]
            for place, entity, _, is_known in self._dictionary.lookup([name for _, name in names]):
                if is_known:
                    page, name = names[place]
                    page.mean(name, entity)
        for page in pages:
            page.settle_own_names()

    def _add_links(self, page: NamedPage) -> None:
        """Adds the texts of links, and their initials that follow in a bracket."""
        initials: list[tuple[str, Meaning]] = []
        for (start, end), entity, target, typed in page.links():
            surface = page.text[start:end]
            if ", " in surface:  # "Washington, D.C." makes "Washington" more than a surname
                page.mean(surface.partition(", ")[0], entity)
            if not typed:
                page.longer.add(surface)
                if not target.endswith(tuple(f"{word}{surface}" for word in _ABOUT)):
                    page.mean(surface, entity if entity >= 0 else target)
                is_name_of_it = target == surface and not is_people(surface, self._language)
            else:
                is_name_of_it = shares_word(surface, target)
            if is_name_of_it:
                page.add(surface, (entity, target, REPEAT), self._language)
                initials.append((_initials(surface, page.text, end), (entity, target, REPEAT)))
        # The page's own links say better what they mean.
        for name, meaning in [pair for pair in initials if pair[0] not in page.meanings]:
            page.add(name, meaning, self._language)

    def _add_title(self, page: NamedPage) -> None:
        """Adds the title of a page, unless its text has it in lower case, as a word."""
        plain = plain_title(page.title)
        meaning = page.entity, page.title, TITLE
        # All titles begin with a capital; in its text a page on tennis writes "tennis".
        low = plain[:1].lower() + plain[1:]
        if page.is_known and has_common_word(low, plain, self._language) and low in page.text:
            page.add(low, meaning, self._language)
        elif is_common(page.text, plain):
            return
        if page.is_known:
            page.add(plain, meaning, self._language)
            page.add(_LEGAL_FORM.sub("", plain), meaning, self._language)
        else:
            page.longer.add(plain)
            page.mean(plain, page.entity if page.entity >= 0 else page.title)

    def _add_own_names(self, page: NamedPage) -> None:
        """Adds other names of the page itself, by its own first paragraph."""
        if not page.is_known:
            return
        # Only the first sentence says where the stress is: "Тара́с Шевче́нко".
        plain = [name.replace(_STRESS, "") for name in page.names]
        for name in dict.fromkeys(page.names + plain):
            if name == name.lower() or not _has_word(page.text, name.lower()):
                page.add(name, (page.entity, page.title, OWN_NAME), self._language)

    def _add_titles(self, names: Sequence[tuple[NamedPage, str]]) -> None:
        """Adds the page that has a name as its title, if it is of another kind."""
        table = self._entities
        titled = table.lookup([name for _, name in names])
        # The last one is for index -1, and a kind for NO_CLASS.
        classes, kinds = np.append(table.classes, NO_CLASS), [*table.class_kinds, ""]
        own_classes = classes[[page.first_meanings[name][0] for page, name in names]].tolist()
        titled_classes = np.where(titled >= 0, table.classes[titled], NO_CLASS).tolist()
        for (page, name), entity, own_class, titled_class in zip(
            names, titled.tolist(), own_classes, titled_classes, strict=True
        ):
            # Of the same kind it is mostly the same thing, under a longer title.
            if titled_class != NO_CLASS and kinds[titled_class] != kinds[own_class]:
                page.mean(name, entity)

    def _add_surnames(self, page: NamedPage) -> None:
        """Adds the surnames of persons."""
        # Relatives that the page of a person links are called otherwise.
        page_title = plain_title(page.title)
        page_surname = surname_of(page_title, page_title, self._language)
        for name, (entity, target, _) in list(page.first_meanings.items()):
            if entity >= 0 and self._is_person[self._entities.classes[entity]]:
                surname = surname_of(name, plain_title(target), self._language)
                if surname and (entity == page.entity or surname != page_surname):
                    page.add(surname, (entity, target, SURNAME), self._language)
                    double = double_surname(name, surname)
                    if double:
                        page.add(double, (entity, target, SURNAME), self._language)

    def _add_genitives(self, page: NamedPage) -> None:
        """Adds the genitives of German names: "Schopenhauers" on the page of Schopenhauer."""
        if self._language in DETERMINERS:
            for name, meaning in list(page.first_meanings.items()):
                if name[-1].isalpha() and not name.endswith(_WITHOUT_GENITIVE):
                    page.add(f"{name}s", meaning, self._language)


def plain_title(title: str) -> str:
    """A title without the bracket that tells pages of one name apart: "Mercury (planet)"."""
    return _BRACKET.sub("", title)


def is_common(text: str, name: str) -> bool:
    """Whether a text has a name in lower case, and not just once in a while: "audi" as Latin."""
    low = name[:1].lower() + name[1:]
    if low == name or low not in text:
        return False
    counts = [len(re.findall(rf"\b{re.escape(form)}\b", text)) for form in (low, name)]
    return RARE * counts[0] > counts[1]


def _has_word(text: str, word: str) -> bool:
    return word in text and re.search(rf"\b{re.escape(word)}\b", text) is not None


def _initials(name: str, text: str, end: int) -> str:
    """The initials of a name that follow its end in the text, in a bracket; "" for none."""
    match = _INITIALS.match(text, end)
    return match[1] if match and are_initials(match[1], name) else ""


def _pairs(starts: Ints, ends: Ints) -> list[tuple[int, int]]:
    return list(zip(starts.tolist(), ends.tolist(), strict=True))
