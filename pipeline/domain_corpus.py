"""Sentences of a domain: documents in its wiki categories -> rows, levels, pre-annotation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ontology.categories import ENTITY
from ontology.classes import ClassTree
from ontology.entities import NO_CLASS, EntityTable
from pipeline.corpus import DOCUMENT_COLUMNS
from pipeline.domains import LEVELS, MISC, DomainSettings
from pipeline.filters import Contamination
from pipeline.labelling import Ints, Labelling, Sentences, sentences_of
from pipeline.site import ARTICLE
from pipeline.tokens import tokenize

COLUMNS = pa.schema([
    ("text", pa.string()),  # a sentence
    ("tokens", pa.int32()),  # how many
    ("entities", pa.int32()),  # distinct pages with a class that it links to
    ("entity", pa.bool_()),  # whether it is of the entity level
    ("task", pa.bool_()),  # whether it is of the task level
    ("page_id", pa.int64()),
    ("title", pa.string()),
    ("revision_id", pa.int64()),
    ("sentence", pa.int32()),  # number of the sentence in its page
    ("start", pa.int32()),  # characters of the document's text
    ("end", pa.int32()),
    ("category", pa.string()),  # wiki category through which the page came in
    ("root", pa.string()),  # root above it
    ("depth", pa.int32()),  # steps from the root to the category
])  # fmt: skip
"""Columns of `sentences/part-*.parquet`."""

READ = ("namespace", "redirect", "categories", *DOCUMENT_COLUMNS)
"""Columns of a document that are read."""


@dataclass
class Taken:
    """What was taken of a part.

    Attributes:
        pages: by what became of them; `by_depth`: those taken, by root and depth.
        sentences: by what became of them.
        levels: sentences and tokens of the columns' levels.
        types: mentions of each type.
        contamination: (page:sentence, kind, file, sentence of the file) of each hit.
    """

    pages: Counter[str] = field(default_factory=Counter)
    by_depth: Counter[str] = field(default_factory=Counter)
    sentences: Counter[str] = field(default_factory=Counter)
    levels: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    contamination: list[tuple[str, str, int, int]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready counts."""
        counters = ("pages", "by_depth", "sentences", "levels", "types")
        counts = {name: dict(sorted(getattr(self, name).items())) for name in counters}
        return {**counts, "contamination": self.contamination}


@dataclass(frozen=True)
class _Known:
    """Of each entity, its last the unknown one: whether it has a class, and its type."""

    typed: npt.NDArray[np.bool_]
    kinds: npt.NDArray[np.object_]
    special: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, table: EntityTable, settings: DomainSettings, tree: ClassTree) -> _Known:
        labelling = Labelling.of(table, settings.domain.categories, tree)
        typed = np.append(table.classes, NO_CLASS) != NO_CLASS
        names = np.array(labelling.names, object)
        names[names == ENTITY] = MISC
        special = np.isin(names.astype(str), list(settings.domain.special))
        return cls(typed, names[labelling.by_entity], special[labelling.by_entity])


