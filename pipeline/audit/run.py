"""Runs `nerbert audit`: samples mentions, makes the page, or prints the rates of judgements."""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from nerbert.digests import digest64
from nerbert.errors import UserError
from nerbert.reports import filled
from nerbert.storage import parts
from nerbert.storage.places import Place
from nerbert.text.corpus import SPLITS, Corpus, load_corpus, report_of
from nerbert.text.tags import TypedSpan, tags_to_spans
from nerbert.text.words import text_of
from ontology.categories import ENTITY
from ontology.classes import ClassTree, spaced
from pipeline.audit.judgements import (
    QUESTIONS,
    agreement,
    conflicts,
    read_judgements,
    resolved,
    table,
)
from pipeline.audit.settings import AuditSettings, Which

_MARK = b'<meta name="generator" content="nerbert audit">'
"""A line of the page, by which it is known."""


def audit(settings: AuditSettings) -> str:
    """Makes the page, or the table of rates if there are judgements; returns a text for users.

    Raises:
        UserError: the corpus or the judgements cannot be read, or no mention is of this kind.
    """
    corpus = load_corpus(settings.corpus)
    if settings.judged:
        return _rates(settings, corpus)
    mentions = sample_mentions(corpus, settings.sample, settings.seed, settings.which)
    if not mentions:
        raise UserError(f"{corpus.folder}: it has no mention of the kind --which {settings.which}")
    _write_page(settings, corpus, settings.which, [asdict(mention) for mention in mentions])
    return (
        f"{len(mentions)} mentions: open {settings.output} in a browser, judge them, download the "
        f"judgements, and run nerbert audit {settings.corpus} --judged FILE"
    )


def _rates(settings: AuditSettings, corpus: Corpus) -> str:
    """The rates of one judge; of two, their agreement; of three, with the third where they differ.

    Raises:
        UserError: a file holds no judgements, there are too many, or they have nothing in common.
    """
    judges = [read_judgements(path, corpus.fingerprint) for path in settings.judged]
    if len(judges) == 1:
        return table(judges[0])
    if len(judges) > 3:
        raise UserError("--judged: give the files of at most three judges")
    first, second, *third = judges
    if third:
        return f"{agreement(first, second)}\n\n{table(resolved(first, second, third[0]))}"
    open_ones = conflicts(first, second)
    if not open_ones:
        return f"{agreement(first, second)}\n\n{table(first)}"
    _write_page(settings, corpus, "conflicts", open_ones)
    return (
        f"{agreement(first, second)}\n\n{len(open_ones)} mentions on which they differ: let a "
        f"third one judge {settings.output}, and give that file as the third of --judged"
    )


def _write_page(
    settings: AuditSettings, corpus: Corpus, selection: str, mentions: Sequence[Mapping[str, Any]]
) -> None:
    data = {
        "corpus": Path(settings.corpus).resolve().name,
        "fingerprint": corpus.fingerprint,
        "seed": settings.seed,
        "which": selection,
        "language": report_of(corpus.folder).get("language", "en"),
        "questions": QUESTIONS,
        "classes": _classes({str(mention["category"]) for mention in mentions}),
        "mentions": mentions,
    }
    # "</script>" in a text would end the script.
    script = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    page = filled("pipeline.audit", "page.html", title=escape(str(data["corpus"])), data=script)
    _check_ours(settings.output)
    settings.output.write_bytes(page.encode())


def _classes(names: Collection[str]) -> dict[str, str]:
    """Category -> the classes above it in the ontology, from the nearest on; for a hint."""
    tree = ClassTree.shipped()
    return {
        name: "a kind of " + ", ".join(map(spaced, tree.ancestors(name)))
        for name in sorted(names)
        if name in tree.names and tree.ancestors(name)
    }


