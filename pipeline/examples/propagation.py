"""Mentions without a link: names whose page is known from titles, and from links of page and dump.

Editors link a name once and never link a page to itself. The other occurrences of the name are
mentions of the same page, unless they are a part of a longer name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from nerbert.storage.places import Place
from nerbert.text.common_nouns import CommonNouns
from ontology.dictionary import Dictionary
from ontology.entity_table import NO_CLASS, EntityTable
from pipeline.examples.contexts import Contexts, features_of
from pipeline.examples.exact_names import ExactNames
from pipeline.examples.mentions import SOURCES, Ints, Sentences
from pipeline.examples.name_search import Capitals
from pipeline.examples.named_page import REPEAT, SURNAME, TITLE, Meaning, NamedPage
from pipeline.examples.page_names import PageNames, is_common, plain_title
from pipeline.examples.unlinked import PageWords
from pipeline.language import NO_WORDS, CommonWords
from pipeline.plan import DICTIONARY, propagates
from pipeline.settings import CorpusSettings
from pipeline.wikitext.english import is_ambiguous
from pipeline.wikitext.names import WITHOUT_CAPITALS, has_low_nouns, shares_word
from pipeline.wikitext.surnames import particle_before

_DICTIONARY, _OTHER_TITLE = map(SOURCES.index, ("dictionary", "other-title"))

Found = tuple[int, int, int, int, str, int]
"""Sentence, start, end, entity, title, index of the source of a mention."""

_MADE_OTHER = {
    "vi": ("tiếng ", "người ", "châu "),
    "id": ("bahasa ", "orang "),
    "ms": ("bahasa ", "orang "),
}
"""Words before the name of a country that make a language, a people or a continent of it: "tiếng
Anh", "châu Mỹ"."""
_LONGEST_BEFORE = 8
_NOTHING: Meaning = (-1, "", SOURCES.index("link"))
"""What a name without a meaning means."""

_LOW_WORD = re.compile(r" ([^\W\d_]+)\b")
"""The word behind a name."""

_Free = tuple[int, int, int, NamedPage]
"""Sentence, start and end of a name whose meaning the page does not say; the page."""


class Propagation:
    """Finds mentions without a link."""

    def __init__(
        self,
        entities: EntityTable,
        dictionary: Dictionary | None = None,
        common: CommonWords = NO_WORDS,
        language: str = "en",
        contexts: Contexts | None = None,
        describes: bool = False,
    ) -> None:
        """Takes the tables that the stages before have made of the dump.

        Args:
            entities: the entity table.
            dictionary: the dictionary of its links.
            common: its most frequent words, in lower case, and its common nouns.
            language: code of its language.
            contexts: judges names that are titles of other pages; None leaves them alone.
            describes: whether phrases say what a page is, as a class does.
        """
        self._entities = entities
        self.dictionary, self._contexts = dictionary, contexts
        self._common, self._language = common.words, language
        self._nouns = names_aside(common.nouns, entities)
        self._names = PageNames(entities, dictionary, language, describes)
        self._made_other = _MADE_OTHER.get(language, ())

    @classmethod
    def of_run(
        cls,
        entities: EntityTable,
        examples: Place,
        settings: CorpusSettings,
        common: CommonWords,
        language: str,
    ) -> Propagation | None:
        """Opens the tables in a run's folder of examples; None if it has mentions of links only."""
        if not propagates(settings, language):
            return None
        dictionary = Dictionary.open(examples / DICTIONARY) if settings.dictionary_links else None
        contexts = Contexts.open(examples) if settings.fill else None
        return cls(entities, dictionary, common, language, contexts, settings.keep_described)

    def extended(
        self, batch: pa.RecordBatch, words: PageWords, sentences: Sentences, labels: Ints
    ) -> Sentences:
        """The sentences with the mentions that were found, besides those of links.

        Args:
            batch: documents.
            words: their texts, and the words of these.
            sentences: their sentences, with the anchors of links.
            labels: category index of each anchor, shape (anchors,).
        """
        pages = self._names.read(batch, words.texts, sentences, labels)
        places = words, sentences.documents, sentences.starts, sentences.ends
        has_capitals = self._language not in WITHOUT_CAPITALS
        capitals = Capitals(*places, self._nouns.has) if has_capitals else None
        exact = ExactNames(*places, self._language)
        mentions = [
            mention for page in pages.values() for mention in self._named(page, capitals, exact)
        ]
        free: list[_Free] = []
        if capitals and (self.dictionary is not None or self._contexts is not None):
            ambiguous = (-1, -1)  # sentence and end
            for number, row, start, end in capitals.whole_names(
                *_occupied(sentences, mentions), self._common
            ):
                page = pages[number]
                if page.has_several(page.text[start:end]):
                    ambiguous = row, end  # "York" is none if "New York" is the city or the state
                elif (row, end) != ambiguous and not self._is_made_other(page.text, start, end):
                    free.append((row, start, end, page))
            if self.dictionary is not None and has_low_nouns(self._language):
                mentions, free = _gone_on(self.dictionary, sentences, pages, mentions, free)
        mentions = [mention for mention in mentions if mention[3:] != _NOTHING]
        return _merged(sentences, mentions + self._elsewhere(free))

    def _named(
        self, page: NamedPage, capitals: Capitals | None, exact: ExactNames
    ) -> Iterator[Found]:
        """Mentions by the names of a page, and places of longer ones, which mean nothing."""
        meanings = {
            n: meaning for n, meaning in page.first_meanings.items() if not page.has_several(n)
        }
        longer = {name for name in page.longer if " " in name}
        if capitals is None:
            places = list(exact.occurrences(page.number, meanings.keys() | longer, page.spans))
        else:
            low = [name for name in meanings if not name[0].isupper()]  # "mer Noire", "2 Pallas"
            low += [name for name in longer if name[0].isdigit()]  # no country in "1916 US census"
            places = list(exact.occurrences(page.number, low, page.spans)) if low else []
            occupied = sorted([*page.spans, *((start, end) for _, start, end, _ in places)])
            # "Latgolys gaisma" is the party before "Daugavpils", too: its last word ends it.
            ended = {name for name in longer if name.rpartition(" ")[2][:1].islower()}
            sought = page.number, meanings.keys() | longer, occupied, self._no_places(meanings)
            places += capitals.occurrences(*sought, hiding=ended.difference(meanings))
        for row, start, end, name in places:
            if not self._is_made_other(page.text, start, end):
                meaning = meanings.get(name, _NOTHING)
                if meaning[2] == SURNAME:
                    start -= particle_before(page.text, start, plain_title(meaning[1]))
                yield row, start, end, *meaning

    def _is_made_other(self, text: str, start: int, end: int) -> bool:
        """Whether what is beside a name makes a language, a people or a currency of it: "US$"."""
        before = text[max(0, start - _LONGEST_BEFORE) : start].lower()
        return before.endswith(self._made_other) or text.startswith("$", end)

    def _no_places(self, meanings: Mapping[str, Meaning]) -> list[str]:
        """The names that common nouns may stand beside; none where these have no capital."""
        if not self._nouns:
            return []
        entities = np.array([entity for entity, _, _ in meanings.values()], np.int32)
        is_place = self._entities.of_kind(entities, "Place").tolist()
        return [name for name, is_one in zip(meanings, is_place, strict=True) if not is_one]

    def _elsewhere(self, free: Sequence[_Free]) -> list[Found]:
        """Mentions of the dictionary and of other titles; of two that overlap, the first one."""
        names = [page.text[start:end] for _, start, end, page in free]
        listed = list(self.dictionary.lookup(names)) if self.dictionary is not None else []
        meanings = self._in_titles(free, names, {place: entity for place, entity, *_ in listed})
        for place, entity, target, is_known in listed:
            page = free[place][3]
            if is_known:
                meanings[place] = (entity, target, _DICTIONARY)
            elif target and shares_word(names[place], target):
                # What only few links have is another form of a name that the page itself links, or
                # of its title.
                if entity in page.entities:
                    meanings[place] = (entity, target, REPEAT)
                elif entity == page.entity and not is_common(page.text, names[place]):
                    meanings[place] = (entity, target, TITLE)
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
    ) -> dict[int, Meaning]:
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


