"""Examples as rows of Arrow columns: tokenised sentences with tags, and digests of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nerbert.digests import digest64
from nerbert.text.tags import LabelSet
from nerbert.text.tokens import Tokens
from ontology.entity_table import EntityTable
from pipeline.examples.mentions import SOURCES, Bools, Ints, Sentences

INNER = pa.struct(
    [
        ("start", pa.int32()),  # first token
        ("end", pa.int32()),  # one after the last token
        ("label", pa.string()),  # its category
        ("target", pa.string()),  # title that it leads to
    ]
)
"""A mention inside of another one, such as "Minnesota" in "University of Minnesota"."""

COLUMNS = pa.schema(
    [
        ("id", pa.string()),  # page_id:sentence:copy
        ("tokens", pa.list_(pa.string())),
        ("ner_tags", pa.list_(pa.int32())),  # label ids of labels.json
        ("targets", pa.list_(pa.string())),  # title that each mention leads to
        ("qids", pa.list_(pa.string())),  # its Wikidata item, such as Q60; null for none
        ("sources", pa.list_(pa.string())),  # how each mention was found
        # Probability that the category of each mention is right; null for ENTITY.
        ("support", pa.list_(pa.float32())),
        ("inner", pa.list_(INNER)),  # mentions inside of mentions
        # What each mention is in Wikipedia's own words, such as "studio album" and "album".
        ("phrases", pa.list_(pa.list_(pa.string()))),
        ("token_starts", pa.list_(pa.int32())),  # first character of a token, from `start` on
        ("unlinked", pa.list_(pa.bool_())),  # tokens that may belong to names that are not marked
        ("page_id", pa.int64()),
        ("title", pa.string()),
        ("revision_id", pa.int64()),
        ("sentence", pa.int32()),  # number of the sentence in its page
        ("start", pa.int32()),  # characters of the document's text
        ("end", pa.int32()),
        ("copy", pa.int32()),  # number of the copy, from 0
    ]
)
"""Columns of an example."""

DIGESTS = pa.schema([("digest", pa.uint64()), ("page_id", pa.int64()), ("sentence", pa.int32())])
"""Columns of `examples/digests/part-*.parquet`: a digest of the tokens of each example."""

_ENTITY_TAGS = 2
"""Label ids up to this one are O, and those of ENTITY."""
_AFTER = np.iinfo(np.int64).max


def schema(labels: LabelSet, columns: pa.Schema = COLUMNS) -> pa.Schema:
    """The columns, with metadata that tells Hugging Face `datasets` the names of the labels."""
    features: dict[str, Any] = {}
    for column in columns:
        is_list = pa.types.is_list(column.type)
        inner = column.type.value_type if is_list else column.type
        if pa.types.is_struct(inner):
            features[column.name] = [{part.name: _value(part.type) for part in inner}]
            continue
        if pa.types.is_list(inner):
            features[column.name] = _sequence(_sequence(_value(inner.value_type)))
            continue
        value = _value(inner)
        if column.name == "ner_tags":
            value = {"names": labels.tags, "_type": "ClassLabel"}
        features[column.name] = _sequence(value) if is_list else value
    metadata = {"huggingface": json.dumps({"info": {"features": features}}, ensure_ascii=False)}
    return columns.with_metadata(metadata)


def _value(kind: pa.DataType) -> dict[str, Any]:
    """A single value, as `datasets` describes it."""
    return {"dtype": {"float": "float32"}.get(str(kind), str(kind)), "_type": "Value"}


def _sequence(value: dict[str, Any]) -> dict[str, Any]:
    """A list of values, as `datasets` describes it."""
    return {"feature": value, "_type": "Sequence"}


@dataclass(frozen=True)
class Tokenised:
    """The sentences of a batch that are tokenised, and the anchors in them.

    Attributes:
        rows: their numbers among all sentences of the batch, shape (chosen,).
        texts: their texts.
        tokens: their tokens.
        words: the tokens themselves.
        anchors: numbers of their anchors among all anchors of the batch, shape (anchors,).
        first: first token of each of these anchors, shape (anchors,).
        after: one after its last token, shape (anchors,).
    """

    rows: Ints
    texts: list[str]
    tokens: Tokens
    words: list[str]
    anchors: Ints
    first: Ints
    after: Ints

    @classmethod
    def of(cls, sentences: Sentences, rows: Ints, texts: list[str], language: str) -> Tokenised:
        """Finds the tokens; the anchors begin and end with one, see `pipeline.examples.borders`."""
        place = np.full(len(sentences), -1)
        place[rows] = np.arange(len(rows))
        owners = place[sentences.anchor_sentences]
        anchors = np.flatnonzero(owners >= 0)
        owners = owners[anchors]
        offsets = sentences.starts[rows[owners]]
        starts = sentences.anchor_starts[anchors] - offsets
        ends = sentences.anchor_ends[anchors] - offsets
        tokens = Tokens.of(texts, language)
        first, after = (
            np.searchsorted(tokens.starts, tokens.bases[owners] + edges) for edges in (starts, ends)
        )
        return cls(rows, texts, tokens, tokens.words(), anchors, first, after)

    def tags(self, begins: Ints) -> Ints:
        """Label ids of the tokens, by the label id that begins a mention of each anchor."""
        tags = np.zeros(len(self.words), np.int64)
        sizes = self.after - self.first
        inside = np.repeat(self.first - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        tags[inside] = np.repeat(begins + 1, sizes)
        tags[self.first[sizes > 0]] = begins[sizes > 0]
        return tags


def example_rows(
    batch: pa.RecordBatch,
    sentences: Sentences,
    tokenised: Tokenised,
    tags: Ints,
    unlinked: Bools,
    entities: EntityTable,
    labels: LabelSet,
    inner: pa.ListArray,
) -> pa.RecordBatch:
    """The rows of all tokenised sentences.

    Args:
        batch: documents.
        sentences: their sentences.
        tokenised: those that become examples.
        tags: label id of each token of these, shape (tokens,).
        unlinked: whether it may belong to a name that is not marked, shape (tokens,).
        entities: the entity table.
        labels: the labels.
        inner: INNER of each of these sentences.
    """
    rows, tokens, anchors = tokenised.rows, tokenised.tokens, tokenised.anchors
    documents, numbers = pa.array(sentences.documents[rows]), sentences.numbers[rows]
    title, page_id, revision_id = (
        batch.column(name).take(documents) for name in ("title", "page_id", "revision_id")
    )
    ids = zip(page_id.to_pylist(), numbers.tolist(), strict=True)
    of_tokens = tokens.bounds
    of_anchors = np.searchsorted(sentences.anchor_sentences[anchors], np.append(rows, _AFTER))
    token_starts = tokens.starts - np.repeat(tokens.bases, np.diff(of_tokens))
    support = _support(sentences.entities[anchors], tokenised, tags, entities)
    columns = [
        pa.array([f"{page}:{number}:0" for page, number in ids], pa.string()),
        _lists("tokens", of_tokens, tokenised.words),
        _lists("ner_tags", of_tokens, tags),
        _lists("targets", of_anchors, sentences.targets.take(pa.array(anchors))),
        _lists("qids", of_anchors, entities.items_of(sentences.entities[anchors])),
        _lists("sources", of_anchors, np.array(SOURCES)[sentences.sources[anchors]]),
        _lists("support", of_anchors, support),
        inner,
        _lists("phrases", of_anchors, entities.phrases_of(sentences.entities[anchors])),
        _lists("token_starts", of_tokens, token_starts),
        _lists("unlinked", of_tokens, unlinked),
        page_id,
        title,
        revision_id,
        *(
            pa.array(column, pa.int32())
            for column in (
                numbers,
                sentences.starts[rows],
                sentences.ends[rows],
                np.zeros(len(rows)),
            )
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema(labels))


def _support(
    anchors: npt.NDArray[np.int32], tokenised: Tokenised, tags: Ints, entities: EntityTable
) -> pa.FloatArray:
    """Probability that the category of each mention is right; null for ENTITY."""
    is_typed = tags[np.minimum(tokenised.first, max(len(tags) - 1, 0))] > _ENTITY_TAGS
    percent = np.append(entities.support, 0)[anchors]
    return pa.array((percent / 100).astype(np.float32), mask=~(is_typed & (anchors >= 0)))


def _lists(name: str, bounds: Ints, values: Any) -> pa.ListArray:
    """A column of lists; `bounds` are the first value of each, and the number of values."""
    kind = COLUMNS.field(name).type.value_type
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), pa.array(values, kind))


def digests_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """DIGESTS of some examples. Sentences with the same tokens have the same digest."""
    texts = pc.binary_join(batch.column("tokens"), "\x1f").to_pylist()
    digests = pa.array([digest64(0, "sentence", text) for text in texts], pa.uint64())
    columns = [digests, batch.column("page_id"), batch.column("sentence")]
    return pa.RecordBatch.from_arrays(columns, schema=DIGESTS)
