"""Makes the report of a corpus of the counts of its stages."""

from __future__ import annotations

from collections.abc import Mapping

from nerbert.text.overlap import contamination, distinct_names
from ontology.entity_table import SOURCES
from pipeline.examples.balance import exponent, sampling_weights
from pipeline.examples.counts import BalanceReport, Counts, SelectionReport, Statistics
from pipeline.examples.filters import REASONS
from pipeline.examples.report import (
    Balanced,
    Balancing,
    Categories,
    CategoryRow,
    CorpusReport,
    Coverage,
    Flow,
    Funnel,
    MentionFlow,
)
from pipeline.plan import Plan


def corpus_report(plan: Plan, statistics: Statistics, balanced: BalanceReport) -> CorpusReport:
    """The report of a corpus, from the statistics of its passes."""
    settings = plan.settings
    select = settings.decide("select")
    # Names instead of paths: the report must not depend on the folders of the files.
    select["exclude"] = distinct_names(settings.exclude)
    select["categories"] = distinct_names([settings.categories])[0]
    train = statistics.selected.by_category["train"]
    reached = exponent(train, balanced.mentions)
    return CorpusReport(
        language=plan.language,
        dumps=list(plan.documents.state["made_from"]["dump_files"]),
        sentence_model=plan.sentence_model,
        settings={"select": select, "balance": settings.decide("balance")},
        funnel=_funnel(plan, statistics.selected, balanced),
        coverage=_coverage(plan, statistics),
        categories=_categories(statistics, balanced, settings.alpha),
        balance=Balancing(
            mode=statistics.weights.mode,
            alpha=settings.alpha,
            exponent=None if reached is None else round(reached, 4),
        ),
        contamination=contamination(statistics.selected.contamination, settings.exclude),
    )


def _funnel(plan: Plan, selected: SelectionReport, balanced: BalanceReport) -> Funnel:
    counts = plan.documents.on_disk().get("counts", {})
    return Funnel(
        pages={
            **counts.get("pages", {}),
            "set_aside": dict(counts.get("set_aside", {})),
            "damage": dict(counts.get("damage", {})),
            "duplicate_files": dict(counts.get("duplicate_files", {})),
            "lost": counts.get("lost_pages", 0),
        },
        sentences=Flow(
            selected.sentences_in, _by_reason(selected.dropped_sentences), selected.sentences
        ),
        mentions=MentionFlow(
            selected.mentions_in,
            _by_reason(selected.dropped_mentions),
            selected.mentions,
            dict(selected.mention_sources),
            selected.anchors_outside,
            selected.mentions_extended,
        ),
        tokens_before_balancing=selected.tokens,
        train_after_balancing=Balanced(
            examples=balanced.examples,
            tokens=balanced.tokens,
            mentions=sum(balanced.mentions.values()),
            examples_left_out=balanced.left_out,
            most_copies=balanced.most_copies,
        ),
    )


def _by_reason(counts: Mapping[str, int]) -> Counts:
    """Counts in the order of the filters."""
    return {reason: counts[reason] for reason in REASONS if reason in counts}


def _coverage(plan: Plan, statistics: Statistics) -> Coverage:
    anchors = statistics.anchors
    typed = sum(anchors[source] for source in SOURCES[1:])
    total = sum(anchors.values()) - anchors["no-name"]
    share = round(typed / total, 4) if total else None
    counts = plan.entities.on_disk().get("counts", {})
    return Coverage(
        anchors=anchors,
        typed_share=share,
        tables=counts.get("tables", {}),
        types_files=counts.get("types_files", []),
        voters=counts.get("voters", []),
        phrases=counts.get("phrases", {}),
        support=counts.get("support", []),
        page_typer=counts.get("page_typer"),
        filling=statistics.filling,
        conflicts=counts.get("conflicts", []),
    )


def _categories(statistics: Statistics, balanced: BalanceReport, alpha: float) -> Categories:
    by_split = statistics.selected.by_category
    present = {name: count for name, count in by_split["train"].items() if count}
    targets = sampling_weights(present, alpha) if present else {}
    names = set(statistics.categories)
    table = {
        name: CategoryRow(
            entities=statistics.entities.get(name, 0),
            mentions=statistics.mentions.get(name, 0),
            support=round(statistics.support(name), 4),
            in_sentences_with_category=statistics.with_category.get(name, 0),
            train=by_split["train"].get(name, 0),
            validation=by_split["validation"].get(name, 0),
            train_balanced=balanced.mentions.get(name, 0),
            target_share=round(targets.get(name, 0.0), 6),
        )
        for name in statistics.categories
    }
    return Categories(
        kept=len(statistics.categories) - 1,
        given_up={n: count for n, count in statistics.entities.items() if count and n not in names},
        frequent=statistics.frequent,
        table=table,
    )
