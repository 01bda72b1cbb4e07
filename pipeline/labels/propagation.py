"""Mentions without a link: names whose page is known from the title or from links of the page.

Editors link a name once and never link a page to itself. The other occurrences of the name are
mentions of the same page, unless they are a part of a longer name.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ontology.entity_table import NO_CLASS, EntityTable
from pipeline.labels.dictionary import Dictionary
from pipeline.labels.mentions import ENTITY_INDEX, SOURCES, Ints, Sentences

_BRACKET = re.compile(r"\s*\([^()]*\)$")
_CAPITAL = re.compile(r"(?<!\w)[^\W\d_a-z]\w*")
"""A word that may begin with a capital; words of ASCII in lower case are skipped quickly."""
_INITIAL = re.compile(r"\b[^\W\d_]\. ?$")
"""The end of a text after which a name goes on: "Richard M."."""
_SHORTEST_SURNAME = 3
_LINK, _TITLE, _REPEAT, _SURNAME, _DICTIONARY = range(len(SOURCES))
_JOINED = re.compile(
    r"(?<=\b\w)\. ?|(?<=\b\w\w)\. |-|"
    r" (?:(?:of|de|del|della|di|da|do|dos|du|des|la|le|los|las|y|von|van|der|den|bin|ibn|al) )?"
    r"(?:(?:the|la|los|las|der|den) )?"
)
"""What stands between the words of one name."""


Known = dict[str, tuple[int, str, int]]
"""Name -> entity, title, index of the source."""


class Propagation:
    """Finds mentions without a link."""

    def __init__(
        self,
        entities: EntityTable,
        dictionary: Dictionary | None = None,
        common: Container[str] = (),
    ) -> None:
        """Takes the entity table, the dictionary of the dump, and its most frequent words."""
        self._entities = entities
        self._dictionary, self._common = dictionary, common
        # The last one is for NO_CLASS.
        self._is_person = [kind == "Person" for kind in entities.class_kinds] + [False]

    def extended(self, batch: pa.RecordBatch, sentences: Sentences, labels: Ints) -> Sentences:
        """The sentences with the mentions that were found, besides those of links.

        Args:
            batch: documents.
            sentences: their sentences, with the anchors of links.
            labels: category index of each anchor, shape (anchors,).
        """
        found: list[tuple[int, int, int, int, str, int]] = []
        free: list[tuple[int, int, int, str]] = []
        documents = sentences.documents[sentences.anchor_sentences]
        sentence_bounds = np.searchsorted(sentences.documents, np.arange(len(batch) + 1))
        anchor_bounds = np.searchsorted(documents, np.arange(len(batch) + 1))
        texts, titles = batch.column("text"), batch.column("title").to_pylist()
        own = self._entities.lookup(batch.column("title"))
        targets = sentences.targets.to_pylist()
        for number, title in enumerate(titles):
            inside = slice(int(sentence_bounds[number]), int(sentence_bounds[number + 1]))
            if inside.start == inside.stop:
                continue
            linked = slice(int(anchor_bounds[number]), int(anchor_bounds[number + 1]))
            text = texts[number].as_py()
            spans = list(
                zip(
                    sentences.anchor_starts[linked].tolist(),
                    sentences.anchor_ends[linked].tolist(),
                    strict=True,
                )
            )
            links = [
                (text[start:end], int(entity), target)
                for (start, end), entity, target, label in zip(
                    spans,
                    sentences.entities[linked].tolist(),
                    targets[linked],
                    labels[linked].tolist(),
                    strict=True,
                )
                if label != ENTITY_INDEX
            ]
            known, several = self._names(text, title, int(own[number]), links)
            starts = sentences.starts[inside].tolist()
            ends = sentences.ends[inside].tolist()
            taken = list(spans)
            for row, start, end, name in occurrences(text, known, spans, starts, ends):
                entity, target, source = known[name]
                found.append((inside.start + row, start, end, entity, target, source))
                taken.append((start, end))
            if self._dictionary is not None:
                free.extend(
                    (inside.start + row, start, end, text[start:end])
                    for row, start, end in whole_names(
                        text, sorted(taken), starts, ends, self._common
                    )
                    if text[start:end] not in several
                )
        if self._dictionary is not None:
            last = (-1, -1)  # sentence and end of the mention before
            for place, entity, target in self._dictionary.lookup([name for *_, name in free]):
                row, start, end, _ = free[place]
                if row != last[0] or start >= last[1]:
                    found.append((row, start, end, entity, target, _DICTIONARY))
                    last = row, end
        return _merged(sentences, found)

    def _names(
        self, text: str, title: str, own: int, links: Sequence[tuple[str, int, str]]
    ) -> tuple[Known, set[str]]:
        """The names of a page and what they mean, and names with several meanings."""
        meanings: dict[str, set[int]] = {}
        known: Known = {}

        def add(name: str, entity: int, target: str, source: int) -> None:
            if name and name[0].isupper():
                meanings.setdefault(name, set()).add(entity)
                known.setdefault(name, (entity, target, source))

        for surface, entity, target in links:
            add(surface, entity, target, _REPEAT)
        plain = _BRACKET.sub("", title)
        # All titles begin with a capital; in its text a page on tennis writes "tennis".
        is_word = re.search(rf"\b{re.escape(plain[:1].lower() + plain[1:])}\b", text)
        if own >= 0 and self._entities.classes[own] != NO_CLASS and not is_word:
            add(plain, own, title, _TITLE)
        for name, (entity, target, _) in list(known.items()):
            if self._is_person[self._entities.classes[entity]]:
                surname = name.rpartition(" ")[2]
                if len(surname) >= _SHORTEST_SURNAME and surname != name:
                    add(surname, entity, target, _SURNAME)
        several = {name for name, entities in meanings.items() if len(entities) > 1}
        return {name: facts for name, facts in known.items() if name not in several}, several


def occurrences(
    text: str,
    names: Sequence[str] | Known,
    taken: Sequence[tuple[int, int]],
    starts: Sequence[int],
    ends: Sequence[int],
) -> Iterator[tuple[int, int, int, str]]:
    """Finds names in the sentences of a text that are not a part of a longer name.

    Of several names at one place the longest is found. A capitalised word directly before or after
    an occurrence makes it a part of a longer name; the first word of a sentence does so only if the
    text nowhere has it in lower case.

    Args:
        text: text of a document.
        names: names that begin with a capital.
        taken: spans of the anchors, in order.
        starts: starts of the sentences, in order.
        ends: ends of the sentences.

    Yields:
        Number of the sentence, start and end of the occurrence, and the name.
    """
    by_word: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: (-len(name), name)):
        word = _CAPITAL.match(name)
        if word is not None:
            by_word.setdefault(word[0], []).append(name)
    lower = f" {text} "
    anchor = free = 0
    for row, (first, last) in enumerate(zip(starts, ends, strict=True)):
        before: tuple[int, int] | None = None  # span of the capitalised word before
        for match in _CAPITAL.finditer(text, first, last):
            start, end = match.span()
            while anchor < len(taken) and taken[anchor][1] <= start:
                anchor += 1
            previous, before = before, (start, end) if match[0][0].isupper() else None
            if start < free or match[0] not in by_word:
                continue
            for name in by_word[match[0]]:
                stop = start + len(name)
                if not text.startswith(name, start) or stop > last:
                    continue
                if anchor < len(taken) and taken[anchor][0] < stop:
                    continue
                if _goes_on(text, stop, last) or _INITIAL.search(
                    text, max(first, start - 3), start
                ):
                    continue
                if previous is not None and text[previous[1] : start] in (" ", "-"):
                    word_before = text[previous[0] : previous[1]].lower()
                    if previous[0] != first or f" {word_before} " not in lower:
                        continue
                yield row, start, stop, name
                free = stop
                break


def whole_names(
    text: str,
    taken: Sequence[tuple[int, int]],
    starts: Sequence[int],
    ends: Sequence[int],
    common: Container[str] = (),
) -> Iterator[tuple[int, int, int]]:
    """Finds the longest runs of capitalised words: "Bank of England", not "England" in it.

    The first word of a sentence is no part of a run if the text has it in lower case, too. If it is
    a common word ("The") and not capitalised elsewhere ("New"), the run is found with and without
    it.

    Args:
        text: text of a document.
        taken: spans of known mentions, in order; a run that touches one is left out.
        starts: starts of the sentences, in order.
        ends: ends of the sentences.
        common: the most frequent words of the language, in lower case.

    Yields:
        Number of the sentence, start and end of the run; of two that overlap, the longer one first.
    """
    lower = f" {text} "
    mention = 0
    for row, (first, last) in enumerate(zip(starts, ends, strict=True)):
        runs: list[list[int]] = []
        second = first  # start of the second word of a run that begins with a common word
        for match in _CAPITAL.finditer(text, first, last):
            start, end = match.span()
            if not text[start].isupper():
                continue
            if runs and _JOINED.fullmatch(text, runs[-1][1], start):
                if runs[-1] == [first, second]:
                    second = start
                runs[-1][1] = end
            elif start == first and f" {match[0].lower()} " in lower:
                continue
            else:
                runs.append([start, end])
                if (
                    start == first
                    and match[0].lower() in common
                    and not re.search(rf"[^\W\dA-Z_],? {match[0]}\b", text)
                ):
                    second = end
        if runs and runs[0][0] == first < second < runs[0][1]:
            runs.insert(1, [second, runs[0][1]])
        for start, end in runs:
            while mention < len(taken) and taken[mention][1] < start - 1:
                mention += 1
            # A run beside a mention may be a part of its name.
            is_free = mention == len(taken) or taken[mention][0] > end + 1
            if is_free and end - start > 1 and not _goes_on(text, end, last):
                yield row, start, end


def _goes_on(text: str, stop: int, last: int) -> bool:
    """Whether the name ends inside a word, or a capitalised word or a number follows it."""
    after = text[stop : min(stop + 2, last)]
    if not after:
        return False
    if after[0].isalnum() or after[0] == "_":
        return True
    return len(after) > 1 and after[0] in " -" and (after[1].isupper() or after[1].isdigit())


def _merged(
    sentences: Sentences, found: Sequence[tuple[int, int, int, int, str, int]]
) -> Sentences:
    """The sentences with more mentions, in order."""
    if not found:
        return sentences
    rows, starts, ends, entities, targets, sources = zip(*found, strict=True)
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
