"""Flags that the commands of fine-tuning share, and what they stand for."""

from __future__ import annotations

import argparse
import os
from typing import Any

from finetune import config
from finetune.labelmaps import NONE, UNIFIED, LabelMap, View
from pipeline.errors import UserError

SEEDS = (555, 666, 777, 888, 999)
"""The first three are those of CrossNER's released code."""

_CHANGES = ("head", "learning_rate", "batch_size", "epochs", "least_steps", "eval_steps",
            "patience", "carry_head", "bf16", "vectors")  # fmt: skip
_INSTEAD = {"type": int, "metavar": "N", "help": "instead of the profile's"}

MODELS: dict[str, dict[str, Any]] = {
    "--models": {"nargs": "+", "required": True, "metavar": "MODEL", "also": "--model",
                 "help": "encoders or pre-trained taggers: names on the hub, or folders; or "
                         "bilstm, with --profile bilstm-crf"},
}  # fmt: skip
TRAINING: dict[str, dict[str, Any]] = {
    "--seeds": {"type": int, "default": 3, "metavar": "N", "help": "runs of each (default: 3)"},
    "--profile": {"default": "nerbert", "metavar": "NAME",
                  "help": f"{', '.join(config.profile_names())} (default: nerbert)"},
    "--head": {"choices": config.HEADS, "help": "instead of the profile's"},
    "--learning-rate": {**_INSTEAD, "type": float, "metavar": "R"},
    "--batch-size": _INSTEAD,
    "--epochs": {**_INSTEAD, "help": "at most, instead of the profile's"},
    "--least-steps": {**_INSTEAD, "help": "steps that it may take, even if that is more epochs"},
    "--eval-steps": {**_INSTEAD, "help": "fewest steps between evaluations"},
    "--patience": {**_INSTEAD, "help": "evaluations without a better dev F1 that end it"},
    "--carry-head": {"action": "store_true", "default": None,
                     "help": "start from the rows of a pre-trained tagger's head whose types are "
                             "nearest, by name or ontology"},
    "--vectors": {"metavar": "FILE", "help": "word vectors for bilstm, `word number number ...`"},
    "--bf16": {"action": "store_true", "default": None,
               "help": "compute in bfloat16; twice as fast where the processor can"},
}  # fmt: skip
DATA: dict[str, dict[str, Any]] = {
    "--label-map": {"metavar": "MAP",
                    "help": "none, unified (LOC, location ... -> location), or a TOML file "
                            "(default: none for one set, unified where sets meet)"},
    "--lowercase": {"action": "store_true", "help": "put train and test in lower case"},
    "--data-root": {"metavar": "DIR", "help": "folder of the named sets (default: NERBERT_DATA)"},
}  # fmt: skip
OUTPUT: dict[str, dict[str, Any]] = {
    "--output": {"default": "report", "metavar": "DIR", "help": "of the report (default: report)"},
}


def use_data_root(options: argparse.Namespace) -> None:
    """Takes --data-root for NERBERT_DATA."""
    if options.data_root:
        os.environ["NERBERT_DATA"] = options.data_root


def fit_settings(options: argparse.Namespace) -> config.FitSettings:
    """The profile, changed by the flags.

    Raises:
        UserError: there is no such profile, or a value is out of range.
    """
    changes = {name: getattr(options, name) for name in _CHANGES
               if getattr(options, name) is not None}  # fmt: skip
    return config.read_profile(options.profile, changes)


def seeds(options: argparse.Namespace) -> tuple[int, ...]:
    """The first of `SEEDS`.

    Raises:
        UserError: there are not so many.
    """
    if not 1 <= options.seeds <= len(SEEDS):
        raise UserError(f"--seeds {options.seeds}: give 1 to {len(SEEDS)}")
    return SEEDS[: options.seeds]


def view(options: argparse.Namespace, several: bool) -> View:
    """How the sets are read.

    Args:
        options: of the command line.
        several: whether sets with their own names for types meet.

    Raises:
        UserError: the label map is no such file, or no such table.
    """
    label_map = options.label_map or (UNIFIED if several else NONE)
    LabelMap.load(label_map)
    return View(label_map, options.lowercase)
