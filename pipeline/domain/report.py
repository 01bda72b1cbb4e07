"""Report and dataset card of a domain corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nerbert.reports import filled
from nerbert.storage.parts import Report
from nerbert.text.tags import LEVELS
from pipeline.domain.plan import DomainPlan

PAPER = {"entity": "0.36-0.52", "task": "0.04-0.13", "integrated": "0.44-0.76"}
"""Shares of the domain's tokens, smallest to largest of five domains. Source: CrossNER, table 3."""


TABLE_1 = {
    "politics": (2_760_000, 9_070_000, 176_560_000),
    "science": (1_720_000, 5_320_000, 98_500_000),
    "music": (3_490_000, 9_820_000, 194_620_000),
    "literature": (2_690_000, 9_170_000, 177_330_000),
    "ai": (97_040, 287_620, 5_200_000),
}
"""Paragraphs, sentences and tokens of the paper's corpora. Source: CrossNER, table 1."""

_PAPER_ANNOTATED = 63.64
"""Per cent of the entities with hyperlinks that are pre-annotated. Source: CrossNER, section 3."""


def present(plan: DomainPlan, counts: DomainReport) -> str:
    """Writes report and card; returns a summary for users."""
    settings, domain = plan.settings, plan.domain
    levels = level_sizes(counts.levels)
    report = counts.to_json()
    del report["source"]
    sizes = {level: asdict(size) for level, size in levels.items()}
    domain_facts = {
        "domain": asdict(domain),
        "language": plan.language,
        "levels": sizes,
        "paper": PAPER,
    }
    (settings.output / "report.json").write_json({**report, **domain_facts})
    table = [
        f"| {level} | {size.sentences:,} | {size.tokens:,} | {size.share:.3f} | "
        f"{PAPER.get(level, '1')} |"
        for level, size in levels.items()
    ]
    dropped = {reason: n for reason, n in sorted(counts.sentences.items()) if reason != "taken"}
    types = sorted(counts.types.items(), key=lambda row: (-row[1], row[0]))
    text = filled(
        "pipeline.domain",
        language=plan.language,
        title=domain.title,
        roots=", ".join(domain.roots),
        depth=domain.depth,
        pages=f"{counts.pages['taken']:,}",
        levels="\n".join(table),
        entity_mentions=settings.entity_mentions,
        task_mentions=settings.task_mentions,
        special=", ".join(domain.special) or "none named",
        dropped="".join(f"\n| {reason} | {n:,} |" for reason, n in dropped.items()),
        coverage=_coverage(counts),
        types="".join(f"\n| {name} | {n:,} |" for name, n in types),
    )
    (settings.output / "README.md").write_bytes(text.encode())
    return _summary(plan, counts, levels)


def _summary(plan: DomainPlan, counts: DomainReport, levels: dict[str, LevelSize]) -> str:
    pages = counts.pages
    lines = [
        f"pages      {pages['taken']:,} in the domain, {pages.get('outside', 0):,} outside, "
        f"{pages.get('disambiguation', 0):,} disambiguation pages left out",
        "sentences  " + ", ".join(f"{n:,} {name}" for name, n in sorted(counts.sentences.items())),
    ]
    domain_size = levels["domain"]
    shape = f"{counts.levels.get('domain paragraphs', 0):,} paragraphs"
    if plan.domain.name in TABLE_1:
        paper_sizes = "{:,} paragraphs, {:,} sentences, {:,} tokens".format(
            *TABLE_1[plan.domain.name]
        )
        lines.append(
            f"table 1    {shape}, {domain_size.sentences:,} sentences, {domain_size.tokens:,} "
            f"tokens (paper {paper_sizes})"
        )
    else:
        lines.append(f"paragraphs {shape}")
    lines.append(f"annotation {_coverage(counts)}")
    for level, size in levels.items():
        paper = f" (paper {PAPER[level]})" if level in PAPER else ""
        lines.append(
            f"{level:10} {size.sentences:,} sentences, {size.tokens:,} tokens, "
            f"{size.share:.3f} of the domain's{paper}"
        )
    if empty := [level for level, size in levels.items() if not size.sentences]:
        special = ", ".join(plan.domain.special) or "not named (--special)"
        lines.append(
            f"           nothing in {', '.join(empty)}: the domain's special types are {special}; "
            "are the classes of the entities known (--types)?"
        )
    return "\n".join([*lines, f"corpus     {plan.settings.output}"])


def _coverage(counts: DomainReport) -> str:
    """How many hyperlinks have a class, and how many other names were found."""
    links, typed = (counts.coverage.get(name, 0) for name in ("hyperlinks", "with a class"))
    share = 100 * typed / links if links else 0.0
    return (
        f"{links:,} hyperlinks, {share:.2f} % of them with a class (paper {_PAPER_ANNOTATED}), and "
        f"{counts.coverage.get('names without link', 0):,} names without link"
    )


@dataclass
class DomainReport(Report):
    """Counts of a part of documents, or of all parts.

    Attributes:
        source: name of the part.
        pages: number of pages that were taken, and dropped by reason.
        by_depth: number of taken pages, by root and depth.
        sentences: number of sentences that were taken, and dropped by reason.
        levels: number of sentences and tokens of each level that is a column.
        types: number of mentions of each type.
        coverage: number of hyperlinks, of those with a class, and of names without link.
        contamination: (page:sentence, kind, number of the file, sentence of the file) of each hit.
    """

    source: str = ""
    pages: Counter[str] = field(default_factory=Counter)
    by_depth: Counter[str] = field(default_factory=Counter)
    sentences: Counter[str] = field(default_factory=Counter)
    levels: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    coverage: Counter[str] = field(default_factory=Counter)
    contamination: list[Sequence[Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Content of the report's file, with sorted tables."""
        content = super().to_json()
        return {
            k: dict(sorted(v.items())) if isinstance(v, dict) else v for k, v in content.items()
        }


@dataclass(frozen=True)
class LevelSize:
    """Number of sentences and tokens of a level, and its share of the domain's tokens."""

    sentences: int
    tokens: int
    share: float


def level_sizes(counts: Mapping[str, int]) -> dict[str, LevelSize]:
    """Size of each level, from `DomainReport.levels`."""
    sizes: dict[str, LevelSize] = {}
    for level, columns in LEVELS.items():
        sentences, tokens = (
            sum(counts.get(f"{column} {unit}", 0) for column in columns)
            for unit in ("sentences", "tokens")
        )
        share = tokens / counts["domain tokens"] if counts.get("domain tokens") else 0.0
        sizes[level] = LevelSize(sentences, tokens, round(share, 4))
    return sizes
