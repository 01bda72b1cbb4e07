"""Reports CrossNER's experiments as the paper's tables and figures, with the published scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from finetune.experiments.runs import SCORING, main_f1
from finetune.papers.crossner.cells import Cell, Encoder
from finetune.papers.crossner.settings import DOMAINS
from finetune.papers.words.options import word_options
from finetune.scoring import plots
from finetune.scoring.results import Cell as ScoreCell
from finetune.scoring.results import Line, Results, average_of_means
from finetune.scoring.tables import markdown, published, sizes_table, spread
from finetune.settings import ALL
from nerbert.storage.places import Place

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

    def __init__(
        self,
        plan: Sequence[Cell],
        results: Sequence[Result],
        sizes_of_sets: Mapping[str, Sequence[int]],
    ) -> None:
        """Takes the cells and their results, in the same order, and `DataSets.sizes`."""
        self._sizes_of_sets = sizes_of_sets
        self._pairs: list[Pair] = list(zip(plan, results, strict=True))
        self._regimes = list(dict.fromkeys(cell.run.regime for cell in plan))
        self._domains = [name for name in DOMAINS if any(c.domain == name for c in plan)]
        self._shots = list(dict.fromkeys(cell.run.shots for cell in plan))
        self._full = ALL if ALL in self._shots else self._shots[-1]
        self._rows = _row_names(plan)
        names = dict.fromkeys(self._rows[cell.encoder] for cell in plan)
        self._names = sorted(names, key=_place)
        self._all_rows = [(regime, name) for regime in self._regimes for name in self._names]
        self._f1 = Results(self._line(cell, row) for cell, row in self._pairs)

    def _line(self, cell: Cell, row: Result) -> dict[str, Any]:
        name, encoder, regime = self._rows[cell.encoder], cell.encoder, cell.run.regime
        adapted = f"{regime}, {encoder.masking} {encoder.level}" if encoder.domain else None
        facts = {"regime": regime, "name": name, "row": (regime, name), "domain": cell.domain}
        curves = {"curve": f"{regime}, {name}", "adapted": adapted}
        share = {"shots": cell.run.shots, "per cent": 100 * encoder.fraction}
        return {**row, **facts, **curves, **share, "value": main_f1(row)}

    def table_2(self) -> str:
        """F1 by regime, pre-training and domain, with the published scores in brackets."""
        scores = {cell.run.settings.scoring for cell, _ in self._pairs}
        titles = " or ".join(SCORING[name] for name in SCORING if name in scores)
        few = "" if self._full == ALL else f" Ours are with {self._full} train sentences."
        lines = [f"{titles}, in per cent; published scores in brackets.{few}", ""]
        lacks_rows = False
        for regime in self._regimes:
            published_rows = published()["crossner"].get(regime, {})
            rows = self._f1.where(regime=regime, shots=self._full).pivot(
                "name",
                "domain",
                regime,
                sorted({*self._names, *published_rows}, key=_place),
                self._domains,
                average=("average", partial(self._average, regime))
                if len(self._domains) > 1
                else None,
                text=lambda cell, name, domain, regime=regime: _beside(  # type: ignore[misc]
                    spread(cell), published_f1(regime, name, domain)
                ),
            )
            lacks_rows = lacks_rows or any(name not in self._names for name in published_rows)
            lines += [*markdown(rows), ""]
        runs = [cell for cell, _ in self._pairs if cell.run.settings.head == "cdlm"]
        without = sorted(
            {cell.domain for cell in runs if not word_options(cell.run.settings).lm_text}
        )
        if without:
            lines += [f"CDLM read no domain text for {', '.join(without)}: --text gives it.", ""]
        return "\n".join([*lines, *([LEFT, ""] if lacks_rows else [])])

    def _average(self, regime: str, cells: Sequence[ScoreCell], name: str) -> str:
        scores = [published_f1(regime, name, domain) for domain in self._domains]
        paper_scores = [score for score in scores if score is not None]
        return _beside(average_of_means(cells), mean(paper_scores) if paper_scores else None)

    def table_4(self, domain: str) -> list[str]:
        """F1 of each type."""
        lines = []
        for regime in self._regimes:
            runs = self._f1.where(regime=regime, domain=domain, shots=self._full)
            kinds = sorted({kind for line in runs for kind in line["per_type"]})
            f1 = runs.by("type", partial(_by_type, kinds))
            rows = f1.pivot(
                "name",
                "type",
                regime,
                [name for name in self._names if runs.where(name=name)],
                kinds,
                text=lambda cell, name, kind, regime=regime: _beside(  # type: ignore[misc]
                    spread(cell), published_type(regime, name, domain, kind)
                ),
            )
            lines += [*markdown(rows), ""]
        return lines

    def few_shots(self, domain: str) -> list[str]:
        """F1 by number of train sentences; nothing if there is one number."""
        if len(self._shots) == 1:
            return []
        rows = self._f1.where(domain=domain).pivot(
            "row", "shots", ("regime", "pre-training"), self._all_rows, self._shots
        )
        heading = f"## {domain}: by number of train sentences (figure 3)"
        return [heading, "", *markdown(rows), ""]

    def persons(self) -> list[str]:
        """Shares of gold mentions `person` that are predicted as special persons."""
        table = self._f1.where(shots=self._full).by("share", _special_persons)
        title = ("regime", "pre-training")
        return markdown(table.pivot("row", "domain", title, self._all_rows, self._domains))

    def write(self, output: Path) -> None:
        """Writes `report.json`, `report.md` and the figures."""
        (output / "report.md").write_text(self._markdown(), encoding="utf-8")
        cells = [
            {
                "domain": cell.domain,
                "pre-training": self._rows[cell.encoder],
                "masking": cell.encoder.masking,
                "level": cell.encoder.level,
                "fraction": cell.encoder.fraction,
                **row,
            }
            for cell, row in self._pairs
        ]
        facts = {"notes": NOTES, "published": published(), "cells": cells}
        Place(output / "report.json").write_json(facts)
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
            "## Sets (table 1)",
            "",
            *sizes_table(self._sizes_of_sets),
            "",
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
        runs = self._f1.where(domain=domain, shots=self._full)
        return _curves(runs, "adapted", "per cent", domain, "share of the corpus, %")

    def _few(self, domain: str) -> bytes | None:
        """Figure 3: F1 by number of train sentences; None if there are fewer than two numbers."""
        runs = self._f1.where(domain=domain)
        return _curves(runs, "curve", "train_sentences", domain, "train sentences")


def _curves(runs: Results, curve: str, axis: str, domain: str, label: str) -> bytes | None:
    lines = runs.curves(curve, axis)
    if len({place for points in lines.values() for place, *_ in points}) < 2:
        return None
    return plots.curves(lines, domain, label, "F1, %")


def _by_type(kinds: Sequence[str], line: Line) -> dict[str, float]:
    return {kind: line["per_type"].get(kind, {}).get("f1", 0.0) for kind in kinds}


def _special_persons(line: Line) -> dict[str, float]:
    share = person_share(line["confusion"], line["domain"])
    return {} if share is None else {"person": share}


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
