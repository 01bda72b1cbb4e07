"""The typed rows between the transforms, which Beam SQL and dataframes read, too."""

# Beam reads the types of fields, so there are no postponed annotations here.
from collections.abc import Sequence
from typing import NamedTuple


class WikiPage(NamedTuple):
    """A page of a dump; see `pipeline.dump.pages.Page`."""

    page_id: int
    namespace: int
    title: str
    redirect: str | None
    revision_id: int
    timestamp: str
    wikitext: str
    model: str


class Anchor(NamedTuple):
    """A link of a document, in characters of its text."""

    start: int
    end: int
    target: str
    name: bool
    doubt: int


class Document(NamedTuple):
    """An article as text; its fields are columns of `documents/` (docs/data-format.md)."""

    page_id: int
    title: str
    revision_id: int
    templates: Sequence[str]
    categories: Sequence[str]
    names: Sequence[str]
    is_disambiguation: bool
    other_language: bool
    text: str
    sentence_starts: Sequence[int]
    sentence_ends: Sequence[int]
    sentence_holes: Sequence[bool]
    sentence_markup: Sequence[bool]
    anchors: Sequence[Anchor]


class Mention(NamedTuple):
    """A mention in a sentence (by its number) of a document; `entity` is -1 for an unknown page."""

    sentence: int
    start: int
    end: int
    target: str
    entity: int
    category: str
    source: str


class LinkedDocument(NamedTuple):
    """A document and its mentions; of the source `cuts-a-token` are links that are none."""

    document: Document
    mentions: Sequence[Mention]


class Inner(NamedTuple):
    """A mention inside of another one: its tokens, category and title."""

    start: int
    end: int
    label: str
    target: str


class Example(NamedTuple):
    """A tagged sentence; its fields are columns of a corpus, with tags as texts, and its split."""

    split: str
    id: str
    tokens: Sequence[str]
    tags: Sequence[str]
    targets: Sequence[str]
    qids: Sequence[str | None]
    sources: Sequence[str]
    support: Sequence[float | None]
    inner: Sequence[Inner]
    phrases: Sequence[Sequence[str]]
    token_starts: Sequence[int]
    unlinked: Sequence[bool]
    page_id: int
    title: str
    revision_id: int
    sentence: int
    start: int
    end: int
    copy: int
