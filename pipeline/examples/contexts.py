"""Whether a name that is the title of a page means this page: by the words around it.

Editors link few countries and cities, and of other names the first occurrence. What they leave is
often the title of a page, but "Paris" may be a hero, and "Apple" a company. A model learns from the
links of the dump which kinds of entities (person, place, organisation, ...) stand between which
words, and each page is judged by a model that has not seen it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.storage.places import Place
from ontology.categories import ENTITY
from ontology.entity_table import NO_CLASS, EntityTable
from ontology.titles import title_keys
from ontology.voting.lone import kind_typer
from ontology.voting.page_features import Pages, hashed, link_features, title_features
from ontology.voting.page_typer import MOST_PAGES, PageTyper
from ontology.voting.statements import Bools, Ints
from pipeline.examples.counts import Statistics
from pipeline.plan import Plan

CONTEXTS = pa.schema(
    [
        ("page", pa.uint64()),  # key of the title of the page with the link
        ("entity", pa.int32()),  # that the link leads to
        ("titled", pa.int32()),  # entity that has the text of the link as a title, -1 for none
        ("features", pa.list_(pa.int32())),  # of the text and the words around it
    ]
)
"""Columns of `examples/contexts/part-*.parquet`: a sample of the links to pages with a class."""

_LEAST = 0.5
"""Least probability that a name is of the kind of the page: as likely as not."""
_WHOLE = 1 << 64
_MODEL = "contexts.npz"


def features_of(text: str, start: int, end: int) -> set[str]:
    """Features of a name in a text: its words, and those around it."""
    return title_features(text[start:end]) | link_features(text, start, end)


def sample_bound(statistics: Statistics) -> np.uint64:
    """Links to pages with a class are drawn to learn from if their digest is not above this one."""
    typed = sum(count for name, count in statistics.mentions.items() if name != ENTITY)
    return np.uint64(min(_WHOLE - 1, _WHOLE * MOST_PAGES // max(1, typed)))


def contexts(
    texts: Sequence[str],
    titles: pa.Array,
    spans: tuple[Ints, Ints, Ints],
    surfaces: Sequence[str],
    entities: npt.NDArray[np.int32],
    table: EntityTable,
    bound: np.uint64,
) -> pa.RecordBatch:
    """CONTEXTS of some links; a text counts once on a page.

    Args:
        texts: texts of the documents.
        titles: their titles.
        spans: document, start and end of each link.
        surfaces: text of each link.
        entities: entity that each link leads to, -1 for none.
        table: the entity table.
        bound: largest digest of the links that are drawn.
    """
    keys, pages = title_keys(surfaces), title_keys(titles)[spans[0]]
    digests, first = np.unique(keys ^ pages, return_index=True)
    is_typed = np.append(table.classes != NO_CLASS, False)[entities[first]]
    rows = np.sort(first[is_typed & (digests <= bound)])
    places = zip(*(column[rows].tolist() for column in spans), strict=True)
    features, sizes = hashed([features_of(texts[row], start, end) for row, start, end in places])
    offsets = pa.array(np.append(0, np.cumsum(sizes)), pa.int32())
    columns = [
        pa.array(pages[rows]),
        pa.array(entities[rows]),
        pa.array(table.lookup_keys(keys[rows])),
        pa.ListArray.from_arrays(offsets, pa.array(features)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CONTEXTS)


class Contexts:
    """Judges whether names mean the pages that have them as titles."""

    def __init__(self, typer: PageTyper | None) -> None:
        """Takes the model; without one no name is borne out."""
        self._typer = typer

    def bear_out(
        self, kinds: Sequence[str], features: Sequence[set[str]], pages: Sequence[str]
    ) -> Bools:
        """Whether each name is probably of the kind of the page with this title, shape (names,).

        Args:
            kinds: kind of each page with the title.
            features: features of each name.
            pages: title of the page in which each name stands.
        """
        return self._bear_out(kinds, Pages(title_keys(pages), *hashed(features)))

    def _bear_out(self, kinds: Sequence[str], pages: Pages) -> Bools:
        if self._typer is None or not kinds:
            return np.zeros(len(kinds), bool)
        place = {name: number for number, name in enumerate(self._typer.names)}
        columns = np.array([place.get(kind, -1) for kind in kinds])
        # Sums depend on the order of their terms, which differs between processors.
        chances = self._typer.chances(pages).round(6)[np.arange(len(kinds)), columns]
        likely: Bools = (chances >= _LEAST) & (columns >= 0)
        return likely

    @classmethod
    def open(cls, examples: Place) -> Contexts:
        """Opens the model in a folder of examples."""
        path = examples / _MODEL
        content = path.read_bytes() if path.exists() else b""
        return cls(PageTyper.from_bytes(content) if content else None)


def train_contexts(plan: Plan, sample: pa.Table, table: EntityTable) -> dict[str, int]:
    """Trains the model.

    Args:
        plan: the plan.
        sample: CONTEXTS of all parts.
        table: the entity table.

    Returns:
        Of the sampled links whose text is the title of a page with a class: how many, how many are
        borne out by models that have not seen their pages, and how many of those lead to a page of
        the same kind as that with the title.
    """
    features = sample.column("features").combine_chunks()
    sizes = pc.list_value_length(features).to_numpy().astype(np.int64)
    pages = Pages(sample.column("page").to_numpy(), features.flatten().to_numpy(), sizes)
    kinds = np.array([*table.class_kinds, ""], dtype=object)
    classes = np.append(table.classes, NO_CLASS)  # the last one is for index -1
    linked = kinds[classes[sample.column("entity").to_numpy()]]
    typer = kind_typer(pages, linked.tolist(), plan.tree, _LEAST)
    (plan.examples.path / _MODEL).write_bytes(typer.to_bytes() if typer is not None else b"")
    titled = kinds[classes[sample.column("titled").to_numpy()]]
    has_title = titled != ""
    is_judged = Contexts(typer)._bear_out(titled[has_title].tolist(), pages.where(has_title))
    right = is_judged & (titled == linked)[has_title]
    return {"links": int(has_title.sum()), "kept": int(is_judged.sum()), "right": int(right.sum())}
