"""The corpus stage: documents and the entity table -> a labelled, filtered, balanced corpus.

Four passes over the parts, each waiting for the statistics of the one before:

    count     how often each entity is linked           -> categories with enough entities
    frequent  mentions of each category                  -> the most frequent categories
    select    examples of both splits, in `examples/`    -> weights
    balance   train examples repeated, in `corpus/`      -> labels, report, dataset card
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.pvalue import AsList, AsSingleton, PCollection
from apache_beam.utils.shared import Shared

from ontology.categories import CategorySet
from ontology.classes import ClassTree
from ontology.entities import SOURCES, EntityTable
from ontology.labels import LabelSet
from pipeline import balance, corpus, files, filters, parts, report, stages
from pipeline.config import BalanceSettings, SelectSettings
from pipeline.labelling import (
    COLUMNS,
    Labelling,
    distinct_entities,
    frequent_categories,
    kept_categories,
    sentences_of,
)
from pipeline.resolve import open_table

LINKED = pa.schema([("entity", pa.int32()), ("mentions", pa.int64())])
"""Columns of `examples/linked/part-*.parquet`: how often each entity is linked."""

Statistics = dict[str, Any]


@dataclass(frozen=True)
class CorpusPlan:
    """What the stage reads, decides by, and where it writes."""

    documents: tuple[str, ...]
    entities: str
    tree: ClassTree
    categories: CategorySet
    select: SelectSettings
    balance: BalanceSettings
    examples_folder: str
    corpus_folder: str
    card: report.CardFacts

    def part(self, source: str, *folder: str) -> str:
        """Path under `examples/` for what is made from a part of documents."""
        name = source.replace("\\", "/").rpartition("/")[2]
        return files.join(self.examples_folder, *folder, name)


class _PartDoFn(beam.DoFn):
    """A pass over parts of documents. The entity table is opened once per process."""

    def __init__(self, plan: CorpusPlan) -> None:
        self._plan = plan
        self._shared = Shared()

    def setup(self) -> None:
        plan = self._plan
        self._table, self._labelling = self._shared.acquire(lambda: _Opened(plan)).pair


class _Opened:
    """What workers share: Shared needs an object it can refer to weakly."""

    def __init__(self, plan: CorpusPlan) -> None:
        table = open_table(plan.entities)
        self.pair: tuple[EntityTable, Labelling]
        self.pair = table, Labelling.of(table, plan.categories, plan.tree)


class _CountLinked(_PartDoFn):
    """Writes how often each entity is linked in a part; yields where, and the anchors' types."""

    def process(self, source: str) -> Iterator[parts.Report]:
        part = self._plan.part(source, "linked")
        found = parts.finished(part)
        if found is None:
            linked = np.zeros(len(self._table.classes), np.int64)
            anchors = np.zeros(len(SOURCES) + 1, np.int64)
            for batch in parts.read_batches(source, COLUMNS):
                entities = sentences_of(batch, self._table).entities
                known = entities[entities >= 0]
                linked += np.bincount(known, minlength=len(linked))
                anchors[0] += len(entities) - len(known)
                anchors[1:] += np.bincount(self._table.sources[known], minlength=len(SOURCES))
            once = np.flatnonzero(linked)
            columns = [pa.array(once, pa.int32()), pa.array(linked[once])]
            with parts.writer(part, LINKED) as writer:
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=LINKED))
            found = parts.finish(part, {"source": source.replace("\\", "/").rpartition("/")[2],
                                        "anchors": anchors.tolist()})  # fmt: skip
        yield found


class _Scarce(_PartDoFn):
    """Decides which categories have enough entities."""

    def process(self, _: Any, reports: list[parts.Report]) -> Iterator[Statistics]:
        linked = np.zeros(len(self._table.classes), np.int64)
        anchors = np.zeros(len(SOURCES) + 1, np.int64)
        for found in sorted(reports, key=lambda item: item["source"]):
            anchors += found["anchors"]
            for batch in parts.read_batches(self._plan.part(found["source"], "linked")):
                linked[batch.column("entity").to_numpy()] += batch.column("mentions").to_numpy()
        distinct, mentions = distinct_entities(linked, self._labelling)
        yield {
            "kept": kept_categories(distinct, self._plan.select.min_entities),
            "entities": distinct, "mentions": mentions,
            "anchors": dict(zip(("unknown-page", "no-class", "dbpedia", "infobox"),
                                anchors.tolist(), strict=True)),
        }  # fmt: skip