class Picker:
    """Takes the sentences of a domain's pages."""

    def __init__(
        self, table: EntityTable, walked: pa.Table, settings: DomainSettings, tree: ClassTree,
        contamination: Contamination,
    ) -> None:  # fmt: skip
        """Prepares.

        Args:
            table: of entities.
            walked: wiki categories of the domain, nearest to the roots first.
            settings: of the corpus.
            tree: of the ontology's classes.
            contamination: of evaluation sets.
        """
        self._table, self._settings = table, settings
        self._known = _Known.of(table, settings, tree)
        self._names = walked.column("name").combine_chunks()
        self._walked = walked.to_pylist()
        self._contamination = contamination

    def pick(self, batch: pa.RecordBatch, taken: Taken) -> tuple[pa.RecordBatch, str]:
        """Rows of a batch of documents, and their mentions as CoNLL columns."""
        batch, places = self._pages(batch, taken)
        sentences = sentences_of(batch, self._table)
        entities = self._distinct(sentences)
        special = sentences.count(self._known.special[sentences.entities])
        levels = {
            "entity": entities >= self._settings.entity_mentions,
            "task": special >= self._settings.task_mentions,
        }  # fmt: skip
        rows, blocks = [], []
        for row, block in self._rows(batch, sentences, taken):
            index, document = row.pop("index"), row.pop("document")
            category = self._walked[places[document]]
            row |= {"entities": int(entities[index]), "category": category["name"],
                    "root": category["root"], "depth": category["depth"],
                    **{level: bool(flags[index]) for level, flags in levels.items()}}  # fmt: skip
            for level in ("domain", *(level for level in levels if row[level])):
                taken.levels[f"{level} sentences"] += 1
                taken.levels[f"{level} tokens"] += row["tokens"]
            rows.append(row)
            blocks.append(block)
        return pa.RecordBatch.from_pylist(rows, schema=COLUMNS), "".join(blocks)

    def _pages(self, batch: pa.RecordBatch, taken: Taken) -> tuple[pa.RecordBatch, Ints]:
        """The domain's articles, and for each the place of its nearest category."""
        article = pc.and_(pc.equal(batch.column("namespace"), ARTICLE),
                          pc.is_null(batch.column("redirect")))  # fmt: skip
        batch = batch.filter(article)
        column = batch.column("categories")
        lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        found = pc.index_in(column.flatten(), value_set=self._names).fill_null(len(self._names))
        nearest = np.full(len(batch), len(self._names), np.int64)
        np.minimum.at(nearest, np.repeat(np.arange(len(batch)), lengths),
                      found.to_numpy(zero_copy_only=False))  # fmt: skip
        inside = nearest < len(self._names)
        listing = batch.column("is_disambiguation").to_numpy(zero_copy_only=False).astype(bool)
        kept = inside & ~listing
        for name, pages in (("outside", ~inside), ("disambiguation", inside & listing),
                            ("taken", kept)):  # fmt: skip
            taken.pages[name] += int(pages.sum())
        for place in nearest[kept].tolist():
            category = self._walked[place]
            taken.by_depth[f"{category['root']}: {category['depth']}"] += 1
        return batch.filter(pa.array(kept)), nearest[kept]

    def _distinct(self, sentences: Sentences) -> Ints:
        """Distinct entities with a class in each sentence."""
        typed = self._known.typed[sentences.entities]
        size = len(self._known.typed)
        pairs = sentences.anchor_sentences[typed] * size + sentences.entities[typed]
        return np.bincount(np.unique(pairs) // size, minlength=len(sentences))

    def _rows(
        self, batch: pa.RecordBatch, sentences: Sentences, taken: Taken
    ) -> Iterator[tuple[dict[str, Any], str]]:
        """Sentences that stay, each with its CoNLL block: empty where no mention has a class."""
        texts, titles, pages, revisions = (
            batch.column(name).to_pylist() for name in ("text", "title", "page_id", "revision_id")
        )
        bounds = np.searchsorted(sentences.anchor_sentences, np.arange(len(sentences) + 1))
        current, seen = -1, set[str]()
        for index in range(len(sentences)):
            document = int(sentences.documents[index])
            if document != current:
                current, seen = document, set()
            start, end = int(sentences.starts[index]), int(sentences.ends[index])
            text = texts[document][start:end]
            number = int(sentences.numbers[index])
            reason = self._dropped(text, sentences.holes[index], seen)
            if reason is None and (hit := self._contamination.find(text)) is not None:
                reason = "contaminated"
                taken.contamination.append((f"{pages[document]}:{number}", *hit))
            taken.sentences[reason or "taken"] += 1
            if reason is not None:
                continue
            seen.add(text)
            anchors = slice(int(bounds[index]), int(bounds[index + 1]))
            tokens, block = self._annotated(text, start, sentences, anchors, taken)
            yield {
                "text": text, "tokens": tokens, "index": index, "document": document,
                "page_id": pages[document], "title": titles[document],
                "revision_id": revisions[document], "sentence": number, "start": start, "end": end,
            }, block  # fmt: skip

    @staticmethod
    def _dropped(text: str, hole: bool | np.bool_, seen: set[str]) -> str | None:
        """Why a sentence goes."""
        if hole:
            return "hole"
        return "repeated" if text in seen else None

    def _annotated(
        self, text: str, start: int, sentences: Sentences, anchors: slice, taken: Taken
    ) -> tuple[int, str]:
        """Number of tokens, and lines `token TAB tag` where a mention has a class."""
        known, entities = self._known, sentences.entities[anchors]
        starts = sentences.anchor_starts[anchors] - start
        ends = sentences.anchor_ends[anchors] - start
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        tokens = tokenize(text, [edge for span in spans for edge in span])
        tags = ["O"] * len(tokens)
        for (first, last), entity in zip(spans, entities.tolist(), strict=True):
            if known.typed[entity]:
                kind = str(known.kinds[entity])
                taken.types[kind] += 1
                inside = [i for i, (a, b) in enumerate(tokens) if first <= a and b <= last]
                for place, token in enumerate(inside):
                    tags[token] = f"{'I' if place else 'B'}-{kind}"
        if not known.typed[entities].any():
            return len(tokens), ""
        lines = (f"{text[a:b]}\t{tag}\n" for (a, b), tag in zip(tokens, tags, strict=True))
        return len(tokens), "".join(lines) + "\n"


def summed(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Sums of the counts of all parts."""
    total = Taken()
    for report in reports:
        for name in ("pages", "by_depth", "sentences", "levels", "types"):
            getattr(total, name).update(report[name])
        total.contamination.extend(report["contamination"])
    return total.to_json()


def level_sizes(counts: dict[str, int]) -> dict[str, dict[str, float]]:
    """Sentences, tokens and share of the domain's tokens, of each level."""
    sizes: dict[str, dict[str, float]] = {}
    for level, pieces in LEVELS.items():
        sentences, tokens = (sum(counts.get(f"{piece} {what}", 0) for piece in pieces)
                             for what in ("sentences", "tokens"))  # fmt: skip
        share = tokens / counts["domain tokens"] if counts.get("domain tokens") else 0.0
        sizes[level] = {"sentences": sentences, "tokens": tokens, "share": round(share, 4)}
    return sizes
