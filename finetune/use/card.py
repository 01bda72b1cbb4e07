"""The model card of a tagger that `nerbert train` made."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from finetune.data.registry import known_set
from finetune.options import TrainOptions
from finetune.scoring.tables import cell
from nerbert.reports import filled, without_paths
from nerbert.text.columns import Sentence

_EXAMPLES, _LONGEST = 2, 30
"""Sentences of the data on a card, and their most tokens."""


def model_card(
    options: TrainOptions,
    record: Mapping[str, Any],
    results: Mapping[str, Any],
    rows: Sequence[Sentence],
) -> str:
    """Text of the card.

    Args:
        options: options of the training.
        record: what the tagger is made from.
        results: scores and counts.
        rows: sentences with the types that it finds.
    """
    examples = _examples(rows)
    name, record = Path(options.output).name, without_paths(record)
    base = options.base_model
    is_local = Path(base).exists()
    base_name = Path(base).name if is_local else base
    sets = [named_set for name in record["data"] if (named_set := known_set(name))]
    languages = sorted({named_set.language for named_set in sets})
    data = ModelCardData(
        # Only what somebody stated: folders of one's own have neither.
        language=languages if len(sets) == len(record["data"]) else None,
        license=_licence(base),
        library_name="transformers",
        pipeline_tag="token-classification",
        tags=["named-entity-recognition", "nerbert"],
        base_model=None if is_local else base,
        model_name=name,
        widget=[{"text": text} for text in examples],
        eval_results=_results(record, results),
    )
    body = filled(
        "finetune",
        "tagger_card.md",
        name=name,
        example=examples[0].replace('"', "'"),
        command=shlex.join(
            ["nerbert", "train", "--base-model", base_name, "--data", *record["data"]]
        ),
        base_model=f"`{base_name}`",
        data="\n".join(_data_line(name) for name in record["data"]),
        counts=", ".join(f"{n:,} {split}" for split, n in results["sentences"].items()),
        steps=f"{results['steps']:,}",
        settings="\n".join(
            f"| `{key}` | {cell(str(value))} |" for key, value in record["settings"].items()
        ),
        scores=_score_table(results),
        versions=", ".join(f"{key} {value}" for key, value in results["versions"].items()),
    )
    return str(ModelCard(f"---\n{data.to_yaml()}\n---\n\n{body}"))


def _licence(encoder: str) -> str | None:
    """The licence that a local encoder's card states: the weights are made from it."""
    path = Path(encoder, "README.md")
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    header = re.match(r"---\n(.*?)\n---", text, re.DOTALL)
    line = header and re.search(r"^license:\s*([\w.+-]+)$", header[1], re.MULTILINE)
    return line[1] if line else None


def _examples(rows: Sequence[Sentence]) -> list[str]:
    """Texts of the short sentences with the most types."""
    short = [row for row in rows if len(row.tokens) <= _LONGEST] or rows[:1]
    most = sorted(short, key=lambda row: -len({tag[2:] for tag in row.tags if tag[0] == "B"}))
    return [" ".join(row.tokens) for row in most[:_EXAMPLES]]


def _results(record: Mapping[str, Any], results: Mapping[str, Any]) -> list[EvalResult] | None:
    if "test" not in results:
        return None
    name = ", ".join(record["data"])
    return [
        EvalResult(
            task_type="token-classification",
            dataset_type=name,
            dataset_name=name,
            dataset_split="test",
            metric_type=metric,
            metric_value=round(results["test"]["strict"][metric], 4),
        )
        for metric in ("f1", "precision", "recall")
    ]


def _data_line(name: str) -> str:
    named_set = known_set(name)
    return f"- {name}" + (
        f" ({named_set.citation}; licence: {named_set.licence})" if named_set else ""
    )


def _score_table(results: Mapping[str, Any]) -> str:
    """A table of the scores of each type, on the test split or else on the dev split."""
    split = "test" if "test" in results else "dev"
    if split not in results:
        return "There were no sentences to score."
    scores = results[split]
    low, high = scores["intervals"]["micro_95"]
    rows = [("all", scores["strict"]), *scores["per_type"].items()]
    lines = [
        f"{split} split, strict (seqeval, IOB2); 95 % interval of the F1 {low:.4f} to {high:.4f}:",
        "",
        "| type | F1 | precision | recall | mentions |",
        "|---|---|---|---|---|",
    ]
    for name, row in rows:
        cells = (*(f"{row[key]:.4f}" for key in ("f1", "precision", "recall")), f"{row['gold']:,}")
        lines.append(f"| {cell(name)} | {' | '.join(cells)} |")
    return "\n".join(lines)