class _CountMentions(_PartDoFn):
    """Counts the mentions of each category in sentences with a category."""

    def process(self, source: str, scarce: Statistics) -> Iterator[parts.Report]:
        part = self._plan.part(source, "frequent")
        found = parts.finished(part)
        if found is None:
            labelling = self._labelling.keep(scarce["kept"])
            counts = np.zeros(len(labelling.names), np.int64)
            for batch in parts.read_batches(source, COLUMNS):
                sentences = sentences_of(batch, self._table)
                labels = labelling.label(sentences.entities)
                kept = filters.with_category(sentences, labels)
                counts += filters.mention_counts(sentences, labels, kept, len(counts))
            mentions = dict(zip(labelling.names, counts.tolist(), strict=True))
            found = parts.finish(part, {"mentions": mentions})
        yield found


def _frequent(_: Any, reports: list[parts.Report], scarce: Statistics, size: int) -> Statistics:
    """The most frequent categories, and what is known so far."""
    mentions: dict[str, int] = {}
    for found in reports:
        parts.add_counts(mentions, found["mentions"])
    mentions = dict(sorted(mentions.items()))
    return {**scarce, "with_category": mentions, "frequent": frequent_categories(mentions, size)}


class _Select(_PartDoFn):
    """Writes the examples of a part of documents, not yet balanced; yields their counts."""

    def process(self, source: str, statistics: Statistics) -> Iterator[parts.Report]:
        part = self._plan.part(source)
        found = parts.finished(part)
        if found is None:
            found = parts.finish(part, self._write(source, statistics))
        yield found

    def _write(self, source: str, statistics: Statistics) -> parts.Report:
        settings = self._plan.select
        labelling = self._labelling.keep(statistics["kept"])
        contamination = filters.Contamination(settings.exclude)
        selector = corpus.Selector(
            self._table, labelling, statistics["frequent"], settings, contamination
        )
        selection = corpus.Selection()
        schema = corpus.schema(LabelSet(labelling.names))
        with (
            parts.writer(self._plan.part(source, "train"), schema) as train,
            parts.writer(self._plan.part(source, "validation"), schema) as validation,
        ):
            for batch in parts.read_batches(source, COLUMNS, rows=1024):
                examples = selector.select(batch, selection)
                train.write_batch(examples["train"])
                validation.write_batch(examples["validation"])
        return {"source": source.replace("\\", "/").rpartition("/")[2],
                **report.selection_counts(selection)}  # fmt: skip


class _Weigh(beam.DoFn):
    """Decides how often examples are repeated."""

    def __init__(self, plan: CorpusPlan) -> None:
        self._plan = plan

    def process(
        self, _: Any, reports: list[parts.Report], statistics: Statistics
    ) -> Iterator[Statistics]:
        ordered = sorted(reports, key=lambda item: item["source"])
        selected = report.sum_selections(ordered)
        names = LabelSet(tuple(statistics["kept"])).categories
        weights = self._weights(names, selected, [item["source"] for item in ordered])
        yield {**statistics, "selected": selected, "weights": weights.to_json()}

    def _weights(
        self, names: Sequence[str], selected: Statistics, sources: Sequence[str]
    ) -> balance.Weights:
        settings = self._plan.balance
        mentions = selected["by_category"]["train"]
        if settings.balance == "none" or not any(mentions.values()):
            return balance.Weights("none", ())
        if settings.balance == "category-first":
            copies = balance.category_first(
                names, mentions, selected["with_category"]["train"],
                selected["sentences"]["train"], settings.alpha,
            )  # fmt: skip
            return balance.Weights("category-first", tuple(copies.tolist()))
        train = (self._plan.part(source, "train") for source in sources)
        bags, times = balance.signatures(
            (batch.column("ner_tags") for path in train
             for batch in parts.read_batches(path, ["ner_tags"])), len(names),
        )  # fmt: skip
        logs, scale, _ = balance.calibrate(bags, times, len(names), settings.alpha)
        return balance.Weights("calibrated", tuple(logs.tolist()), scale)


