"""Reports CrossNER's experiments as the paper's tables and figures, with the published scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from finetune.experiments.runs import SCORING, main_f1
from finetune.papers.crossner.cells import Cell, Encoder
from finetune.papers.crossner.settings import DOMAINS
from finetune.papers.words.options import word_options
from finetune.scoring import plots
from finetune.scoring.tables import cent, markdown, published, spread
from finetune.settings import ALL
from nerbert.storage import files

LEFT = """\
Rows with - were not run: run them with --dapt, --corpus or --systems; the paper used GloVe for \
BiLSTM-CRF and Coach (--vectors)."""

Result = dict[str, Any]
Pair = tuple[Cell, Result]

SPECIAL_PERSON = {
    "politics": "politician",
    "science": "scientist",
    "music": "musicalartist",
    "literature": "writer",
    "ai": "researcher",
}
"""Domain -> its type for special persons."""

NOTES = """\
The released data differ from the paper: music has 465 test sentences, not 456; the types
`literarygenre` (literature), `programlang` and `conference` (AI) are in the data but not in the
paper's table 1; errors of annotation were corrected after publication. These scores are on the
released data, by seqeval in strict mode (IOB2)."""


def published_f1(regime: str, name: str, domain: str) -> float | None:
    """F1 in table 2, in per cent; None if it has no such row."""
    scores = published()["crossner"].get(regime, {}).get(name)
    return None if scores is None else float(scores[DOMAINS.index(domain)])


def published_type(regime: str, name: str, domain: str, kind: str) -> float | None:
    """F1 of a type in table 4, in per cent; None if it has no such entry."""
    if domain != "music":
        return None
    table = published()["music"]
    scores = table.get(regime, {}).get(name)
    if scores is None or kind not in table["types"]:
        return None
    return float(scores[table["types"].index(kind)])


def person_share(confusion: Mapping[str, Mapping[str, int]], domain: str) -> float | None:
    """Share of the gold mentions `person` that are predicted as the domain's special persons.

    Args:
        confusion: gold type -> predicted type -> number of mentions.
        domain: the domain.

    Returns:
        The share; None if there is no gold mention `person`.
    """
    row = confusion.get("person", {})
    total = sum(row.values())
    return row.get(SPECIAL_PERSON[domain], 0) / total if total else None


class GridReport:
    """The report of `nerbert crossner`."""

    def __init__(self, plan: Sequence[Cell], results: Sequence[Result]) -> None:
        """Takes the cells and their results, in the same order."""
        self._pairs: list[Pair] = list(zip(plan, results, strict=True))
        self._regimes = list(dict.fromkeys(cell.run.regime for cell in plan))
        self._domains = [name for name in DOMAINS if any(c.domain == name for c in plan)]
        self._shots = list(dict.fromkeys(cell.run.shots for cell in plan))
        self._full = ALL if ALL in self._shots else self._shots[-1]
        self._rows = _row_names(plan)
        names = dict.fromkeys(self._rows[cell.encoder] for cell in plan)
        self._names = sorted(names, key=_place)

    def _of(self, regime: str, name: str, domain: str, shots: str | None = None) -> list[Result]:
        """Results of all seeds."""
        key = regime, name, domain, shots or self._full
        return [
            row
            for cell, row in self._pairs
            if (cell.run.regime, self._rows[cell.encoder], cell.domain, cell.run.shots) == key
        ]

    def table_2(self) -> str:
        """F1 by regime, pre-training and domain, with the published scores in brackets."""
        scores = {cell.run.settings.scoring for cell, _ in self._pairs}
        titles = " or ".join(SCORING[name] for name in SCORING if name in scores)
        few = "" if self._full == ALL else f" Ours are with {self._full} train sentences."
        lines = [f"{titles}, in per cent; published scores in brackets.{few}", ""]
        lacks_rows = False
        for regime in self._regimes:
            rows = [[regime, *self._domains, *(["average"] if len(self._domains) > 1 else [])]]
            published_rows = published()["crossner"].get(regime, {})
            names = sorted({*self._names, *published_rows}, key=_place)
            rows += [self._row_2(regime, name) for name in names]
            lacks_rows = lacks_rows or any(name not in self._names for name in published_rows)
            lines += [*markdown(rows), ""]
        runs = [cell for cell, _ in self._pairs if cell.run.settings.head == "cdlm"]
        without = sorted(
            {cell.domain for cell in runs if not word_options(cell.run.settings).lm_text}
        )
        if without:
            lines += [f"CDLM read no domain text for {', '.join(without)}: --text gives it.", ""]
        return "\n".join([*lines, *([LEFT, ""] if lacks_rows else [])])

    def _row_2(self, regime: str, name: str) -> list[str]:
        cells, our_scores, published_scores = [], [], []
        for domain in self._domains:
            scores = [main_f1(row) for row in self._of(regime, name, domain)]
            published_score = published_f1(regime, name, domain)
            cells.append(_beside(spread(scores), published_score))
            our_scores += [mean(scores)] if scores else []
            published_scores += [published_score] if published_score is not None else []
        if len(self._domains) == 1:
            return [name, *cells]
        is_complete = len(our_scores) == len(self._domains)
        average = _beside(
            cent(mean(our_scores)) if is_complete else "-",
            mean(published_scores) if published_scores else None,
        )
        return [name, *cells, average]

    def table_4(self, domain: str) -> list[str]:
        """F1 of each type."""
        lines = []
        for regime in self._regimes:
            names = [name for name in self._names if self._of(regime, name, domain)]
            kinds = sorted(
                {
                    kind
                    for name in names
                    for row in self._of(regime, name, domain)
                    for kind in row["per_type"]
                }
            )
            rows = [[regime, *kinds]]
            for name in names:
                results = self._of(regime, name, domain)
                cells = [
                    _beside(
                        spread([row["per_type"].get(kind, {}).get("f1", 0.0) for row in results]),
                        published_type(regime, name, domain, kind),
                    )
                    for kind in kinds
                ]
                rows.append([name, *cells])
            lines += [*markdown(rows), ""]
        return lines

    def few_shots(self, domain: str) -> list[str]:
        """F1 by number of train sentences; nothing if there is one number."""
        if len(self._shots) == 1:
            return []
        rows = [["regime", "pre-training", *self._shots]]
        for regime in self._regimes:
            for name in self._names:
                results = [self._of(regime, name, domain, shots) for shots in self._shots]
                rows.append([regime, name, *(spread(list(map(main_f1, row))) for row in results)])
        heading = f"## {domain}: by number of train sentences (figure 3)"
        return [heading, "", *markdown(rows), ""]

    def persons(self) -> list[str]:
        """Shares of gold mentions `person` that are predicted as special persons."""
        rows = [["regime", "pre-training", *self._domains]]
        for regime in self._regimes:
            for name in self._names:
                cells = []
                for domain in self._domains:
                    shares = [
                        person_share(row["confusion"], domain)
                        for row in self._of(regime, name, domain)
                    ]
                    cells.append(spread([share for share in shares if share is not None]))
                rows.append([regime, name, *cells])
        return markdown(rows)

    def write(self, output: Path) -> None:
        """Writes `report.json`, `report.md` and the figures."""
        (output / "report.md").write_text(self._markdown(), encoding="utf-8")
        cells = [
            {
                "domain": cell.domain,
                "pre-training": self._rows[cell.encoder],
                "fraction": cell.encoder.fraction,
                **row,
            }
            for cell, row in self._pairs
        ]
        facts = {"notes": NOTES, "published": published(), "cells": cells}
        files.write_json(str(output / "report.json"), facts)
        for domain in self._domains:
            for number, name, picture in (
                (2, "corpus-size", self._sizes(domain)),
                (3, "shots", self._few(domain)),
            ):
                if picture is not None:
                    path = output / f"figure-{number}-{name}-{domain}.png"
                    path.write_bytes(picture)

    def _markdown(self) -> str:
        lines = [
            "# CrossNER",
            "",
            NOTES,
            "",
            "## By regime and pre-training (table 2)",
            "",
            self.table_2(),
        ]
        for domain in self._domains:
            lines += self.few_shots(domain)
            lines += [f"## {domain}: by type (table 4)", "", *self.table_4(domain)]
        lines += [
            "## Persons predicted as special persons",
            "",
            "Share of gold mentions `person` that are predicted as politician, scientist, "
            "musicalartist, writer or researcher, in per cent. The paper states 84.81 for its best "
            "model on music.",
            "",
            *self.persons(),
            "",
        ]
        return "\n".join(lines)

    def _sizes(self, domain: str) -> bytes | None:
        """Figure 2: F1 by share of the corpus; None if there are fewer than two shares."""

        def place(cell: Cell) -> tuple[str, float] | None:
            encoder = cell.encoder
            if encoder.domain is None or cell.run.shots != self._full:
                return None
            return f"{encoder.masking} {encoder.level}", 100 * encoder.fraction

        return self._curves(domain, "share of the corpus, %", place)

    def _few(self, domain: str) -> bytes | None:
        """Figure 3: F1 by number of train sentences; None if there are fewer than two numbers."""
        rows = {id(cell): row["train_sentences"] for cell, row in self._pairs}
        return self._curves(
            domain, "train sentences", lambda cell: (self._rows[cell.encoder], rows[id(cell)])
        )

    def _curves(
        self, domain: str, label: str, place: Callable[[Cell], tuple[str, float] | None]
    ) -> bytes | None:
        points: dict[str, dict[float, list[float]]] = {}
        for cell, row in self._pairs:
            if cell.domain == domain and (point := place(cell)) is not None:
                line = points.setdefault(f"{cell.run.regime}, {point[0]}", {})
                line.setdefault(point[1], []).append(100 * main_f1(row))
        if len({x for line in points.values() for x in line}) < 2:
            return None
        lines = {
            name: [
                (x, mean(scores), stdev(scores) if len(scores) > 1 else 0.0)
                for x, scores in sorted(line.items())
            ]
            for name, line in points.items()
        }
        return plots.curves(lines, domain, label, "F1, %")


def _beside(our_score: str, published_score: float | None) -> str:
    return our_score if published_score is None else f"{our_score} ({published_score:.2f})"


def _row_names(plan: Sequence[Cell]) -> dict[Encoder, str]:
    """Encoder -> its row: its name, with that of its folder if a domain has two of that name."""
    encoders = dict.fromkeys(cell.encoder for cell in plan)
    counts = Counter((encoder.name, encoder.domain) for encoder in encoders)
    shared = {name for (name, _), count in counts.items() if count > 1}
    return {
        encoder: f"{encoder.name} ({Path(encoder.model).name})"
        if encoder.name in shared
        else encoder.name
        for encoder in encoders
    }


def _place(name: str) -> tuple[int, str]:
    """Place of a row in the paper's table; others follow the published row they begin with."""
    row_names = list(published()["crossner"]["joint"])
    fitting = [place for place, row in enumerate(row_names) if name.startswith(row)]
    return max(fitting, default=len(row_names)), name
