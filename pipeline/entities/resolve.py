"""The resolve stage: makes the entity table from documents and DBpedia's files."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nerbert import seams
from nerbert.storage import parts
from nerbert.storage.parts import Report
from nerbert.storage.places import Place
from ontology.entity_table import ARRAYS, SOURCES, EntityTable
from ontology.sources.nouns import Nouns
from ontology.sources.phrases import NounPhrases
from ontology.sources.types import WIKIDATA
from ontology.titles import converter, title_keys
from ontology.voting.building import Built, Facts, build
from pipeline.dump.site import TEMPLATE
from pipeline.entities.facts import (
    PAGE_COLUMNS,
    PAGE_FACTS,
    page_facts,
    read_facts,
    read_page_facts,
    script_facts,
)
from pipeline.entities.page_ids import PAGE_IDS, Subjects, ids_path, write_page_ids
from pipeline.entities.page_types import (
    TypedReport,
    TypePages,
    linked_features,
    train_typer,
    typed_facts,
    typer_counts,
)
from pipeline.entities.phrases import set_phrases
from pipeline.entities.type_facts import TypesReport, types_path, write_type_facts
from pipeline.execution.part_pass import Gather, PartPass, Stage
from pipeline.plan import Plan, PlanPass

_LOGGER = logging.getLogger("nerbert")
_SUBJECTS = {WIKIDATA: "Wikidata's items", "en": "English pages"}
_TABLE_FILES = (*(f"{name}.npy" for name in ARRAYS), "classes.json")


def save_table(table: EntityTable, folder: Place) -> None:
    """Writes the entity table to a folder, local or remote."""
    if not folder.is_remote:
        table.save(folder)
        return
    with tempfile.TemporaryDirectory() as local:
        table.save(local)
        for name in _TABLE_FILES:
            (folder / name).write_bytes((Path(local) / name).read_bytes())


def open_table(folder: Place) -> EntityTable:
    """Opens the entity table in a folder. A remote one is copied to the local disk first."""
    if not folder.is_remote:
        return EntityTable.open(folder)
    with tempfile.TemporaryDirectory() as local:
        for name in _TABLE_FILES:
            (Path(local) / name).write_bytes((folder / name).read_bytes())
        return EntityTable.open(local)  # memory maps outlive the names of their files


def template_redirects(part: Place) -> Iterator[tuple[str, str]]:
    """Redirects between templates in a part of documents: (old name, new name)."""
    for batch in parts.read_batches(part, ["namespace", "title", "redirect"]):
        for row in batch.to_pylist():
            if row["namespace"] == TEMPLATE and row["redirect"]:
                yield row["title"].partition(":")[2], row["redirect"].partition(":")[2]


class _TemplateRedirects(PlanPass):
    """Collects redirects between templates: a page may use the old name of an infobox."""

    name = "template redirects"

    def run(self, element: Place, gathered: None) -> _Redirects:
        return _Redirects(dict(template_redirects(element)))


@dataclass
class _Redirects(Report):
    redirects: dict[str, str]


@dataclass
class _PartName(Report):
    part: str


_Known = tuple[list[TypesReport], dict[str, Any]]
"""Reports of the files of types, and counts of MediaWiki's tables."""


class _PageFacts(PlanPass, PartPass):
    """Writes the facts of each part of documents about its pages."""

    name = "page facts"
    report = _PartName

    def part(self, element: Place) -> Place:
        return self._plan.entities.path / "pages" / element.name

    def make(self, element: Place, part: Place, redirects: dict[str, str]) -> _PartName:
        reads = self._plan.settings.uses_page_typer
        nouns = Nouns.shipped(self._plan.language) if reads else None
        phrases = NounPhrases.shipped(self._plan.language)
        convert = converter(self._plan.language) if self._plan.converts_titles else None
        with parts.writer(part, PAGE_FACTS) as writer:
            for batch in parts.read_batches(element, PAGE_COLUMNS, rows=1024):
                facts = page_facts(batch, self._plan.mapping, redirects, nouns, phrases)
                writer.write_batch(facts)
                if convert is not None:
                    writer.write_batch(script_facts(batch, convert))
        return _PartName(part.name)


class _TypeFacts(PlanPass, PartPass):
    """Writes the facts of each of DBpedia's files."""

    name = "type facts"
    report = TypesReport

    def elements(self) -> Sequence[int]:
        return range(len(self._plan.settings.types))

    def part(self, element: int) -> Place:
        return types_path(self._plan, element)

    def make(self, element: int, part: Place, gathered: Any) -> TypesReport:
        return write_type_facts(self._plan, element, part, Subjects.of(self._plan))


