"""From documents to a domain corpus: the graph of wiki categories, a walk in it, the sentences.

graph       documents             -> categories/
walk        categories            -> wiki_categories.parquet
sentences   documents, entities   -> sentences/, annotation/, report.json, README.md
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files as resource_files
from string import Template
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.pvalue import AsList, PCollection
from apache_beam.utils.shared import Shared

from ontology.classes import ClassTree
from ontology.conll import read_columns
from ontology.entities import EntityTable
from pipeline import files, parts
from pipeline.domain_corpus import COLUMNS, READ, Picker, Taken, level_sizes, summed
from pipeline.domains import DomainSettings
from pipeline.errors import UserError
from pipeline.filters import Contamination
from pipeline.inputs import checked
from pipeline.resolve import open_table
from pipeline.runner import Runner
from pipeline.stable_hash import fingerprint
from pipeline.stages import Folder
from pipeline.wiki_categories import EDGES, WALKED, Graph, edges

VERSION = 1
"""Raised when the code makes other rows."""

PAPER = {"entity": "0.37-0.52", "task": "0.04-0.13", "integrated": "0.44-0.76"}
"""Shares of the domain's tokens, least and most of five. Source: CrossNER, table 3."""

_LOGGER = logging.getLogger("nerbert")
_RECORD = "domain.json"


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
    record = files.join(settings.output, _RECORD)
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


def run(plan: Plan, runner: Runner) -> str:
    """Makes what is not up to date.

    Returns:
        What was made, in lines for people.

    Raises:
        UserError: a root is unknown, nothing is below it, or no page is in the domain.
    """
    settings = plan.settings
    files.write_json(files.join(settings.output, _RECORD), asdict(settings))
    if not plan.graph.is_complete():
        plan.graph.prepare()
        runner.run(_PerPart(plan, _Edges(plan), plan.graph), len(plan.parts))
    if plan.sentences.is_complete():
        _LOGGER.info("sentences: up to date")
    else:
        plan.sentences.prepare()
        files.remove_tree(files.join(settings.output, "annotation"))
        walked = walk(plan)
        _LOGGER.info("%s", f"walk: {len(walked):,} wiki categories below "
                           f"{', '.join(settings.domain.roots)}")  # fmt: skip
        runner.run(_PerPart(plan, _Sentences(plan), plan.sentences), len(plan.parts))
    counts = summed(
        [
            report
            for part in plan.parts
            if (report := parts.finished(_beside(plan.sentences, part))) is not None
        ]
    )
    if not counts["sentences"].get("taken"):
        raise UserError(
            f"{settings.output}: no page of {settings.documents} is in the domain "
            f"({', '.join(settings.domain.roots)}, depth {settings.domain.depth}); name other "
            "--roots, or a larger --depth"
        )
    return _present(plan, counts)


def walk(plan: Plan) -> pa.Table:
    """The domain's wiki categories, which are also written."""
    tables = []
    for part in plan.parts:
        with files.open_read(_beside(plan.graph, part)) as file:
            tables.append(pq.read_table(file, schema=EDGES))
    domain = plan.settings.domain
    walked = Graph(pa.concat_tables(tables)).walk(domain.roots, domain.depth, domain.skip)
    with parts.writer(plan.walked, WALKED) as writer:
        writer.write_table(walked)
    return walked


def _beside(folder: Folder, source: str) -> str:
    return files.join(folder.path, files.name(source))


class _Edges(beam.DoFn):
    """Writes what a part says of the graph."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def process(self, source: str) -> Iterator[parts.Report]:
        part = _beside(self._plan.graph, source)
        report = parts.finished(part)
        if report is None:
            with parts.writer(part, EDGES) as writer:
                writer.write_batch(edges(source))
            report = parts.finish(part, {"source": files.name(source)})
        yield report


class _Sentences(beam.DoFn):
    """Writes the sentences of a part. Table and graph are opened once per process."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._shared = Shared()

    def setup(self) -> None:
        self._opened = self._shared.acquire(lambda: _Opened(self._plan))

    def process(self, source: str) -> Iterator[parts.Report]:
        part = _beside(self._plan.sentences, source)
        report = parts.finished(part)
        if report is None:
            taken = self._write(source, part)
            report = parts.finish(part, {"source": files.name(source), **taken.to_json()})
        yield report

    def _write(self, source: str, part: str) -> Taken:
        settings, taken = self._plan.settings, Taken()
        picker = Picker(self._opened.table, self._opened.walked, settings, self._plan.tree,
                        self._opened.contamination)  # fmt: skip
        name = files.name(source).replace(".parquet", ".conll")
        annotation = files.join(settings.output, "annotation", name)
        with parts.writer_if_rows(part, COLUMNS) as write, files.atomic_write(annotation) as conll:
            for batch in parts.read_batches(source, READ, rows=1024):
                rows, text = picker.pick(batch, taken)
                write(rows)
                conll.write(text.encode("utf-8", "backslashreplace"))
        return taken


class _Opened:
    """What the workers of a process share."""

    def __init__(self, plan: Plan) -> None:
        self.table: EntityTable = open_table(plan.entities)
        with files.open_read(plan.walked) as file:
            self.walked: pa.Table = pq.read_table(file)
        with files.local_copies(plan.settings.exclude) as paths:
            self.contamination = Contamination(paths)


class _PerPart(beam.PTransform[Any, Any]):
    """Root -> the state of the finished folder; one element a part of documents."""

    def __init__(self, plan: Plan, work: beam.DoFn, folder: Folder) -> None:
        super().__init__()
        self._plan, self._work, self._folder = plan, work, folder

    def expand(self, root: Any) -> PCollection[Any]:
        documents = root | "Documents" >> beam.Create(self._plan.parts) | beam.Reshuffle()
        reports = documents | "Parts" >> beam.ParDo(self._work)
        end = beam.Map(_finished, AsList(reports), self._folder)
        return root | "End" >> beam.Create([None]) | "Finish" >> end


def _finished(_: Any, reports: Sequence[parts.Report], folder: Folder) -> dict[str, Any]:
    """Marks a folder as complete."""
    state = {**folder.state, "complete": True, "parts": len(reports)}
    files.write_json(folder.state_path, state)
    return state


def _present(plan: Plan, counts: dict[str, Any]) -> str:
    """Writes report and card; returns the report for people."""
    settings, domain = plan.settings, plan.settings.domain
    levels = level_sizes(counts["levels"])
    full = {"domain": asdict(domain), "language": plan.language, "levels": levels,
            "paper": PAPER, **counts}  # fmt: skip
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
