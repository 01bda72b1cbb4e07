"""What the corpus stage makes of all parts together: weights, labels, report, plots, card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nerbert.storage import files, parts
from nerbert.text.corpus import SENTENCES
from nerbert.text.tags import LabelSet
from pipeline.documents.extract import model_path
from pipeline.examples import balance
from pipeline.examples.card import dataset_card
from pipeline.examples.counts import BalanceReport, SelectionReport, Statistics
from pipeline.examples.report import corpus_report
from pipeline.plan import Plan


def example_part(plan: Plan, source: str, split: str) -> str:
    """Path of the examples of a part of documents, before balancing."""
    return files.join(plan.examples.path, split, files.name(source))


def digests_part(plan: Plan, source: str) -> str:
    """Path of the digests of the examples of a part of documents."""
    return files.join(plan.examples.path, "digests", files.name(source))


def balancing_weights(
    plan: Plan, kept: Sequence[str], selected: SelectionReport, sources: Sequence[str]
) -> balance.Weights:
    """Decides how often train examples are repeated."""
    settings = plan.settings
    mentions = selected.by_category["train"]
    if settings.balance == "none" or not any(mentions.values()):
        return balance.Weights("none", ())
    if settings.balance == "category-first":
        copies = balance.category_first(
            kept,
            mentions,
            selected.with_category["train"],
            selected.sentences["train"],
            settings.alpha,
        )
        return balance.Weights("category-first", tuple(copies.tolist()))
    tags = (
        batch.column("ner_tags")
        for source in sources
        for batch in parts.read_batches(example_part(plan, source, "train"), ["ner_tags"])
    )
    held, times = balance.signatures(tags, len(kept))
    logs, scale, _ = balance.calibrate(held, times, len(kept), settings.alpha)
    return balance.Weights("calibrated", tuple(logs.tolist()), scale)


def write_presentation(plan: Plan, known: Statistics, balanced: BalanceReport) -> None:
    """Writes labels, report, plots and dataset card."""
    from pipeline.examples import card  # loads matplotlib, which only this step needs

    def write(name: str, content: bytes) -> None:
        files.write_bytes(files.join(plan.corpus.path, name), content)

    labels = LabelSet(tuple(known.kept))
    write(SENTENCES, files.read_bytes(model_path(plan)))
    report = corpus_report(plan, known, balanced)
    files.write_json(files.join(plan.corpus.path, "labels.json"), labels.to_json())
    files.write_json(files.join(plan.corpus.path, "report.json"), report.to_json())
    rows = report.categories.table
    before: dict[str, Any] = {name: row.train for name, row in rows.items()}
    after: dict[str, Any] = {name: row.train_balanced for name, row in rows.items()}
    write("categories.png", card.categories(before, after))
    write("funnel.png", card.funnel(report.funnel))
    types = plan.entities.state["made_from"]["types_files"]
    write("README.md", dataset_card(report, labels, types).encode("utf-8"))
