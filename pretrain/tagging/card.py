"""The model card of a checkpoint: a README.md that Hugging Face's hub reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nerbert.corpus import report_of
from nerbert.reports import filled
from pretrain.settings import TINY


def model_card(record: Mapping[str, Any], corpus: Path) -> str:
    """Text of the card: `data/card.md`, filled in.

    Args:
        record: content of `pretrain.json` of a finished run.
        corpus: folder of the corpus.
    """
    settings, training, results = record["settings"], record["training"], record["results"]
    facts = report_of(corpus)
    base = settings["base_model"]
    own = base == TINY or Path(base).exists()
    scores = results["validation"]
    return filled(
        "pretrain.tagging",
        name=record["name"],
        language=facts.get("language") or "und",
        base_model_line="" if own else f"\nbase_model: {base}",
        base_model="A tiny BERT" if base == TINY else f"`{Path(base).name if own else base}`",
        dataset=", ".join(facts.get("dumps", [])) or corpus.name,
        n_categories=record["categories"],
        categories=settings["categories"],
        max_subwords=settings["max_subwords"],
        batch_size=settings["batch_size"],
        unlinked="ignored in the loss" if settings["mask_unlinked"] else "labelled O",
        **{
            key: f"{results['train'][key]:,}"
            for key in ("sentences", "pieces", "split", "words_left_out")
        },
        validation=f"{results['validation_pieces']:,}",
        steps=f"{results['steps']:,}",
        epochs=f"{results['epochs']:g}",
        subwords_per_s=f"{results['subwords_per_s']:,}",
        padding=f"{results['padding']:.1%}",
        optimizer=training["optim"],
        learning_rate=f"{training['learning_rate']:g}",
        scheduler=training["lr_scheduler_type"],
        seed=training["seed"],
        **{key: f"{value:.4f}" for key, value in scores.items()},
    )
