"""The phrases that say what pages are, in the entity table: what several pages have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.arrays import unique
from nerbert.storage import parts
from nerbert.storage.places import Place
from ontology.entity_table import EntityTable
from ontology.sources.phrases import NounPhrases, Vocabulary
from ontology.titles import Keys
from pipeline.entities.page_ids import ids_path
from pipeline.plan import Plan
from pipeline.wikitext.template_arguments import DESCRIPTION

_COLUMNS = ["key", "phrases"]
_SAMPLE = 1_000_000
"""Pages whose phrases are counted; of more, those whose keys are the smallest share."""
_WHOLE = 1 << 64


def phrases_of_pages(
    batch: pa.RecordBatch, openings: Sequence[str | None], noun_phrases: NounPhrases
) -> list[list[str] | None]:
    """Reads the phrases of pages, by their short descriptions, first sentences and titles.

    Args:
        batch: documents.
        openings: first sentence of each, "" without text; None for what is no article.
        noun_phrases: rules of the language.
    """
    titles, templates = batch.column("title").to_pylist(), batch.column("templates").to_pylist()
    arguments = batch.column("template_arguments")
    phrases: list[list[str] | None] = []
    for number, (title, opening) in enumerate(zip(titles, openings, strict=True)):
        if opening is None:
            phrases.append(None)
            continue
        page_phrases = noun_phrases.of_sentence(title, opening) or noun_phrases.of_title(title)
        for place, template in enumerate(templates[number]):
            if template.lower() == DESCRIPTION:
                values = arguments[number][place].as_py()[:1]
                page_phrases += [
                    phrase
                    for value in values
                    for phrase in noun_phrases.of_description(value.partition("=")[2])
                ]
        phrases.append(list(dict.fromkeys(page_phrases)))
    return phrases


def set_phrases(plan: Plan, table: EntityTable) -> dict[str, int]:
    """Sets the phrases of the entities of a table.

    Returns:
        Number of entities with a phrase, and of phrases.
    """
    rules = NounPhrases.shipped(plan.language)
    vocabulary = Vocabulary(rules)
    folder = plan.entities.path / "pages"
    documents = [folder / part.name for part in sorted(plan.parts)]
    for paths in ([ids_path(plan)], documents):  # both may have the same pages
        vocabulary |= _counted(paths, rules)
    numbers: dict[str, int] = {}
    pairs = [np.zeros(0, np.int64)]
    for keys, phrases in _read([ids_path(plan), *documents]):
        entities = table.lookup_keys(keys)
        lists = [
            [numbers.setdefault(name, len(numbers)) for name in vocabulary.select(page_phrases)]
            for page_phrases in phrases.to_pylist()
        ]
        owners = np.repeat(entities.astype(np.int64), [len(ids) for ids in lists])
        ids = np.array([number for ids in lists for number in ids], np.int64)
        pairs.append((owners << 32 | ids)[owners >= 0])
    owners, ids = np.divmod(unique(np.concatenate(pairs)), 1 << 32)
    table.set_phrases(list(numbers), owners, ids)
    return {"entities": int((np.diff(table.phrase_bounds) > 0).sum()), "phrases": len(numbers)}


def _counted(paths: Sequence[Place], rules: NounPhrases) -> Vocabulary:
    """The phrases of a sample of the pages of some parts."""
    vocabulary = Vocabulary(rules)
    total = sum(len(keys) for keys, _ in _read(paths))
    bound = np.uint64(min(_WHOLE - 1, _WHOLE * _SAMPLE // max(total, 1)))
    for keys, phrases in _read(paths):
        for page_phrases in phrases.filter(pa.array(keys <= bound)).to_pylist():
            vocabulary.count(page_phrases)
    return vocabulary


def _read(paths: Sequence[Place]) -> Iterator[tuple[Keys, pa.ListArray]]:
    """Keys and phrases of the pages of some parts that have phrases."""
    for path in paths:
        for batch in parts.read_batches(path, _COLUMNS, rows=65_536):
            rows = batch.filter(pc.fill_null(pc.greater(pc.list_value_length(batch[1]), 0), False))
            yield rows.column("key").to_numpy(), rows.column("phrases")
