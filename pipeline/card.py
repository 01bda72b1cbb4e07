"""The dataset card of a corpus: README.md as Hugging Face's hub and `datasets` read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from ontology.labels import LabelSet


def dataset_card(
    full: Mapping[str, Any],
    labels: LabelSet,
    columns: Sequence[tuple[str, str]],
    types: Sequence[str],
) -> str:
    """Text of the card: `data/card.md`, filled in.

    Args:
        full: the numbers of `report.json`.
        labels: of the corpus.
        columns: names and types ("string", "list<int32>") of the examples' columns.
        types: names of DBpedia's files that the classes come from; empty for none.
    """
    funnel, balance = full["funnel"], full["balance"]
    balanced, out = funnel["train_after_balancing"], funnel["sentences"]["out"]
    mentions, exponent = funnel["mentions"]["out"], balance["exponent"]
    table = sorted(full["categories"]["table"].items(), key=lambda row: (-row[1]["train"], row[0]))
    counts = {"train": balanced["examples"], "validation": out["validation"]}
    text = (files("pipeline") / "data" / "card.md").read_text(encoding="utf-8")
    return Template(text).substitute(
        language=full["language"],
        data_files=_lines(_data_files(counts)),
        features=_lines(line for name, kind in columns for line in _feature(name, kind, labels)),
        dumps=", ".join(full["dumps"]),
        types=", ".join(types) or "infoboxes of the dump",
        sentence_model=full["sentence_model"],
        train_balanced=f"{balanced['examples']:,}",
        mentions_balanced=f"{balanced['mentions']:,}",
        train=f"{out['train']:,}",
        mentions_train=f"{mentions['train']:,}",
        validation=f"{out['validation']:,}",
        mentions_validation=f"{mentions['validation']:,}",
        mode=balance["mode"],
        alpha=f"{balance['alpha']:g}",
        exponent="not defined" if exponent is None else exponent,
        n_tags=len(labels.tags),
        dropped=_lines(f"| {r} | {n:,} |" for r, n in funnel["sentences"]["dropped"].items()),
        categories=_lines(_category_row(name, row) for name, row in table),
    )


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"\n{line}" for line in lines)


def _category_row(name: str, row: Mapping[str, int]) -> str:
    cells = (row[key] for key in ("entities", "train", "train_balanced", "validation"))
    return f"| {name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |"


def _data_files(examples: Mapping[str, int]) -> list[str]:
    found = [split for split, count in examples.items() if count]
    return [line for split in found for line in (f"  - split: {split}",
                                                 f"    path: {split}/part-*.parquet")]  # fmt: skip


def _feature(name: str, kind: str, labels: LabelSet) -> list[str]:
    """A column as `datasets` reads it; without this it would not know the label names."""
    if name == "ner_tags":
        tags = [f"          '{index}': {tag}" for index, tag in enumerate(labels.tags)]
        return [f"  - name: {name}", "    sequence:", "      class_label:", "        names:", *tags]
    inner = kind.removeprefix("list<").removesuffix(">")
    return [f"  - name: {name}", f"    {'dtype' if inner == kind else 'sequence'}: {inner}"]
