"""Facts for the entity table: from documents, and from DBpedia's instance types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.storage import parts
from nerbert.storage.places import Place
from ontology.entity_table import FIRST_SENTENCE
from ontology.sources.infobox import InfoboxMapping, resolve_redirect
from ontology.sources.nouns import Nouns
from ontology.sources.phrases import NounPhrases
from ontology.titles import Convert, Keys, title_keys
from ontology.voting.building import Facts
from ontology.voting.page_features import hashed, link_features, page_features, title_features
from ontology.voting.regions import endings
from ontology.voting.statements import among
from pipeline.dump.site import ARTICLE
from pipeline.entities.phrases import phrases_of_pages

Indices = npt.NDArray[np.int32]

FACTS = pa.schema(
    [
        ("key", pa.uint64()),  # of the page's title
        ("target", pa.uint64()),  # key of the title that a redirect leads to; 0 for other pages
        ("class", pa.string()),  # class by the page's infobox; null for none
        ("ending", pa.string()),  # of the title; see `ontology.voting.regions`
    ]
)
"""Columns of the parts in `entities/types/` and `entities/page_types/`."""

PAGE_FACTS = pa.schema(
    [
        *FACTS,
        ("features", pa.list_(pa.int32())),  # see `ontology.voting.page_features`
        ("page_id", pa.int64()),  # 0 for a title in the other script
        ("noun", pa.string()),  # class by the first sentence; see `ontology.sources.nouns`
        ("phrases", pa.list_(pa.string())),  # what the page is; see `ontology.sources.phrases`
    ]
)
"""Columns of the parts in `entities/pages/`: one row per page, and per title in another script."""

LINK_COLUMNS = ("text", "anchors")
"""Columns of a document that its LINK_FACTS are made from."""

LINK_FACTS = pa.schema([("key", pa.uint64()), ("features", pa.list_(pa.int32()))])
"""Columns of the parts in `entities/links/`: one row per title that the part links."""

PAGE_COLUMNS = (
    *("page_id", "namespace", "title", "redirect", "templates", "template_arguments"),
    *("is_disambiguation", "categories", "text", "sentence_starts", "sentence_ends"),
)
"""Columns of a document that its facts are made from."""


_ENOUGH = 30
"""Features of a linked title; further links of a part add none."""

_LONGEST_OPENING = 1000
"""Characters of a text that its first sentence is looked for in."""


def page_facts(
    batch: pa.RecordBatch,
    mapping: InfoboxMapping,
    redirects: Mapping[str, str],
    nouns: Nouns | None,
    noun_phrases: NounPhrases,
) -> pa.RecordBatch:
    """PAGE_FACTS of the articles and redirects of a batch of documents.

    Args:
        batch: documents.
        mapping: classes of infoboxes.
        redirects: old name -> new name of renamed templates.
        nouns: nouns of the language; without, pages have no features and no class by a noun.
        noun_phrases: reads phrases of descriptions and first sentences.
    """
    # Redirects of templates and categories are in the documents too, but are no entities.
    batch = batch.filter(pa.array(batch.column("namespace").to_numpy() == ARTICLE))
    redirect = batch.column("redirect")
    is_redirect = redirect.is_valid().to_numpy(zero_copy_only=False)
    features, classes = pa.nulls(len(batch)), pa.nulls(len(batch))
    openings = _first_sentences(batch)
    if nouns is not None:
        features = _features(batch, openings, mapping, redirects)
        rows = zip(batch.column("title").to_pylist(), openings, strict=True)
        noun_classes = [nouns.class_of(title, first) if first else None for title, first in rows]
        classes = pa.array(noun_classes, pa.string())
    return pa.RecordBatch.from_arrays(
        [
            pa.array(title_keys(batch.column("title"))),
            pa.array(title_keys(redirect) * is_redirect),
            pa.array(_infobox_classes(batch, mapping, redirects), pa.string()),
            endings(batch.column("title")),
            features.cast(PAGE_FACTS.field("features").type),
            batch.column("page_id"),
            classes.cast(pa.string()),
            pa.array(
                phrases_of_pages(batch, openings, noun_phrases), PAGE_FACTS.field("phrases").type
            ),
        ],
        schema=PAGE_FACTS,
    )


def link_facts(batches: Iterable[pa.RecordBatch], stated_keys: Keys) -> pa.RecordBatch:
    """LINK_FACTS of the titles that documents link by a name.

    Args:
        batches: documents, with the columns LINK_COLUMNS.
        stated_keys: sorted keys of the titles that are wanted.
    """
    features: dict[str, set[str]] = {}
    for batch in batches:
        flat = batch.column("anchors").flatten()
        is_wanted = among(title_keys(flat.field("target")), stated_keys)
        is_wanted &= flat.field("name").to_numpy(zero_copy_only=False)
        sizes = pc.list_value_length(batch.column("anchors")).fill_null(0).to_numpy()
        rows = np.repeat(np.arange(len(batch)), sizes)[is_wanted].tolist()
        texts = batch.column("text").to_pylist()
        links_to_stated = flat.filter(pa.array(is_wanted))
        links = (links_to_stated.field(name).to_pylist() for name in ("target", "start", "end"))
        for row, target, start, end in zip(rows, *links, strict=True):
            title_set = features.get(target)
            if title_set is None:
                title_set = features[target] = title_features(target)
            if len(title_set) < _ENOUGH:
                title_set |= link_features(texts[row], start, end)
    numbers, sizes = hashed(list(features.values()))
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
    keys = pa.array(title_keys(pa.array(features, pa.string())))
    columns = [keys, pa.ListArray.from_arrays(offsets, numbers)]
    return pa.RecordBatch.from_arrays(columns, schema=LINK_FACTS)


def script_facts(batch: pa.RecordBatch, convert: Convert) -> pa.RecordBatch:
    """PAGE_FACTS of the titles of articles and redirects in the other script, as redirects."""
    batch = batch.filter(pa.array(batch.column("namespace").to_numpy() == ARTICLE))
    titles = batch.column("title").to_pylist()
    pairs = [(form, title) for title in titles for form in convert(title)]
    rows = len(pairs)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(title_keys([form for form, _ in pairs])),
            pa.array(title_keys([title for _, title in pairs])),
            *(pa.nulls(rows, PAGE_FACTS.field(name).type) for name in ("class", "ending")),
            pa.nulls(rows, PAGE_FACTS.field("features").type),
            pa.array(np.zeros(rows, np.int64)),
            pa.nulls(rows, pa.string()),
            pa.nulls(rows, PAGE_FACTS.field("phrases").type),
        ],
        schema=PAGE_FACTS,
    )


def _first_sentences(batch: pa.RecordBatch) -> list[str | None]:
    """First sentence of each page, "" without text; None for redirects and disambiguation pages."""
    texts = pc.utf8_slice_codeunits(batch.column("text"), 0, _LONGEST_OPENING).to_pylist()
    rows = zip(*(batch.column(name) for name in ("sentence_starts", "sentence_ends")), strict=True)
    first = [(begin[0].as_py(), end[0].as_py()) if len(begin) else (0, 0) for begin, end in rows]
    is_article = pc.and_not(batch.column("redirect").is_null(), batch.column("is_disambiguation"))
    openings = zip(texts, first, is_article.to_pylist(), strict=True)
    return [text[start:end] if has_text else None for text, (start, end), has_text in openings]


def _features(
    batch: pa.RecordBatch,
    openings: Sequence[str | None],
    mapping: InfoboxMapping,
    redirects: Mapping[str, str],
) -> pa.ListArray:
    """Features of each page by its first sentence and more; none for pages without one."""
    columns = ("title", "categories")
    rows = zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    templates, arguments = batch.column("templates"), batch.column("template_arguments")
    pages: list[set[str]] = []
    for number, (title, categories) in enumerate(rows):
        opening = openings[number]
        if opening is None:
            pages.append(set())
            continue
        # An infobox that states the class would be all that the typer learns.
        other_templates = [
            (name, values)
            for name, values in zip(
                templates[number].as_py(), arguments[number].as_py(), strict=True
            )
            if resolve_redirect(name, redirects) not in mapping
        ]
        pages.append(page_features(title, categories, other_templates, opening))
    numbers, sizes = hashed(pages)
    return pa.ListArray.from_arrays(np.append(0, np.cumsum(sizes)).astype(np.int32), numbers)


def _infobox_classes(
    batch: pa.RecordBatch, mapping: InfoboxMapping, redirects: Mapping[str, str]
) -> list[str | None]:
    """Class of each page by its first mapped template; pages without one are not looked at."""
    classes: list[str | None] = [None] * len(batch)
    # Each distinct template is looked up once: a page has dozens, and few are infoboxes.
    column = batch.column("templates")
    names = column.flatten().dictionary_encode()
    mapped = np.array(
        [resolve_redirect(name, redirects) in mapping for name in names.dictionary.to_pylist()]
        or [False],
        bool,
    )
    places = np.flatnonzero(mapped[names.indices.to_numpy(zero_copy_only=False)])
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    pages = np.repeat(np.arange(len(batch)), lengths)
    arguments = batch.column("template_arguments").flatten()
    for place in places.tolist():
        if classes[pages[place]] is None:
            template = (names[place].as_py(), arguments[place].as_py())
            classes[pages[place]] = mapping.class_of([template], redirects)
    return classes


def to_facts(
    keys: Keys, classes: Sequence[str] | pa.Array, title_endings: pa.Array | None = None
) -> pa.RecordBatch:
    """FACTS of statements "the page with this key has this class"."""
    columns = [
        pa.array(keys),
        pa.array(np.zeros(len(keys), np.uint64)),
        pa.array(classes, pa.string()),
        pa.nulls(len(keys), pa.string()) if title_endings is None else title_endings,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=FACTS)


def read_page_facts(folder: Place, names: Sequence[str]) -> Facts:
    """Reads the facts of some parts about pages.

    Titles in the other script come first: of several redirects with a title the last one holds.
    """
    schema = FACTS.append(PAGE_FACTS.field("page_id"))
    table = parts.read_tables([folder / name for name in names], schema)
    is_page = table.column("page_id").to_numpy() != 0
    if not is_page.all():
        table = table.take(pa.array(np.argsort(is_page, kind="stable")))
    return _facts(table)


def read_facts(
    folder: Place,
    names: Sequence[str],
    is_wanted: Callable[[pa.Array], pa.Array] | None = None,
    voter: str = "types",
) -> Facts:
    """Reads the facts of some parts.

    Args:
        folder: folder of the parts.
        names: names of the parts.
        voter: name of the voter that states them.
        is_wanted: says of an array of keys which ones are wanted; None for all.
    """
    tables = [FACTS.empty_table()]
    for name in names:
        for batch in parts.read_batches(folder / name, FACTS.names, rows=65_536):
            rows = batch if is_wanted is None else batch.filter(is_wanted(batch.column("key")))
            tables.append(pa.Table.from_batches([rows], FACTS))
    return _facts(pa.concat_tables(tables), voter)


def read_noun_facts(
    folder: Place, names: Sequence[str], is_wanted: Callable[[pa.Array], pa.Array] | None = None
) -> Facts:
    """Reads what the first sentences of the pages of some parts state; see `read_facts`."""
    tables = [FACTS.empty_table()]
    for name in names:
        for batch in parts.read_batches(folder / name, ["key", "noun"], rows=65_536):
            rows = batch.filter(batch.column("noun").is_valid())
            rows = rows if is_wanted is None else rows.filter(is_wanted(rows.column("key")))
            facts = to_facts(rows.column("key").to_numpy(), rows.column("noun"))
            tables.append(pa.Table.from_batches([facts]))
    return _facts(pa.concat_tables(tables), FIRST_SENTENCE)


def _facts(table: pa.Table, voter: str = "types") -> Facts:
    keys, targets = (table.column(name).to_numpy() for name in ("key", "target"))
    classes, endings = _indexed(table, "class"), _indexed(table, "ending")
    return Facts(keys, *classes, voter, *endings, targets if targets.any() else None)


def _indexed(table: pa.Table, column: str) -> tuple[list[str], Indices]:
    """The distinct texts of a column, and the index of each, -1 for null."""
    encoded = table.column(column).combine_chunks().dictionary_encode()
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    return encoded.dictionary.to_pylist(), indices
