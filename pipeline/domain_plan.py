"""A domain corpus: its checked inputs, the walk among wiki categories, its report and card."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from importlib.resources import files as resource_files
from string import Template
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ontology.classes import ClassTree
from ontology.conll import read_columns
from pipeline import files, parts
from pipeline.domain_corpus import level_sizes
from pipeline.domains import DomainSettings
from pipeline.errors import UserError
from pipeline.inputs import checked
from pipeline.stable_hash import fingerprint
from pipeline.stages import Folder
from pipeline.wiki_categories import EDGES, WALKED, Graph

VERSION = 1
"""Raised when the code makes other rows."""

PAPER = {"entity": "0.36-0.52", "task": "0.04-0.13", "integrated": "0.44-0.76"}
"""Shares of the domain's tokens, least and most of five. Source: CrossNER, table 3."""

RECORD = "domain.json"
"""File of the settings, which marks a folder as a domain corpus's."""


@dataclass(frozen=True)
class Plan:
    """A checked run: its inputs are there, nothing has been written."""

    settings: DomainSettings
    parts: tuple[str, ...]
    entities: str
    tree: ClassTree
    language: str
    graph: Folder
    sentences: Folder

    @property
    def walked(self) -> str:
        """Where the domain's wiki categories are kept."""
        return files.join(self.settings.output, "wiki_categories.parquet")


def plan(settings: DomainSettings) -> Plan:
    """Checks settings and inputs.

    Raises:
        UserError: something is missing, unreadable, or does not fit; nothing has been changed.
    """
    states = {}
    for name in ("documents", "entities"):
        folder = Folder(files.join(settings.documents, name), {})
        states[name] = folder.found() or {}
        if not states[name].get("complete"):
            raise UserError(
                f"{settings.documents}: has no finished {name}/; make them with run_pipeline.py "
                f"--dump ... --output {settings.documents} --stage resolve"
            )
    tree = ClassTree.shipped()
    settings.domain.check(tree)
    for path in settings.exclude:
        checked("--exclude", path, lambda name: next(read_columns(name)))
    record = files.join(settings.output, RECORD)
    if files.is_used_folder(settings.output) and not files.exists(record):
        raise UserError(f"{settings.output}: not empty, and holds no domain corpus; "
                        "choose another --output, or empty it")  # fmt: skip
    manifest = files.read_json(files.join(settings.documents, "manifest.json"))
    sources = files.find(files.join(settings.documents, "documents", "part-*.parquet"))
    graph = _folder(settings, "categories", {"from": states["documents"]["fingerprint"]})
    decided = asdict(replace(settings, documents="", output="", exclude=()))
    sentences = _folder(settings, "sentences", {
        "from": states["entities"]["fingerprint"], **decided,
        "exclude": [files.identity(path) for path in settings.exclude],
    })  # fmt: skip
    return Plan(settings, tuple(sources), files.join(settings.documents, "entities"), tree,
                manifest["inputs"][0]["language"], graph, sentences)  # fmt: skip


def _folder(settings: DomainSettings, name: str, made_from: dict[str, Any]) -> Folder:
    made_from = {"version": VERSION, **made_from}
    state = {"stage": name, "fingerprint": fingerprint(made_from), "made_from": made_from}
    return Folder(files.join(settings.output, name), state)


def walk(plan: Plan) -> pa.Table:
    """The domain's wiki categories, which are also written."""
    tables = []
    for part in plan.parts:
        with files.open_read(beside(plan.graph, part)) as file:
            tables.append(pq.read_table(file, schema=EDGES))
    domain = plan.settings.domain
    walked = Graph(pa.concat_tables(tables)).walk(domain.roots, domain.depth, domain.skip)
    with parts.writer(plan.walked, WALKED) as writer:
        writer.write_table(walked)
    return walked


def beside(folder: Folder, source: str) -> str:
    """Path in a folder of what is made from a part of documents."""
    return files.join(folder.path, files.name(source))


def present(plan: Plan, counts: dict[str, Any]) -> str:
    """Writes report and card; returns the report for people."""
    settings, domain = plan.settings, plan.settings.domain
    levels = level_sizes(counts["levels"])
    full = {**counts, "domain": asdict(domain), "language": plan.language, "levels": levels,
            "paper": PAPER}  # fmt: skip
    files.write_json(files.join(settings.output, "report.json"), full)
    table = [
        f"| {level} | {size['sentences']:,} | {size['tokens']:,} | {size['share']:.3f} | "
        f"{PAPER.get(level, '1')} |" for level, size in levels.items()
    ]  # fmt: skip
    card = (resource_files("pipeline") / "data" / "domain_card.md").read_text("utf-8")
    text = Template(card).substitute(
        language=plan.language, title=domain.title, roots=", ".join(domain.roots),
        depth=domain.depth, pages=f"{counts['pages']['taken']:,}", levels="\n".join(table),
        entity_mentions=settings.entity_mentions, task_mentions=settings.task_mentions,
        special=", ".join(domain.special) or "none named",
        dropped="".join(f"\n| {reason} | {count:,} |" for reason, count
                        in counts["sentences"].items() if reason != "taken"),
        types="".join(f"\n| {name} | {count:,} |" for name, count in
                      sorted(counts["types"].items(), key=lambda row: (-row[1], row[0]))),
    )  # fmt: skip
    files.write_bytes(files.join(settings.output, "README.md"), text.encode())
    return _summary(plan, counts, levels)


def _summary(plan: Plan, counts: dict[str, Any], levels: dict[str, dict[str, float]]) -> str:
    pages = counts["pages"]
    lines = [
        f"pages      {pages['taken']:,} in the domain, {pages.get('outside', 0):,} outside, "
        f"{pages.get('disambiguation', 0):,} disambiguation pages left out",
        "sentences  " + ", ".join(f"{n:,} {name}" for name, n in counts["sentences"].items()),
    ]  # fmt: skip
    for level, size in levels.items():
        paper = f" (paper {PAPER[level]})" if level in PAPER else ""
        lines.append(f"{level:10} {size['sentences']:,} sentences, {size['tokens']:,} tokens, "
                     f"{size['share']:.3f} of the domain's{paper}")  # fmt: skip
    empty = [level for level, size in levels.items() if not size["sentences"]]
    if empty:
        lines.append(f"           nothing in {', '.join(empty)}: the domain's special types are "
                     f"{', '.join(plan.settings.domain.special) or 'not named (--special)'}; are "
                     "the classes of the entities known (--types)?")  # fmt: skip
    return "\n".join([*lines, f"corpus     {plan.settings.output}"])
