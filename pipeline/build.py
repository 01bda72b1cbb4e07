"""The corpus stage: documents and the entity table -> a labelled, filtered, balanced corpus.

Four passes over the parts, each waiting for the statistics of the one before:

    count     how often each entity is linked           -> categories with enough entities
    frequent  mentions of each category                  -> the most frequent categories
    select    examples of both splits, in `examples/`    -> weights
    balance   train examples repeated, in `corpus/`      -> labels, report, dataset card
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import AsList, AsSingleton, PCollection

from ontology.labels import LabelSet
from pipeline import balance, corpus, files, filters, parts, report, stages
from pipeline.counting import (
    CorpusPlan,
    CountLinked,
    CountMentions,
    PartDoFn,
    Scarce,
    Statistics,
    frequent,
)


class _Select(PartDoFn):
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
        with files.local_copies(settings.exclude) as paths:
            contamination = filters.Contamination(paths)
        selector = corpus.Selector(
            self._table, labelling, statistics["frequent"], settings, contamination
        )
        selection = corpus.Selection()
        schema = corpus.schema(LabelSet(labelling.names))
        with (
            parts.writer(self._plan.part(source, "train"), schema) as train,
            parts.writer(self._plan.part(source, "validation"), schema) as validation,
        ):
            for batch in parts.read_batches(source, corpus.DOCUMENT_COLUMNS, rows=1024):
                examples = selector.select(batch, selection)
                train.write_batch(examples["train"])
                validation.write_batch(examples["validation"])
        return {"source": files.name(source),
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
        name = files.name(source)
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
        path = files.join(self._plan.corpus_folder, split, files.name(source))
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
                tokens += len(repeated.column("tokens").flatten())
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
        linked = documents | "Count" >> beam.ParDo(CountLinked(plan))
        scarce = AsSingleton(_once(root, "Scarce", beam.ParDo(Scarce(plan), AsList(linked))))
        mentions = documents | "Mentions" >> beam.ParDo(CountMentions(plan), scarce)
        size = plan.select.frequent
        ranked = beam.Map(frequent, AsList(mentions), scarce, size)
        statistics = AsSingleton(_once(root, "Frequent", ranked))
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
        types=tuple(plan.entities.state["made_from"]["types_files"]),
        types_files=(plan.entities.found() or {}).get("counts", {}).get("types_files", []),
        sentence_model=stages.sentence_model_name(plan),
    )  # fmt: skip
    return CorpusPlan(
        documents=plan.parts, entities=plan.entities.path, tree=plan.tree,
        categories=plan.categories, select=plan.settings.select, balance=plan.settings.balance,
        examples_folder=plan.examples.path, corpus_folder=plan.corpus.path, card=facts,
    )  # fmt: skip
