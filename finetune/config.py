"""Settings of a fine-tuning: defaults < profile < flags."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from typing import Any

from pipeline.errors import UserError

SETTINGS = ("target", "source-target", "joint", "zero-shot")
"""How source and target data come together."""

HEADS = ("linear", "crf")
"""What tags the words: a linear layer, or a conditional random field above it."""


@dataclass(frozen=True)
class FitSettings:
    """How a tagger is fine-tuned.

    The defaults are NER-BERT's (Liu et al. 2021, arXiv:2112.00405, section 4.4): Adam with learning
    rate 5e-5, batch 16; it does not say for how many epochs.

    Attributes:
        head: of `HEADS`.
        learning_rate: at its highest.
        batch_size: pieces of an optimiser step.
        epochs: at most.
        least_steps: optimiser steps that the training may take however many epochs that is; a few
            sentences are seen often enough.
        eval_steps: evaluations are an epoch apart, but never fewer steps than this.
        patience: evaluations without a better dev F1 that end the training.
        source_epochs: on the source set, before the target.
        source_times: how often the target stands beside the source in `joint`; 0 for
            |source| / |target|.
        schedule: of the learning rate, a name of transformers.
        warmup_steps: in which it rises.
        weight_decay: of AdamW.
        max_subwords: of a piece, the special ones included.
        carry_head: whether a pre-trained tagger lends the rows of its own head to the types that
            are nearest (`finetune.labelmaps.nearest`); else the head starts afresh.
        carry_optimizer: whether `source-target` keeps one head over the types of both, and the
            optimiser's state, when it goes from source to target; else only the rows of the head.
        bf16: whether the encoder computes in bfloat16; twice as fast on processors that can.
        vectors: file of word vectors for the BiLSTM; random ones if empty.
        seed: of head, dropout and order.
    """

    head: str = "linear"
    learning_rate: float = 5e-5
    batch_size: int = 16
    epochs: int = 100
    least_steps: int = 0
    eval_steps: int = 1
    patience: int = 8
    source_epochs: int = 2
    source_times: int = 0
    schedule: str = "constant"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_subwords: int = 128
    carry_head: bool = False
    carry_optimizer: bool = False
    bf16: bool = False
    vectors: str = ""
    seed: int = 555

    def __post_init__(self) -> None:
        for name in ("batch_size", "epochs", "eval_steps", "patience", "source_epochs"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} = {getattr(self, name)}: give 1 or more")
        if self.head not in HEADS:
            raise UserError(f"head = {self.head}: use {' or '.join(HEADS)}")
        if self.max_subwords < 8:
            raise UserError(f"max_subwords = {self.max_subwords}: give 8 or more")
        if not self.learning_rate > 0:
            raise UserError(f"learning_rate = {self.learning_rate}: give more than 0")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def profile_names() -> list[str]:
    """Names of the shipped profiles."""
    folder = files("finetune") / "profiles"
    return sorted(
        p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")
    )


def read_profile(name: str, changes: Mapping[str, Any] | None = None) -> FitSettings:
    """Settings of a shipped profile, with changes.

    Raises:
        UserError: there is no such profile, or a value is out of range.
    """
    if name not in profile_names():
        raise UserError(f"--profile {name}: no such profile; use {', '.join(profile_names())}")
    text = (files("finetune") / "profiles" / f"{name}.toml").read_text(encoding="utf-8")
    values = {**tomllib.loads(text), **(changes or {})}
    known = {entry.name for entry in fields(FitSettings)}
    if unknown := sorted(set(values) - known):
        raise UserError(f"unknown setting {unknown[0]!r}; there are {', '.join(sorted(known))}")
    return FitSettings(**values)
