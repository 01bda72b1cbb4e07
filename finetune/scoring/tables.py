"""Tables in Markdown, and the published scores that stand beside ours in them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from statistics import mean, stdev
from typing import Any

from nerbert.text.overlap import distinct_names


@cache
def published() -> dict[str, Any]:
    """Scores in papers, in per cent; `published.toml` names the tables of the papers."""
    text = (files("finetune.scoring") / "published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def tner_models() -> list[str]:
    """Names of the models in T-NER's tables."""
    return list(published()["tner"]["in-domain"])


def tner_in_domain(model: str, name: str) -> float | None:
    """T-NER's strict F1 of a model that is trained and tested on a set (table 2), if published."""
    f1: float | None = published()["tner"]["in-domain"][model].get(name)
    return f1


def tner_row(
    score: str, model: str, train: str, test: Sequence[str], lowercase: bool
) -> list[float | None]:
    """A row of T-NER's matrices: a score for each test set, and its average; None without one.

    Args:
        score: "strict" (tables 4, 5 and 6), or "tner-span" (tables 3, 7, 8, 9).
        model: name of the model.
        train: name of the train set, or `A+B+...` for several together.
        test: names of the test sets.
        lowercase: whether all words are in lower case.
    """
    tables = published()["tner"]
    case = "lowercase" if lowercase else "cased"
    kind, columns = {
        "strict": (f"strict-{case}", tables[case]),
        "tner-span": (f"span-{case}", tables[case]),
    }.get(score, ("", []))
    if score == "strict" and not lowercase and train in tables["languages"]:
        kind, columns = "strict", tables["languages"]
    row = "all" if set(train.split("+")) == set(columns) else train
    values = tables.get(kind, {}).get(model, {}).get(row, [])
    score_of = dict(zip(columns, values, strict=False))
    average = values[len(columns)] if len(values) > len(columns) else None
    return [*(score_of.get(name) for name in test), average if set(test) == set(columns) else None]


def nerbert_rows(regime: str, sets: Sequence[str]) -> dict[str, list[float | None]]:
    """Rows of NER-BERT's table 2: a score for each set, and the average; None without one.

    Args:
        regime: "target" or "source-target".
        sets: names of the sets.
    """
    table = published()["nerbert"]
    scores_of_models = {
        name: dict(zip([*table["sets"], "average"], values, strict=True))
        for name, values in table.get(regime, {}).items()
    }
    has_all_sets = set(sets) == set(table["sets"])
    return {
        name: [
            *(values.get(set_name) or None for set_name in sets),
            (values["average"] or None) if has_all_sets else None,
        ]
        for name, values in scores_of_models.items()
        if any(values.get(set_name) for set_name in sets)
    }


def published_rows(regime: str, sets: Sequence[str]) -> dict[str, list[float | None]]:
    """Title -> scores of the sets, and their average, of models that are tuned on single sets.

    Args:
        regime: how source and target are combined.
        sets: names of the sets.
    """
    rows: dict[str, list[float | None]] = {
        f"{model}, published (NER-BERT, table 2)": values
        for model, values in nerbert_rows(regime, sets).items()
    }
    for model in tner_models() if regime == "target" else ():
        values = [tner_in_domain(model, name) for name in sets]
        rows[f"{model}, published (T-NER, table 2)"] = [*values, None]
    table = published()["open"]
    for model, scores in table["zero-shot"].items() if regime == "zero-shot" else ():
        score_of = dict(zip(table["sets"], scores, strict=True))
        average = mean(scores) if set(sets) == set(table["sets"]) else None
        rows[f"{model}, published"] = [*(score_of.get(name) for name in sets), average]
    return rows


def sizes_table(sizes: Mapping[str, Sequence[int]]) -> list[str]:
    """Types and sentences of sets as a Markdown table, with what the papers state of them.

    Args:
        sizes: name of each set -> numbers of `DataSets.sizes`.
    """
    rows = [["set", "types", "train", "dev", "test", "published"]]
    sizes_in_papers: dict[str, str] = published()["sizes"]
    short_names = shown_names(list(sizes))
    for name, numbers in sizes.items():
        cells = (f"{n:,}" if n else "-" for n in numbers)
        rows.append([short_names[name], *cells, sizes_in_papers.get(name, "-")])
    return ["Types and sentences of the sets.", "", *markdown(rows)]


def shown_names(names: Sequence[str]) -> dict[str, str]:
    """Name of each model or set in a table: of folders the end of the path that tells them apart.

    >>> shown_names(["/home/me/ner-bert", "bert-base-cased", "org/bert"])
    {'/home/me/ner-bert': 'ner-bert', 'bert-base-cased': 'bert-base-cased', 'org/bert': 'org/bert'}
    """
    parts = list(dict.fromkeys(part for name in names for part in name.split("+")))
    folders = [part for part in parts if part.startswith((".", "/", "~")) or part.count("/") > 1]
    short = dict(zip(folders, distinct_names(folders), strict=True))
    return {name: "+".join(short.get(part, part) for part in name.split("+")) for name in names}


def cent(value: float) -> str:
    """A share, in per cent."""
    return f"{100 * value:.2f}"


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation of shares, in per cent; "-" without shares.

    >>> spread([0.5, 0.54])
    '52.00 ± 2.83'
    """
    if not values:
        return "-"
    return f"{cent(mean(values))} ± {cent(stdev(values))}" if len(values) > 1 else cent(values[0])


def cell(text: str) -> str:
    """A text for a cell of a Markdown table; names of types may hold HTML, or end the cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; the first row is the header."""
    lines = ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]
