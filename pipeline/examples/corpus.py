"""The corpus stage: makes a labelled, filtered, balanced corpus from documents and entity table.

It has passes over the parts. Each one needs statistics of the pass before it:

    linked    how often each entity is linked            -> categories with enough entities
    frequent  mentions of each category                  -> the most frequent categories
    surfaces  where the links of each text lead          -> dictionary, words around links
    select    examples of both splits, in `examples/`    -> sentences that several pages have
    boilerplate  drops these                             -> weights
    balance   train examples repeated, in `corpus/`      -> labels, report, dataset card
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from nerbert.storage import parts
from nerbert.storage.parts import add
from nerbert.storage.places import Place, local_copies
from nerbert.text.corpus import SPLITS
from nerbert.text.overlap import SentenceIndex
from nerbert.text.tags import LabelSet
from pipeline.documents.extract import words_path
from pipeline.documents.rows import made_in_time, read_documents
from pipeline.entities.resolve import open_table
from pipeline.examples import balance
from pipeline.examples.boilerplate import DropBoilerplate, boilerplate
from pipeline.examples.contexts import CONTEXTS, train_contexts
from pipeline.examples.corpus_files import (
    balancing_weights,
    digests_part,
    example_part,
    write_presentation,
)
from pipeline.examples.count_passes import (
    ANCHORS,
    CorpusPass,
    CountLinked,
    CountMentions,
    LinkedReport,
    MentionsReport,
)
from pipeline.examples.counts import BalanceReport, SelectionReport, Statistics
from pipeline.examples.dictionary import (
    CountSurfaces,
    MergeSurfaces,
    SurfacesReport,
    write_dictionary,
)
from pipeline.examples.mentions import (
    Labelling,
    distinct_entities,
    frequent_categories,
    kept_categories,
)
from pipeline.examples.propagation import Propagation
from pipeline.examples.rows import DIGESTS, digests_of, schema
from pipeline.examples.selector import DOCUMENT_COLUMNS, Selector
from pipeline.execution.part_pass import Gather, Stage
from pipeline.language import CommonWords
from pipeline.plan import Plan


class SelectExamples(CorpusPass):
    """Writes the examples of both splits, before balancing."""

    name, report = "select", SelectionReport

    def open(self) -> None:
        super().open()
        with local_copies(self._plan.settings.exclude) as paths:
            self._excluded = SentenceIndex.of_files(paths, self._plan.settings.columns)

    def make(self, element: Place, part: Place, statistics: Statistics) -> SelectionReport:
        settings = self._plan.settings
        labelling = self._labelling.keep(statistics.categories)
        common = CommonWords.from_json(words_path(self._plan).read_bytes())
        propagation = Propagation.of_run(
            self._table, self._plan.examples.path, settings, common, self._plan.language
        )
        selector = Selector(
            self._table,
            labelling,
            statistics.frequent,
            settings,
            self._excluded,
            propagation,
            self._plan.language,
            common,
        )
        selection = SelectionReport(element.name)
        columns = schema(LabelSet(labelling.names))
        with (
            parts.writer(example_part(self._plan, element, "train"), columns) as train,
            parts.writer(example_part(self._plan, element, "validation"), columns) as validation,
            parts.writer(digests_part(self._plan, element), DIGESTS) as digests,
        ):
            for batch in read_documents(element, DOCUMENT_COLUMNS):
                for documents, result in made_in_time(
                    batch, lambda half: _selected(selector, half)
                ):
                    if result is None:
                        selection.leave_out(documents)
                        continue
                    counts, examples = result
                    add(vars(selection), vars(counts))
                    train.write_batch(examples["train"])
                    validation.write_batch(examples["validation"])
                    for split in SPLITS:
                        digests.write_batch(digests_of(examples[split]))
        return selection


def _selected(
    selector: Selector, batch: pa.RecordBatch
) -> tuple[SelectionReport, dict[str, pa.RecordBatch]]:
    """The examples of a batch by split, and their counts."""
    counts = SelectionReport()
    return counts, selector.select(batch, counts)


class BalanceExamples(CorpusPass):
    """Writes the corpus: repeated train examples, and unchanged validation examples."""

    name, report = "balance", BalanceReport

    def part(self, element: Place) -> Place:
        return self._plan.corpus.path / element.name

    def open(self) -> None:
        """Opens nothing: the examples have their labels, so no entity table is needed."""

    def make(self, element: Place, part: Place, statistics: Statistics) -> BalanceReport:
        train = self._write(element, "train", statistics.weights, statistics)
        # Validation keeps the natural distribution, so that scores do not depend on balancing.
        self._write(element, "validation", balance.Weights("none", ()), statistics)
        return train

    def _write(
        self, source: Place, split: str, weights: balance.Weights, statistics: Statistics
    ) -> BalanceReport:
        """Writes one split of a part, unless it is empty."""
        path = self._plan.corpus.path / split / source.name
        mentions = np.zeros(len(statistics.categories), np.int64)
        rows = lost = largest = tokens = 0
        with parts.writer_if_rows(path, schema(LabelSet(tuple(statistics.categories)))) as write:
            for batch in parts.read_batches(example_part(self._plan, source, split)):
                seed = self._plan.settings.seed
                repeated, category_counts, copies = balance.repeat(
                    batch, weights, len(statistics.categories), seed
                )
                counted = category_counts.mentions * copies[category_counts.rows]
                mentions += np.bincount(category_counts.categories, counted, len(mentions)).astype(
                    np.int64
                )
                rows += len(repeated)
                lost += int((copies == 0).sum())
                largest = max(largest, int(copies.max(initial=0)))
                tokens += len(repeated.column("tokens").flatten())
                write(repeated)
        by_category = dict(zip(statistics.categories, mentions.tolist(), strict=True))
        return BalanceReport(source.name, rows, tokens, lost, largest, by_category)


def corpus_stage(plan: Plan) -> Stage:
    """`documents/` and `entities/` -> `examples/` and `corpus/`."""

    def gather_linked(reports: list[LinkedReport], _: None) -> Statistics:
        return _categories_with_enough_entities(plan, reports)

    def gather_frequent(reports: list[MentionsReport], statistics: Statistics) -> Statistics:
        mentions = dict(sorted(MentionsReport.sum(reports).mentions.items()))
        frequent = frequent_categories(mentions, plan.settings.frequent)
        return replace(statistics, with_category=mentions, frequent=frequent)

    def gather_dictionary(_: list[SurfacesReport], statistics: Statistics) -> Statistics:
        if plan.uses_dictionary:
            write_dictionary(plan)
        if plan.fills:
            counted = CountSurfaces(plan)
            paths = map(counted.contexts, counted.elements())
            sample = parts.read_tables([path for path in paths if path.exists()], CONTEXTS)
            return replace(
                statistics, filling=train_contexts(plan, sample, open_table(plan.entities.path))
            )
        return statistics

    def gather_digests(reports: list[SelectionReport], statistics: Statistics) -> Statistics:
        examples = sum(sum(report.sentences.values()) for report in reports)
        return replace(statistics, boilerplate=boilerplate(plan, examples))

    def gather_selected(reports: list[SelectionReport], statistics: Statistics) -> Statistics:
        ordered = sorted(reports, key=lambda report: report.source)
        selected = SelectionReport.sum(ordered)
        weights = balancing_weights(
            plan, statistics, selected, [Place(report.source) for report in ordered]
        )
        return replace(statistics, selected=selected, weights=weights, boilerplate={})

    def finish(reports: list[BalanceReport], statistics: Statistics) -> None:
        balanced = BalanceReport.sum(sorted(reports, key=lambda report: report.source))
        write_presentation(plan, statistics, balanced)
        plan.examples.finish()
        plan.corpus.finish()

    select = SelectExamples(plan)
    return [
        CountLinked(plan),
        Gather("categories", gather_linked),
        CountMentions(plan),
        Gather("frequent categories", gather_frequent),
        CountSurfaces(plan),
        MergeSurfaces(plan),
        Gather("dictionary, and words around links", gather_dictionary),
        select,
        Gather("repeated sentences", gather_digests),
        DropBoilerplate(select, plan),
        Gather("weights", gather_selected),
        BalanceExamples(plan),
        Gather("report", finish),
    ]


def _categories_with_enough_entities(plan: Plan, reports: Sequence[LinkedReport]) -> Statistics:
    """Counts linked entities, and finds the categories that have enough of them."""
    table = open_table(plan.entities.path)
    labelling = Labelling.of(table, plan.categories, plan.tree)
    linked = np.zeros(len(table.classes), np.int64)
    anchors = np.zeros(len(ANCHORS), np.int64)
    for report in sorted(reports, key=lambda report: report.source):
        anchors += report.anchors
        for batch in parts.read_batches(CountLinked(plan).part(Place(report.source))):
            linked[batch.column("entity").to_numpy()] += batch.column("mentions").to_numpy()
    distinct, mentions = distinct_entities(linked, labelling)
    is_supported = np.asarray(table.voters & (table.voters - 1)) != 0
    _, supported = distinct_entities(linked * is_supported, labelling)
    assert plan.settings.min_entities is not None
    return Statistics(
        categories=kept_categories(distinct, plan.settings.min_entities),
        entities=distinct,
        mentions=mentions,
        supported=supported,
        anchors=dict(zip(ANCHORS, anchors.tolist(), strict=True)),
    )
