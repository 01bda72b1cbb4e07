"""Runs `nerbert join`: the examples of several runs, balanced by category and by language."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nerbert.commands.options import decided_by
from nerbert.errors import RunError, UserError
from nerbert.reports import filled
from nerbert.storage import parts
from nerbert.storage.folders import Folder
from nerbert.storage.places import Place
from nerbert.text.corpus import SPLITS
from nerbert.text.tags import LabelSet
from pipeline.examples import balance
from pipeline.examples.corpus_files import card_header
from pipeline.examples.rows import schema
from pipeline.join.languages import BalancedLanguage, balanced_languages
from pipeline.join.runs import JOINED, JoinedExamples, Run, joined_labels
from pipeline.join.settings import JoinSettings

VERSION = 1
"""Raised if a change of the code changes the rows of a join."""

_LOGGER = logging.getLogger("nerbert")


@dataclass
class Part:
    """What a language has in the corpus.

    Attributes:
        balanced: its examples, and how they are repeated.
        train: number of train examples after balancing.
        mentions: number of mentions of each category in these.
    """

    balanced: BalancedLanguage
    train: int = 0
    mentions: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready values."""
        sentences, run = self.balanced.selected.sentences, self.balanced.examples.run
        return {
            "train": sentences["train"],
            "validation": sentences["validation"],
            "factor": round(self.balanced.factor, 4),
            "train_balanced": self.train,
            # Wikidata items, by which translations are in one split.
            "has_items": "page_props" in run.report.coverage.tables,
        }


def join(settings: JoinSettings) -> str:
    """Makes a corpus of several runs, unless it is there already; returns a summary.

    Raises:
        UserError: a folder is no finished run, two have one language, or the output holds
            something else.
        RunError: there is no train example.
    """
    runs = [Run.open(folder) for folder in settings.runs]
    languages = Counter(run.report.language for run in runs)
    if twice := [language for language, count in languages.items() if count > 1]:
        raise UserError(f"two runs of the language {twice[0]}; join takes one run of a language")
    made_from = {
        "version": VERSION,
        "runs": [run.fingerprint for run in runs],
        **decided_by(settings, "join"),
    }
    folder = Folder.of(settings.output, "join", made_from)
    with settings.output.locked():
        if folder.is_complete():
            _LOGGER.info("join: up to date")
        else:
            folder.prepare()
            _write(settings, runs)
            folder.finish()
    return _summary(settings.output)


def _write(settings: JoinSettings, runs: Sequence[Run]) -> None:
    labels = joined_labels(runs)
    all_examples = [
        JoinedExamples(run, labels, settings.validation_share, settings.seed) for run in runs
    ]
    written: dict[str, Part] = {}
    number = 0
    for balanced in balanced_languages(all_examples, settings.language_alpha):
        part = Part(balanced)
        for name in balanced.examples.run.parts:
            _write_part(settings, part, name, number)
            number += 1
        language = balanced.examples.language
        written[language] = part
        _LOGGER.info("join: %s, %d train examples", language, part.train)
    _write_report(settings, runs, labels, written)
    if not any(part.train for part in written.values()):
        raise RunError("No train example: the runs have none")


def _write_part(settings: JoinSettings, part: Part, name: str, number: int) -> None:
    """Writes the examples of a part of a run, and adds their counts to `part`."""
    balanced = part.balanced
    labels = balanced.examples.labels
    natural = balance.Weights("none", ())
    columns, n_categories = schema(labels, JOINED), len(labels.categories)
    paths = {split: settings.output / split / f"part-{number:05}.parquet" for split in SPLITS}
    with (
        parts.writer_if_rows(paths["train"], columns) as train,
        parts.writer_if_rows(paths["validation"], columns) as validation,
    ):
        for split, batch in balanced.examples.batches(name):
            is_train = split == "train"
            repeated, counts, copies = balance.repeat(
                batch, balanced.weights if is_train else natural, n_categories, settings.seed
            )
            (train if is_train else validation)(repeated.cast(columns))
            if is_train:
                mentions = np.bincount(
                    counts.categories, counts.mentions * copies[counts.rows], n_categories
                ).astype(int)
                part.train += len(repeated)
                part.mentions.update(dict(zip(labels.categories, mentions.tolist(), strict=True)))


def _write_report(
    settings: JoinSettings, runs: Sequence[Run], labels: LabelSet, written: Mapping[str, Part]
) -> None:
    """Writes labels, report and card."""

    def total(split: str, name: str) -> int:
        return sum(part.balanced.selected.by_category[split][name] for part in written.values())

    table = {
        name: {
            "train": total("train", name),
            "validation": total("validation", name),
            "train_balanced": sum(part.mentions[name] for part in written.values()),
        }
        for name in labels.categories
    }
    report = {
        "language": list(written),
        "dumps": [dump for run in runs for dump in run.report.dumps],
        "settings": decided_by(settings, "join"),
        "languages": {language: part.to_json() for language, part in written.items()},
        "categories": {"kept": len(labels.categories) - 1, "table": table},
    }
    (settings.output / "labels.json").write_json(labels.to_json())
    (settings.output / "report.json").write_json(report)
    card = filled("pipeline.join", **_card_values(report, labels))
    (settings.output / "README.md").write_bytes(card.encode("utf-8"))


def _card_values(report: Mapping[str, Any], labels: LabelSet) -> dict[str, str]:
    languages, table = report["languages"], report["categories"]["table"]
    examples = {
        "train": sum(row["train_balanced"] for row in languages.values()),
        "validation": sum(row["validation"] for row in languages.values()),
    }
    ordered = sorted(table.items(), key=lambda row: (-row[1]["train"], row[0]))
    return {
        "languages": ", ".join(languages),
        "header": card_header(examples, JOINED, labels),
        "dumps": ", ".join(report["dumps"]),
        "n_categories": f"{report['categories']['kept']:,}",
        "alpha": f"{report['settings']['language_alpha']:g}",
        "n_tags": str(len(labels.tags)),
        "rows": "\n".join(_row(name, row) for name, row in languages.items()),
        "categories": "\n".join(
            f"| {name} | {row['train']:,} | {row['train_balanced']:,} | {row['validation']:,} |"
            for name, row in ordered
        ),
    }


def _row(language: str, row: Mapping[str, Any]) -> str:
    cells = (row["train"], row["train_balanced"], row["validation"])
    return f"| {language} | " + " | ".join(f"{cell:,}" for cell in cells) + " |"


def _summary(output: Place) -> str:
    report = (output / "report.json").read_json()
    languages = report["languages"]
    lines = [
        f"{name:10} {row['train']:>12,} -> {row['train_balanced']:,} train ({row['factor']:g} "
        f"times the copies of its own corpus), {row['validation']:,} validation"
        for name, row in languages.items()
    ]
    reached = balance.exponent(
        {name: row["train"] for name, row in languages.items()},
        {name: row["train_balanced"] for name, row in languages.items()},
    )
    lines.append(
        f"languages  {len(languages):>12,}, alpha {report['settings']['language_alpha']:g}, "
        f"achieved exponent {'n/a' if reached is None else round(reached, 4)}"
    )
    if without := [name for name, row in languages.items() if not row["has_items"]]:
        lines.append(
            f"           no Wikidata items: {', '.join(without)}; translations may be in both "
            "splits (run these with --page-props)"
        )
    lines.append(f"categories {report['categories']['kept']:>12,} and ENTITY")
    lines.append(f"corpus     {output}")
    return "\n".join(lines)
