"""The dataset card of a corpus: README.md as Hugging Face's hub and `datasets` read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ontology.labels import LabelSet


def dataset_card(
    full: Mapping[str, Any], labels: LabelSet, columns: Sequence[tuple[str, str]], language: str,
    types: Sequence[str],
) -> str:  # fmt: skip
    """Text of the card.

    Args:
        full: the numbers of `report.json`.
        labels: of the corpus.
        columns: names and types ("string", "list<int32>") of the examples' columns.
        language: code.
        types: names of DBpedia's files that the classes come from; empty for none.
    """
    funnel, balance = full["funnel"], full["balance"]
    train, out = funnel["train_after_balancing"], funnel["sentences"]["out"]
    table = full["categories"]["table"]
    rows = [
        f"| {name} | {row['entities']:,} | {row['train']:,} | {row['train_balanced']:,} "
        f"| {row['validation']:,} |"
        for name, row in sorted(table.items(), key=lambda item: (-item[1]["train"], item[0]))
    ]
    dropped = [f"| {reason} | {n:,} |" for reason, n in funnel["sentences"]["dropped"].items()]
    sources = ", ".join(types) if types else "infoboxes of the dump"
    return "\n".join([
        "---",
        f"language: [{language}]",
        "license: cc-by-sa-4.0",
        "task_categories: [token-classification]",
        "tags: [named-entity-recognition, weak-supervision, wikipedia, dbpedia]",
        "configs:",
        "- config_name: default",
        "  data_files:",
        *(_data_files("train", train["examples"])),
        *(_data_files("validation", out["validation"])),
        "dataset_info:",
        "  features:",
        *(line for name, kind in columns for line in _feature(name, kind, labels)),
        "---",
        "",
        f"# Weakly-labelled named entities of Wikipedia ({language})",
        "",
        "Every mention is a link that an editor of Wikipedia made. Its category is the DBpedia "
        "class of the page it leads to, `ENTITY` where that has none. Words without a link are not "
        "labelled, even where they name an entity.",
        "",
        f"Made from {', '.join(full['dumps'])}; classes from {sources}; sentences by Punkt "
        f"(`{full['sentence_model']}`).",
        "",
        "| | examples | mentions |",
        "|---|---|---|",
        f"| train, balanced | {train['examples']:,} | {train['mentions']:,} |",
        f"| train, before balancing | {out['train']:,} | {funnel['mentions']['out']['train']:,} |",
        f"| validation | {out['validation']:,} | {funnel['mentions']['out']['validation']:,} |",
        "",
        f"Balancing: {balance['mode']}, alpha {balance['alpha']:g}, achieved exponent "
        f"{balance['exponent'] if balance['exponent'] is not None else 'not defined'}.",
        "",
        "![mentions of each category](categories.png)",
        "",
        "## Columns",
        "",
        f"`tokens` and `ner_tags` (strict IOB2, {len(labels.tags)} tags, also in `labels.json`); "
        "`targets`, the page that each mention links to; `token_starts`, the first character of "
        "each token, counted from `start`; `page_id`, `title`, `revision_id`, `sentence`, `start`, "
        "`end`: where in which revision the sentence stands; `copy`, the number of a repeated "
        "example; `id` is `page_id:sentence:copy`.",
        "",
        "## Sentences dropped",
        "",
        "| reason | sentences |",
        "|---|---|",
        *dropped,
        "",
        "![funnel](funnel.png)",
        "",
        "## Categories",
        "",
        "| category | linked entities | train | train, balanced | validation |",
        "|---|---|---|---|---|",
        *rows,
        "",
        "## Licence and attribution",
        "",
        "Text of Wikipedia, by its authors, under CC BY-SA 4.0 (before June 2023: CC BY-SA 3.0) "
        "and GFDL; classes of DBpedia, CC BY-SA 3.0. The revision of an example, with its authors, "
        f"is at `https://{language}.wikipedia.org/w/index.php?title=TITLE&oldid=REVISION_ID`, from "
        "its columns `title` and `revision_id`. What you make from it is under the same licence.",
        "",
    ])  # fmt: skip


def _data_files(split: str, examples: int) -> list[str]:
    return [f"  - split: {split}", f"    path: {split}/part-*.parquet"] if examples else []


def _feature(name: str, kind: str, labels: LabelSet) -> list[str]:
    """A column as `datasets` reads it; without this it would not know the label names."""
    if name == "ner_tags":
        tags = [f"          '{index}': {tag}" for index, tag in enumerate(labels.tags)]
        return [f"  - name: {name}", "    sequence:", "      class_label:", "        names:", *tags]
    inner = kind.removeprefix("list<").removesuffix(">")
    return [f"  - name: {name}", f"    {'dtype' if inner == kind else 'sequence'}: {inner}"]
