r"""Continues pre-training an encoder by masked language modelling on a corpus of a domain.

    python -m pretrain.dapt --corpus music-corpus --level integrated --masking span \
        --base-model bert-base-cased --output bert-music
    python -m pretrain.dapt --corpus music-corpus --fraction 0.01 0.25 0.5 1 --output bert-music

Our flags come first; the rest are those of transformers.TrainingArguments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.domains import LEVELS
from pipeline.errors import UserError
from pretrain import commandline, config

MASKINGS = ("token", "span")
"""Ways to choose what is hidden: each sub-word by itself, or moved together by `span_mask`."""

FLAGS: dict[str, dict[str, Any]] = {
    "--corpus": {"required": True, "metavar": "DIR",
                 "help": "folder that `run_pipeline.py domain` wrote"},
    "--output": {"required": True, "metavar": "DIR", "help": "folder of the checkpoint"},
    "--profile": {"default": "paper", "metavar": "NAME",
                  "help": f"{', '.join(config.recipe_names('profiles'))}, or a TOML file "
                          "(default: paper)"},
    "--base-model": {"metavar": "MODEL",
                     "help": "name on the hub, folder, or `tiny`: made from the corpus"},
    "--level": {"choices": list(LEVELS), "help": "sentences that are learnt (default: integrated)"},
    "--masking": {"choices": MASKINGS, "help": "what is hidden (default: span)"},
    "--rate": {"type": float, "metavar": "R", "help": "share of the sub-words that is hidden"},
    "--fraction": {"type": float, "nargs": "+", "metavar": "F",
                   "help": "share of the blocks that is learnt; of several, one checkpoint each, "
                           "in OUTPUT/fraction-F (default: 1)"},
    "--max-subwords": {"type": int, "metavar": "N", "help": "of a block"},
    "--batch-size": {"type": int, "metavar": "N",
                     "help": "blocks of an optimiser step, over all devices"},
    "--new-head": {"action": "store_true",
                   "help": "start the language-model head from random weights where the base model "
                           "has none"},
    "--cache-dir": {"metavar": "DIR", "help": "for the memory-mapped corpus (default: datasets')"},
}  # fmt: skip


@dataclass(frozen=True)
class DaptSettings(config.Settings):
    """What decides a domain-adaptive pre-training.

    Source: Liu et al. 2021 (CrossNER), arXiv:2012.04373, section 3.2; Gururangan et al. 2020.

    Attributes:
        level: sentences that are learnt, of `pipeline.domains.LEVELS`.
        masking: of `MASKINGS`.
        rate: share of the sub-words that is hidden.
        fraction: share of the blocks that is learnt.
        new_head: whether a missing language-model head starts from random weights.
    """

    max_subwords: int = 512
    batch_size: int = 8
    level: str = "integrated"
    masking: str = "span"
    rate: float = 0.15
    fraction: float = 1.0
    new_head: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rate", "fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise UserError(f"--{name} {getattr(self, name)}: give more than 0, at most 1")


def parser() -> argparse.ArgumentParser:
    """The command line; flags that it does not know are those of TrainingArguments."""
    return commandline.parser(
        "pretrain.dapt", __doc__, FLAGS, argument_default=argparse.SUPPRESS,
        epilog="Every other flag goes to transformers.TrainingArguments, for example "
        "--learning-rate, --num-train-epochs, --bf16, --report-to tensorboard, "
        "--resume-from-checkpoint DIR.",
    )  # fmt: skip


def planned(options: argparse.Namespace) -> list[DaptSettings]:
    """Settings of each fraction.

    Raises:
        UserError: a value is out of range, or there is no such profile.
    """
    flags = vars(options)
    fractions = flags.pop("fraction", None)
    profile = config.read_recipe(flags.pop("profile"), DaptSettings, "profiles", "--profile")
    settings = config.resolve(profile, flags, DaptSettings)
    if fractions is None:
        return [settings]
    if len(fractions) == 1:
        return [replace(settings, fraction=fractions[0])]
    return [
        replace(settings, fraction=share, output=str(Path(settings.output) / f"fraction-{share:g}"))
        for share in fractions
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    options, rest = parser().parse_known_args(argv)
    commandline.begin()

    def work() -> None:
        runs = planned(options)

        from pretrain import mlm  # loads torch, which takes seconds

        for settings in runs:
            summary = mlm.run(settings, rest)
            if commandline.is_first():
                print(summary)

    return commandline.run(work, options.output)


if __name__ == "__main__":
    sys.exit(main())