def _check_ours(path: Place) -> None:
    """Checks that a file may be replaced.

    Raises:
        UserError: no audit made it.
    """
    is_lost = os.path.islink(path) and not os.path.exists(path)
    if is_lost or (path.exists() and _MARK not in path.read_bytes()[:1024]):
        raise UserError("exists, and nerbert audit did not write it; choose another --output", path)


_COLUMNS = ("id", "tokens", "ner_tags", "targets", "token_starts", "title", "revision_id", "copy")
_Row = Mapping[str, Any]

LINK = "link"
"""Source of the mentions of a corpus without a column of sources."""


@dataclass(frozen=True)
class Mention:
    """A mention in its sentence.

    Attributes:
        id: id of the example.
        number: number of the mention in the example.
        category: category of the mention.
        source: how the mention was found.
        target: title of the page that it leads to.
        page: title of the page with the sentence.
        revision: its revision.
        text: the sentence; white space between tokens is as in the document.
        start: first character of the mention in the sentence.
        end: one after its last character.
        others: characters (start, end) of the other mentions of the sentence.
    """

    id: str
    number: int
    category: str
    source: str
    target: str
    page: str
    revision: int
    text: str
    start: int
    end: int
    others: tuple[tuple[int, int], ...]


def sample_mentions(corpus: Corpus, size: int, seed: int, selection: Which) -> list[Mention]:
    """Draws mentions, each with the same probability; copies of an example count once.

    The mentions with the smallest digests are drawn, so a larger sample with the same seed contains
    the smaller one. They are in the order of their digests.

    Args:
        corpus: the corpus.
        size: number of mentions; all if there are fewer.
        seed: seed of the draw.
        selection: mentions with a category, those of ENTITY, or all.
    """
    # A page that is in two dump files is twice in the corpus, with the same ids.
    smallest = heapq.nsmallest(2 * size, _draws(corpus, seed, selection), key=lambda draw: draw[:2])
    unique = {draw.name: draw for draw in smallest}
    return [_mention(draw.row, draw.spans, draw.number) for draw in unique.values()][:size]


class _Draw(NamedTuple):
    """A mention that may be drawn: by its digest, then its name; its example and its number."""

    digest: int
    name: str
    row: _Row
    spans: list[TypedSpan]
    number: int


def _draws(corpus: Corpus, seed: int, selection: Which) -> Iterator[_Draw]:
    """All mentions of a selection."""
    for row, spans in _examples(corpus):
        for number, (_, _, category) in enumerate(spans):
            if selection == "all" or (category == ENTITY) == (selection == "entity"):
                key = f"{row['id']}:{number}"
                yield _Draw(digest64(seed, "audit", key), key, row, spans, number)


def _examples(corpus: Corpus) -> Iterator[tuple[_Row, list[TypedSpan]]]:
    """Each example once, with the spans of its mentions in tokens."""
    tags = corpus.labels.tags
    for part in (part for split in SPLITS for part in corpus.parts(split)):
        parts.check_columns(part, _COLUMNS)
        names = [*_COLUMNS, *({"sources"} & set(parts.column_names(part)))]
        for batch in parts.read_batches(Place(part), names):
            for row in batch.to_pylist():
                if row["copy"] == 0:
                    yield row, tags_to_spans([tags[label] for label in row["ner_tags"]])


def _mention(row: _Row, spans: Sequence[TypedSpan], number: int) -> Mention:
    text = text_of(row["tokens"], row["token_starts"])

    def characters(span: TypedSpan) -> tuple[int, int]:
        first, last = span[0], span[1] - 1
        return row["token_starts"][first], row["token_starts"][last] + len(row["tokens"][last])

    start, end = characters(spans[number])
    return Mention(
        id=row["id"],
        number=number,
        category=spans[number][2],
        source=row["sources"][number] if "sources" in row else LINK,
        target=row["targets"][number],
        page=row["title"],
        revision=row["revision_id"],
        text=text,
        start=start,
        end=end,
        others=tuple(characters(span) for n, span in enumerate(spans) if n != number),
    )
