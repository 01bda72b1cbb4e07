"""Settings of DualNER: defaults < recipe < flags; and its variants."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from pipeline.errors import UserError

_LEAST = {
    "epochs": 1, "batch_size": 1, "second_batch_size": 1, "device_batch_size": 1, "eval_steps": 1,
    "warmup_steps": 0, "max_subwords": 8, "source_sentences": 0, "target_sentences": 0,
    "dev_sentences": 0,
}  # fmt: skip


@dataclass(frozen=True)
class DualSettings:
    """How DualNER is trained.

    Source: Zeng et al. 2022, section 3.1 and appendix B.

    Attributes:
        base_model: name on the hub, folder, or `tiny`: made from the text.
        epochs: of each stage.
        batch_size: pieces of an optimiser step of stage 1.
        second_batch_size: of stage 2.
        device_batch_size: pieces that a device takes at once, at most.
        learning_rate: at its highest.
        warmup_steps: in which it rises, at most a tenth of all.
        eval_steps: between evaluations on the dev sets of all languages.
        regularisation: weight of the entity-aware regularisation.
        max_subwords: of a piece, the special ones included.
        source_sentences: of the source that are used; 0 for all.
        target_sentences: unlabelled, of each language; 0 for all.
        dev_sentences: of each language; 0 for all.
        bf16: whether the encoder computes in bfloat16.
    """

    base_model: str = "xlm-roberta-base"
    epochs: int = 8
    batch_size: int = 128
    second_batch_size: int = 500
    device_batch_size: int = 125
    learning_rate: float = 2e-5
    warmup_steps: int = 300
    eval_steps: int = 250
    regularisation: float = 0.5
    max_subwords: int = 128
    source_sentences: int = 0
    target_sentences: int = 0
    dev_sentences: int = 0
    bf16: bool = False

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise UserError(f"{name} = {getattr(self, name)}: give {least} or more")
        if not self.learning_rate > 0:
            raise UserError(f"learning_rate = {self.learning_rate}: give more than 0")
        if self.regularisation < 0:
            raise UserError(f"regularisation = {self.regularisation}: give 0 or more")

    def to_json(self) -> dict[str, Any]:
        """JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True)
class Variant:
    """What a model learns from.

    Attributes:
        gold: heads that learn the labels of the source: "sequence", "span".
        pseudo: what a second stage learns from: "dual", each head what the other one says; "self",
            each head its own scores; nothing without a second stage.
        regularised: whether mentions of a type are pulled together across languages.
        target: whether the second stage sees text of the target languages.
        published: what the paper's tables call it.
    """

    gold: tuple[str, ...] = ("sequence", "span")
    pseudo: str = ""
    regularised: bool = False
    target: bool = True
    published: str = ""


VARIANTS = {
    "sequence": Variant(("sequence",), published="CLA"),
    "span": Variant(("span",), published="SPAN"),
    "multitask": Variant(published="MLT"),
    "dual": Variant(pseudo="dual", regularised=True, published="DualNER"),
    "no-regularisation": Variant(pseudo="dual", published="w/o MSE"),
    "self-teaching": Variant(pseudo="self", regularised=True, published="w/ selfKL"),
    "no-target": Variant(pseudo="dual", regularised=True, target=False, published="w/o TRG"),
}
"""The model, its baselines, and its ablations. Source: Zeng et al. 2022, sections 3.2 and 3.3."""


def recipe_names() -> list[str]:
    """Names of the shipped recipes."""
    found = (files("finetune") / "recipes").iterdir()
    return sorted(path.name.removesuffix(".toml") for path in found)


def read_recipe(name: str, changes: Mapping[str, Any]) -> DualSettings:
    """Settings of a shipped recipe, or of a TOML file, with changes.

    Raises:
        UserError: there is no such recipe, or a value is out of range.
    """
    shipped = name in recipe_names()
    path = Path(str(files("finetune") / "recipes" / f"{name}.toml")) if shipped else Path(name)
    if not path.is_file():
        raise UserError(
            f"--recipe {name}: no such recipe; use {', '.join(recipe_names())}, or a TOML file"
        )
    try:
        values = {**tomllib.loads(path.read_text(encoding="utf-8")), **changes}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no TOML: {error}") from error
    known = {entry.name for entry in fields(DualSettings)}
    if unknown := sorted(set(values) - known):
        raise UserError(f"{path}: unknown key {unknown[0]!r}; there are {', '.join(sorted(known))}")
    return DualSettings(**values)