def names_aside(nouns: CommonNouns, entities: EntityTable) -> CommonNouns:
    """The common nouns without titles of pages with a class, which are names: "Alpen", "Rhein"."""
    if not nouns:
        return nouns
    words = sorted(nouns.words)
    rows = entities.lookup(words)
    is_typed = (rows >= 0) & (entities.classes[rows] != NO_CLASS)
    return nouns.without({word for word, typed in zip(words, is_typed, strict=True) if typed})


def _gone_on(
    dictionary: Dictionary,
    sentences: Sentences,
    pages: Mapping[int, NamedPage],
    mentions: Sequence[Found],
    free: Sequence[_Free],
) -> tuple[list[Found], list[_Free]]:
    """The mentions and free names, of which those are longer that the dictionary has so.

    "Daugpiļs nūvoda" is the district, not the town; what a longer one means is asked anew.
    """
    page_mentions = [
        (*mention[:3], pages[int(sentences.documents[mention[0]])]) for mention in mentions
    ]
    starts = sentences.anchor_starts.tolist()
    beginnings = {*zip(sentences.anchor_sentences.tolist(), starts, strict=True)}
    beginnings.update(mention[:2] for mention in mentions)
    longer: dict[tuple[int, int], _Free] = {}
    for row, start, end, page in [*page_mentions, *free]:
        match = _LOW_WORD.match(page.text, end, int(sentences.ends[row]))
        if match and match[1].islower() and (row, end + 1) not in beginnings:
            longer[row, start] = row, start, match.end(), page
    texts = [page.text[start:end] for _, start, end, page in longer.values()]
    places = list(longer)
    listed = {places[number]: longer[places[number]] for number, *_ in dictionary.lookup(texts)}
    names = {name[:2]: name for name in free} | listed
    unchanged = [mention for mention in mentions if mention[:2] not in listed]
    return unchanged, [names[place] for place in sorted(names)]


def _occupied(sentences: Sentences, mentions: Sequence[Found]) -> tuple[Ints, Ints, Ints]:
    """Sentence, start and end of the anchors and of the mentions that were found, in order."""
    spans = np.array([mention[:3] for mention in mentions], np.int64).reshape(-1, 3)
    anchors = sentences.anchor_sentences, sentences.anchor_starts, sentences.anchor_ends
    all_spans = np.concatenate([np.stack(anchors, 1), spans])
    rows, starts, ends = all_spans[np.lexsort((all_spans[:, 1], all_spans[:, 0]))].T
    return rows, starts, ends


def _merged(sentences: Sentences, added: Sequence[Found]) -> Sentences:
    """The sentences with more mentions, in order."""
    if not added:
        return sentences
    rows, starts, ends, entities, targets, sources = zip(*added, strict=True)
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