def resolve_stage(plan: Plan) -> Stage:
    """`documents/` and DBpedia's files -> `entities/`."""

    def merge(reports: list[_Redirects], _: None) -> dict[str, str]:
        return {old: new for report in reports for old, new in report.redirects.items()}

    def join(_: list[_PartName], __: Any) -> dict[str, Any]:
        return write_page_ids(plan)

    def train(types: list[TypesReport], tables: dict[str, Any]) -> _Known:
        ordered = sorted(types, key=lambda report: report.part)
        train_typer(plan, [(report.part, report.file) for report in ordered])
        return ordered, tables

    def finish(_: list[TypedReport], gathered: _Known) -> None:
        ordered, tables = gathered
        for report in ordered:
            _tell_unused(report)
        built = _build(plan, ordered)
        phrases = set_phrases(plan, built.table)
        save_table(built.table, plan.entities.path)
        by_source = np.bincount(built.table.sources, minlength=len(SOURCES)).tolist()
        plan.entities.finish(
            counts={
                "titles": len(built.table),
                "entities_with_qid": int((built.table.qids > 0).sum()),
                "entities": len(built.table.classes),
                "phrases": phrases,
                "entities_by_source": dict(zip(SOURCES, by_source, strict=True)),
                "tables": tables,
                "types_files": [report.to_json() for report in ordered],
                "voters": _voters(built),
                "support": [vars(each) for each in built.support],
                "page_typer": typer_counts(plan),
                "conflicts": _conflicts(plan, built),
            }
        )

    return [
        _TemplateRedirects(plan),
        Gather("all template redirects", merge),
        _PageFacts(plan),
        Gather("ids of pages", join),
        _TypeFacts(plan),
        Gather("page typer", train),
        TypePages(plan),
        Gather("entity table", finish),
    ]


def _tell_unused(report: TypesReport) -> None:
    """Logs how many lines of a file are no triples, or need a table that the user did not give."""
    if report.unreadable_lines:
        _LOGGER.warning(
            "--types %s: %s of %s lines are no triples, and are not used",
            report.file,
            f"{report.unreadable_lines:,}",
            f"{report.lines:,}",
        )
    for source, count in report.without_table.items():
        remedy = {WIKIDATA: "give --page-props", "en": "give --langlinks"}.get(source)
        _LOGGER.warning(
            "--types %s: %s statements about %s are not used; %s",
            report.file,
            f"{count:,}",
            _SUBJECTS.get(source, f"pages in {source}"),
            remedy or "give the types of the dump's language",
        )


def types_files(plan: Plan, types: Sequence[TypesReport]) -> list[Facts]:
    """Statements of the files of `--types`; each file is a voter."""
    folder = plan.entities.path / "types"
    return [read_facts(folder, [report.part], voter=report.file) for report in types]


def pages_themselves(plan: Plan, types: Sequence[TypesReport]) -> list[Facts]:
    """Statements of the first sentences of the pages, and of the page typer."""
    return typed_facts(plan)


Voter = Callable[[Plan, Sequence[TypesReport]], list[Facts]]
"""A voter of the seam `voters`; infoboxes come with the facts of the pages.

It says which classes it states of which pages; `Facts.name` is its name in the report.
"""


def _build(plan: Plan, types: Sequence[TypesReport]) -> Built:
    """Builds the entity table from the facts."""
    pages = sorted(part.name for part in plan.parts)
    folder = plan.entities.path
    facts = read_page_facts(folder / "pages", pages)
    voters: list[Voter] = list(seams.parts("voters").values())
    sources = [statements for voter in voters for statements in voter(plan, types)]
    built = build(
        facts,
        sources,
        plan.tree,
        plan.settings.classes,
        links=linked_features(plan),
        precision=plan.settings.typer_precision,
    )
    ids = parts.read_tables([ids_path(plan)], PAGE_IDS)
    built.table.set_qids(ids.column("key").to_numpy(), ids.column("qid").to_numpy())
    return built


def _voters(built: Built) -> list[dict[str, Any]]:
    """Each voter: its weight, and how many of its statements agree with the other voters."""
    n_entities = [int((built.table.voters >> bit & 1).sum()) for bit in range(len(built.weights))]
    return [
        {
            "name": name,
            "entities": n_entities[number],
            "weight": round(built.weights[number], 4),
            "agreed": int(built.agreed[number].sum()),
            "compared": int(built.compared[number].sum()),
            **({"alone": vars(built.alone[number])} if number in built.alone else {}),
        }
        for number, name in enumerate(built.table.voter_names)
    ]


def _conflicts(plan: Plan, built: Built) -> list[dict[str, Any]]:
    """The most frequent conflicts, with examples of pages of the dump."""
    examples = sorted({entity for conflict in built.conflicts for entity in conflict.examples})
    titles: dict[int, str] = {}
    for part in plan.parts if examples else ():
        for batch in parts.read_batches(part, ["title"], rows=65_536):
            entities = built.table.lookup_keys(title_keys(batch.column("title")))
            for row in np.flatnonzero(np.isin(entities, examples)).tolist():
                titles.setdefault(int(entities[row]), batch.column("title")[row].as_py())
    return [
        {
            "classes": list(conflict.classes),
            "entities": conflict.entities,
            "examples": [titles[entity] for entity in conflict.examples if entity in titles],
        }
        for conflict in built.conflicts
    ]
