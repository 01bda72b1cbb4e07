"""The report of a corpus: funnel, coverage, categories, balancing, contamination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from ontology.categories import ENTITY
from pipeline.examples.counts import Counts


@dataclass(frozen=True)
class Flow:
    """Numbers of items that came in, were dropped (by reason), and came out (by split)."""

    in_: Annotated[int, Field(alias="in")]  # "in" is a keyword of Python
    dropped: Counts
    out: Counts


@dataclass(frozen=True)
class MentionFlow(Flow):
    """The flow of mentions. Anchors outside of sentences are counted apart.

    Attributes:
        sources: number of mentions that came in, by how they were found.
        outside_sentences: number of anchors outside of sentences.
        extended: number of mentions that were extended to whole tokens.
    """

    sources: Counts
    outside_sentences: int
    extended: int = 0


@dataclass(frozen=True)
class Balanced:
    """The train split after balancing."""

    examples: int
    tokens: int
    mentions: int
    examples_left_out: int
    most_copies: int


@dataclass(frozen=True)
class Funnel:
    """Numbers of pages, sentences and mentions after each step."""

    pages: dict[str, Any]
    sentences: Flow
    mentions: MentionFlow
    tokens_before_balancing: Counts
    train_after_balancing: Balanced


@dataclass(frozen=True)
class Coverage:
    """Numbers of anchors by kind of the page that they lead to, and the share with a class.

    Attributes:
        anchors: numbers of anchors.
        typed_share: share of the anchors that are names and lead to a page with a class.
        tables: number of articles, and how many of them have a row in MediaWiki's tables.
        types_files: counts of each file of instance types.
        voters: each source of classes: how many entities it knows, its weight, and how many of its
            statements agree with the other sources.
        phrases: number of entities with a phrase that says what they are, and of phrases.
        support: how the probabilities of the column `support` were calibrated: bins of the votes,
            how many statements of a voter that was left out agree, and what is written.
        page_typer: how the page typer was calibrated; None without one.
        filling: of held-out links whose text is the title of a page with a class: how many, how
            many are borne out by the words around them, and how many of those are right.
        conflicts: pairs of classes that sources state for the same entities, with examples.
    """

    anchors: Counts
    typed_share: float | None
    tables: dict[str, Any]
    types_files: list[dict[str, Any]]
    voters: list[dict[str, Any]]
    phrases: dict[str, int]
    support: list[dict[str, Any]]
    page_typer: dict[str, Any] | None
    filling: Counts
    conflicts: list[dict[str, Any]]


@dataclass(frozen=True)
class CategoryRow:
    """Numbers of entities and mentions of one category after each step."""

    entities: int
    mentions: int
    support: float
    in_sentences_with_category: int
    train: int
    validation: int
    train_balanced: int
    target_share: float


@dataclass(frozen=True)
class Categories:
    """The categories that were kept, and those that had too few entities."""

    kept: int
    given_up: Counts
    frequent: list[str]
    table: dict[str, CategoryRow]


@dataclass(frozen=True)
class Balancing:
    """How the train split was balanced, and the exponent that its mentions follow."""

    mode: str
    alpha: float
    exponent: float | None

    @property
    def advice(self) -> list[str]:
        """How to get nearer to alpha, if the exponent is more than a tenth away."""
        if self.exponent is None or abs(self.exponent - self.alpha) <= 1 / 10:
            return []
        return ["           nearer to alpha: --balance calibrated --no-every-sentence"]


@dataclass(frozen=True)
class CorpusReport:
    """The content of `report.json`; docs/data-format.md describes it."""

    language: str
    dumps: list[str]
    sentence_model: str
    settings: dict[str, Any]
    funnel: Funnel
    coverage: Coverage
    categories: Categories
    balance: Balancing
    contamination: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """JSON-ready values."""
        content: dict[str, Any] = TypeAdapter(CorpusReport).dump_python(self, by_alias=True)
        return content

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CorpusReport:
        """Restores a report from the JSON of `to_json`."""
        return TypeAdapter(CorpusReport).validate_python(value)

    def __str__(self) -> str:
        """The last lines that a run prints: what came in, what was dropped, what came out."""
        pages, sentences = self.funnel.pages, self.funnel.sentences
        aside, train = sum(pages["set_aside"].values()), self.funnel.train_after_balancing
        reached = self.balance.exponent if self.balance.exponent is not None else "n/a"
        lines = [
            f"pages      {pages.get('read', 0):>12,} read: {pages.get('article', 0):,} articles, "
            f"{pages.get('redirect', 0):,} redirects, {pages.get('category', 0):,} categories, "
            f"{pages.get('other-namespace', 0):,} of other namespaces, "
            f"{pages.get('other-content', 0):,} of other content, {aside:,} set aside",
            *_duplicate_lines(pages),
            *_damage_lines(pages),
            *(f"{name:11}{fact}" for name, fact in table_facts(self.coverage.tables).items()),
            f"anchors    {sum(self.coverage.anchors.values()):>12,}, "
            f"{self.coverage.anchors['no-name']:,} of them no names, "
            f"{100 * (self.coverage.typed_share or 0):.1f} % of the others with a class",
            f"sentences  {sentences.in_:>12,}",
            *(f"  dropped  {count:>12,} {reason}" for reason, count in sentences.dropped.items()),
            *_hint(sentences),
            f"train      {sentences.out['train']:>12,} -> {train.examples:,} balanced "
            f"({self.balance.mode}, alpha {self.balance.alpha:g}, achieved exponent {reached})",
            *self.balance.advice,
            f"validation {sentences.out['validation']:>12,}",
            f"categories {self.categories.kept:>12,} and {ENTITY}",
        ]
        return "\n".join(lines)


def _hint(sentences: Flow) -> list[str]:
    """The advice for a run whose sentences mostly link to no page with a category; else nothing."""
    share = sentences.dropped.get("no-category", 0) / max(sentences.in_, 1)
    if share <= 1 / 2:
        return []
    return [
        f"           {100 * share:.0f} % mention nothing with a category; more of them do with "
        "more --types, --page-props, a lower --min-entities or --no-names-only"
    ]


def _duplicate_lines(pages: Mapping[str, Any]) -> list[str]:
    """The line about pages that the dump files have twice; nothing without any."""
    older = pages["duplicate_files"]
    if not older:
        return []
    by_file = ", ".join(f"{count:,} in {name}" for name, count in older.items())
    return [f"  twice    {sum(older.values()):>12,}, of which the newest revision stays: {by_file}"]


_TABLES = {"page_props": "a Wikidata id", "langlinks": "an English title"}


def table_facts(tables: Mapping[str, Any]) -> dict[str, str]:
    """A line for each of MediaWiki's tables: how many articles have a row in it."""
    return {
        name: f"{tables[name]['pages']:,} of {tables['articles']:,} articles have {contents} "
        f"({tables[name].get('rows', 0):,} rows"
        + (", truncated)" if tables[name].get("truncated") else ")")
        for name, contents in _TABLES.items()
        if name in tables
    }


def _damage_lines(pages: Mapping[str, Any]) -> list[str]:
    """The line about damage to the dump's files; nothing without any."""
    corrupt, truncated = (pages["damage"].get(reason, 0) for reason in ("corrupt", "truncated"))
    where = f"where the dump is corrupt ({corrupt:,} times, see documents/quarantine)"
    lines = [(pages["lost"], f"pages lost, by estimate, {where}")] if corrupt else []
    lines += [(truncated, "files of the dump without their end: pages are missing")] * (
        truncated > 0
    )
    return [f"damage     {count:>12,} {text}" for count, text in lines]
