"""Reports DualNER's results as the paper's tables: by language, ablation and share of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from finetune.papers.dualner.settings import METHODS
from finetune.scoring import plots
from finetune.scoring.results import Results
from finetune.scoring.tables import markdown, published, spread
from nerbert.storage.places import Place

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
    Place(output / "report.json").write_json({"results": list(results)})
    if len({row["share"] for row in results}) > 1:
        (output / "shares.png").write_bytes(_curve(results))
    return text


def _means(results: Sequence[Result]) -> Results:
    """Mean F1 of all languages."""
    return Results(
        {**row, "per cent": 100 * row["share"], "value": row["mean_f1"]} for row in results
    )


def _with_all_labels(results: Sequence[Result], methods: Sequence[str]) -> list[Result]:
    """The results of some methods with the largest share of labels, in the order of these."""
    share = max(float(row["share"]) for row in results)
    return [
        row
        for method in methods
        for row in results
        if (row["variant"], row["share"]) == (method, share)
    ]


def _by_language(results: Sequence[Result], identity: Callable[[str], str]) -> list[str]:
    """Table 1: methods by language."""
    languages, main = results[0]["languages"], _with_all_labels(results, _MAIN)
    means = _means(main)
    f1 = means.by("language", lambda row: {name: row["test"][name]["f1"] for name in languages})
    rows = f1.pivot(
        "variant",
        "language",
        "method",
        means.facts("variant"),
        languages,
        average=("mean", lambda cells, method: spread(means.where(variant=method).values)),
    )
    share = main[0]["share"] if main else 1.0
    part = "" if share == 1 else f" With {share:.0%} of the labels of the source."
    if not part:  # the paper has no such table for a part of the labels
        rows += _published([identity(name) for name in languages])
    return [
        "F1 (seqeval strict, IOB2) in per cent, by language; the first one is the source. Scored "
        f"on {results[0]['tested']:,} test sentences.{part}",
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
    means = _means(_with_all_labels(results, _ABLATIONS))
    has_all_labels = max(row["share"] for row in results) == 1
    published_scores = published()["dualner"]["ablations"] if has_all_labels else {}
    rows = [["method", "mean F1 of all languages", "published, XLM-R base, 40 languages"]]
    for method in means.facts("variant"):
        our_score = spread(means.where(variant=method).values)
        rows.append([method, our_score, published_scores.get(METHODS[method].published, "-")])
    return [*markdown(rows), ""] if len(rows) > 1 else []


def _shares(results: Sequence[Result]) -> list[str]:
    """Figure 3 as a table."""
    means = _means(results)
    shares = sorted(means.facts("share"))
    if len(shares) < 2:
        return []
    titles = {share: f"{share:.0%}" for share in shares}
    rows = means.pivot("variant", "share", "labels of the source", None, shares, titles)
    return [*markdown(rows), ""]


def _curve(results: Sequence[Result]) -> bytes:
    curves = _means(results).curves("variant", "per cent")
    return plots.curves(curves, "DualNER", "labels of the source, %", "mean F1 (strict), %")