class _Balance(beam.DoFn):
    """Writes a part of the corpus: train examples repeated, validation examples as they are."""

    def __init__(self, plan: CorpusPlan) -> None:
        self._plan = plan

    def process(self, source: str, statistics: Statistics) -> Iterator[parts.Report]:
        plan = self._plan
        name = source.replace("\\", "/").rpartition("/")[2]
        part = files.join(plan.corpus_folder, name)
        found = parts.finished(part)
        if found is None:
            weights = balance.Weights.from_json(statistics["weights"])
            train = self._write(plan.part(source, "train"), "train", weights, statistics)
            same = balance.Weights("none", ())
            self._write(plan.part(source, "validation"), "validation", same, statistics)
            found = parts.finish(part, {"source": name, **train})
        yield found

    def _write(
        self, source: str, split: str, weights: balance.Weights, statistics: Statistics
    ) -> Statistics:
        """Writes one split of a part, unless it is empty; counts what was written."""
        names = statistics["kept"]
        schema = corpus.schema(LabelSet(tuple(names)))
        path = files.join(
            self._plan.corpus_folder, split, source.replace("\\", "/").rpartition("/")[2]
        )
        counts = np.zeros(len(names), np.int64)
        rows = lost = largest = tokens = 0
        with parts.writer_if_rows(path, schema) as write:
            for batch in parts.read_batches(source):
                seed = self._plan.balance.seed
                repeated, bags, copies = corpus.repeat(batch, weights, len(names), seed)
                counts += np.bincount(
                    bags.categories, bags.mentions * copies[bags.rows], len(names)
                ).astype(np.int64)
                rows += len(repeated)
                lost += int((copies == 0).sum())
                largest = max(largest, int(copies.max(initial=0)))
                tokens += repeated.column("tokens").flatten().__len__()
                write(repeated)
        return {
            "examples": rows, "tokens": tokens, "left_out": lost, "most_copies": largest,
            "mentions": dict(zip(names, counts.tolist(), strict=True)),
        }  # fmt: skip


class _Finish(beam.DoFn):
    """Writes labels, report, plots and dataset card, and yields the state of the finished stage."""

    def __init__(self, plan: CorpusPlan, state: dict[str, Any]) -> None:
        self._plan = plan
        self._state = state

    def process(
        self, _: Any, reports: list[parts.Report], statistics: Statistics
    ) -> Iterator[dict[str, Any]]:
        plan = self._plan
        balanced = report.sum_balanced(sorted(reports, key=lambda item: item["source"]))
        labels = LabelSet(tuple(statistics["kept"]))
        full = report.full_report(statistics, balanced, plan.select, plan.balance, plan.card)
        files.write_json(files.join(plan.corpus_folder, "labels.json"), labels.to_json())
        files.write_json(files.join(plan.corpus_folder, "report.json"), full)
        report.write_presentation(plan.corpus_folder, full, labels, plan.card)
        state = {**self._state, "complete": True}
        files.write_json(files.join(plan.corpus_folder, "stage.json"), state)
        yield state


class BuildCorpus(beam.PTransform[Any, Any]):
    """Root -> the state of the finished stage; writes `examples/` and `corpus/`."""

    def __init__(self, plan: CorpusPlan, state: dict[str, Any]) -> None:
        super().__init__()
        self._plan = plan
        self._state = state

    def expand(self, root: Any) -> PCollection[Any]:
        plan = self._plan
        documents = root | "Documents" >> beam.Create(plan.documents) | beam.Reshuffle()
        linked = documents | "Count" >> beam.ParDo(_CountLinked(plan))
        scarce = AsSingleton(_once(root, "Scarce", beam.ParDo(_Scarce(plan), AsList(linked))))
        mentions = documents | "Mentions" >> beam.ParDo(_CountMentions(plan), scarce)
        size = plan.select.frequent
        frequent = beam.Map(_frequent, AsList(mentions), scarce, size)
        statistics = AsSingleton(_once(root, "Frequent", frequent))
        selected = documents | "Select" >> beam.ParDo(_Select(plan), statistics)
        weigh = beam.ParDo(_Weigh(plan), AsList(selected), statistics)
        weighed = AsSingleton(_once(root, "Weigh", weigh))
        balanced = documents | "Balance" >> beam.ParDo(_Balance(plan), weighed)
        finish = beam.ParDo(_Finish(plan, self._state), AsList(balanced), weighed)
        return _once(root, "End", finish)


def _once(root: Any, label: str, transform: beam.PTransform[Any, Any]) -> PCollection[Any]:
    """Applies `transform` to a single element."""
    return root | f"{label} start" >> beam.Create([None]) | label >> transform


def corpus_plan(plan: stages.Plan) -> CorpusPlan:
    """What the stage needs of a checked run; the documents must be there."""
    counts = (plan.documents.found() or {}).get("counts", {})
    facts = report.CardFacts(
        language=plan.inputs[0].site.language,
        dumps=tuple(plan.documents.state["made_from"]["dump_files"]),
        pages=counts.get("pages", {}), set_aside=counts.get("set_aside", {}),
        content=counts.get("content", {}),
        types=tuple(plan.entities.state["made_from"]["types_files"]),
        types_files=(plan.entities.found() or {}).get("counts", {}).get("types_files", []),
        sentence_model=stages.sentence_model_name(plan),
    )  # fmt: skip
    return CorpusPlan(
        documents=plan.parts, entities=plan.entities.path, tree=plan.tree,
        categories=plan.categories, select=plan.settings.select, balance=plan.settings.balance,
        examples_folder=plan.examples.path, corpus_folder=plan.corpus.path, card=facts,
    )  # fmt: skip
