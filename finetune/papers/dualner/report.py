"""Reports DualNER's results as the paper's tables: by language, ablation and share of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from finetune.papers.dualner.settings import METHODS
from finetune.scoring import plots
from finetune.scoring.tables import markdown, published, spread
from nerbert.storage import files

Result = dict[str, Any]

_MAIN = ("sequence", "span", "multitask", "multitask-long", "dual")
_ABLATIONS = (
    "multitask",
    "multitask-long",
    "dual",
    "no-regularisation",
    "self-teaching",
    "no-target",
)


def write_report(
    results: Sequence[Result], output: Path, identity: Callable[[str], str] = str
) -> str:
    """Writes `report.json`, `report.md` and the curve over shares; returns the tables.

    Args:
        results: results of `Experiment.result`.
        output: output folder.
        identity: name of the known set that a name stands for, for the published scores.
    """
    text = "\n".join([*_by_language(results, identity), *_ablations(results), *_shares(results)])
    (output / "report.md").write_text(text, encoding="utf-8")
    files.write_json(str(output / "report.json"), {"results": list(results)})
    if len({row["share"] for row in results}) > 1:
        (output / "shares.png").write_bytes(_curve(results))
    return text


def _of(results: Sequence[Result], method: str, share: float = 1.0) -> list[Result]:
    return [row for row in results if row["variant"] == method and row["share"] == share]


def _largest(results: Sequence[Result]) -> float:
    return max(float(row["share"]) for row in results)


def _by_language(results: Sequence[Result], identity: Callable[[str], str]) -> list[str]:
    """Table 1: methods by language."""
    languages, share = results[0]["languages"], _largest(results)
    rows = [["method", *languages, "mean"]]
    for method in _MAIN:
        if of_method := _of(results, method, share):
            cells = [spread([row["test"][name]["f1"] for row in of_method]) for name in languages]
            rows.append([method, *cells, spread([row["mean_f1"] for row in of_method])])
    rows += _published([identity(name) for name in languages])
    return [
        "F1 (seqeval strict, IOB2) in per cent, by language; the first one is the source. Scored "
        f"on {results[0]['tested']:,} test sentences.",
        "",
        *markdown(rows),
        "",
    ]


def _published(languages: Sequence[str]) -> list[list[str]]:
    """Rows of the paper's table 1, for the sets that are WikiAnn's of its languages."""
    table, rows = published()["dualner"], []
    names = [f"wikiann/{code}" for code in table["languages"]]
    for encoder, title in (("xlm-roberta-base", "XLM-R base"), ("infoxlm-large", "InfoXLM large")):
        for method, scores in table[encoder].items():
            score_of = dict(zip(names, scores, strict=True))
            language_scores = [score_of.get(name) for name in languages]
            present = [score for score in language_scores if score is not None]
            if present:
                cells = ["-" if score is None else f"{score:.1f}" for score in language_scores]
                average = f"{mean(present):.1f}" if len(present) == len(language_scores) else "-"
                rows.append([f"published, {title}: {method}", *cells, average])
    return rows


def _ablations(results: Sequence[Result]) -> list[str]:
    """Table 2: mean over languages."""
    share = _largest(results)
    published_scores = published()["dualner"]["ablations"]
    rows = [["method", "mean F1 of all languages", "published, XLM-R base, 40 languages"]]
    for method in _ABLATIONS:
        if of_method := _of(results, method, share):
            name = METHODS[method].published
            our_score = spread([row["mean_f1"] for row in of_method])
            rows.append([method, our_score, published_scores.get(name, "-")])
    return [*markdown(rows), ""] if len(rows) > 1 else []


def _shares(results: Sequence[Result]) -> list[str]:
    """Figure 3 as a table."""
    shares = sorted({float(row["share"]) for row in results})
    if len(shares) < 2:
        return []
    rows = [["labels of the source", *(f"{share:.0%}" for share in shares)]]
    for method in dict.fromkeys(row["variant"] for row in results):
        cells = [
            spread([row["mean_f1"] for row in _of(results, method, share)]) for share in shares
        ]
        rows.append([method, *cells])
    return [*markdown(rows), ""]


def _curve(results: Sequence[Result]) -> bytes:
    lines: dict[str, list[plots.Point]] = {}
    for method in dict.fromkeys(row["variant"] for row in results):
        for share in sorted({float(row["share"]) for row in results}):
            scores = [100 * row["mean_f1"] for row in _of(results, method, share)]
            if scores:
                deviation = stdev(scores) if len(scores) > 1 else 0.0
                lines.setdefault(method, []).append((100 * share, mean(scores), deviation))
    return plots.curves(lines, "DualNER", "labels of the source, %", "mean F1 (strict), %")
