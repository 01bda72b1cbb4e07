r"""DualNER: zero-shot cross-lingual taggers by dual teaching of tags and spans.

    python -m finetune.dual --base-model xlm-roberta-base --source wikiann/en \
        --targets wikiann/de wikiann/es wikiann/nl wikiann/ru --output dual
    python -m finetune.dual --recipe dualner-debug --source wikiann/en --targets wikiann/es \
        --variant all --seeds 3 --source-share 0.2 1 --output dual

Every model is kept in --output; the same command goes on with those that are missing, from the last
checkpoint. Each is a tagger for finetune.predict, finetune.evaluate and finetune.demo.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from finetune import dual_config, flags
from finetune.dual_config import VARIANTS, DualSettings
from pipeline.errors import UserError
from pretrain import commandline

ALL = "all"
_CHANGES = ("base_model", "epochs", "batch_size", "second_batch_size", "learning_rate",
            "eval_steps", "regularisation", "source_sentences", "target_sentences",
            "dev_sentences", "bf16")  # fmt: skip
_INSTEAD: dict[str, Any] = {"type": int, "metavar": "N", "help": "instead of the recipe's"}

FLAGS: dict[str, dict[str, Any]] = {
    "--source": {"required": True, "metavar": "SET", "help": "labelled set"},
    "--targets": {"nargs": "+", "required": True, "metavar": "SET",
                  "help": "sets of other languages; of their train split only the words are used"},
    "--target-text": {"nargs": "+", "default": [], "metavar": "SET=PATH",
                      "help": "text instead of a target's train split: one sentence a line, or the "
                              "output of run_pipeline.py"},
    "--variant": {"nargs": "+", "default": ["dual"], "choices": [*VARIANTS, ALL],
                  "help": f"{', '.join(VARIANTS)}, or all (default: dual, with multitask)"},
    "--source-share": {"nargs": "+", "type": float, "default": [1.0], "metavar": "S",
                       "help": "shares of the source whose labels are used; the rest is text "
                               "(default: 1)"},
    "--seeds": {"type": int, "default": 1, "metavar": "N", "help": "runs of each (default: 1)"},
    "--recipe": {"default": "dualner-base", "metavar": "NAME",
                 "help": f"{', '.join(dual_config.recipe_names())}, or a TOML file "
                         "(default: dualner-base)"},
    "--base-model": {"metavar": "MODEL",
                     "help": "name on the hub, folder, or `tiny`: made from the text"},
    "--epochs": {**_INSTEAD, "help": "of each stage, instead of the recipe's"},
    "--batch-size": {**_INSTEAD, "help": "of stage 1, instead of the recipe's"},
    "--second-batch-size": {**_INSTEAD, "help": "of stage 2, instead of the recipe's"},
    "--learning-rate": {**_INSTEAD, "type": float, "metavar": "R"},
    "--eval-steps": _INSTEAD,
    "--regularisation": {**_INSTEAD, "type": float, "metavar": "W"},
    "--source-sentences": {**_INSTEAD, "help": "that are used, 0 for all"},
    "--target-sentences": {**_INSTEAD, "help": "of each language, 0 for all"},
    "--dev-sentences": {**_INSTEAD, "help": "of each language, 0 for all"},
    "--bf16": flags.TRAINING["--bf16"],
    **flags.DATA,
    "--output": {**flags.OUTPUT["--output"], "default": "dual",
                 "help": "of models and report (default: dual)"},
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """The command line."""
    return commandline.parser("finetune.dual", __doc__, FLAGS)


def settings_of(options: argparse.Namespace) -> DualSettings:
    """The recipe, changed by the flags.

    Raises:
        UserError: a value is out of range, or there is no such recipe.
    """
    for share in options.source_share:
        if not 0 < share <= 1:
            raise UserError(f"--source-share {share:g}: give more than 0, at most 1")
    changes = {name: getattr(options, name) for name in _CHANGES
               if getattr(options, name) is not None}  # fmt: skip
    return dual_config.read_recipe(options.recipe, changes)


def variants_of(options: argparse.Namespace) -> list[str]:
    """The variants, in the order of the paper's tables; a second stage needs the multitask one."""
    wanted = set(VARIANTS) if ALL in options.variant else set(options.variant)
    if any(VARIANTS[name].pseudo for name in wanted):
        wanted.add("multitask")
    return [name for name in VARIANTS if name in wanted]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    commandline.begin()
    options = parser().parse_args(argv)
    flags.use_data_root(options)
    return commandline.run(lambda: _teach(options), options.output)


def _teach(options: argparse.Namespace) -> None:
    settings, seeds = settings_of(options), flags.seeds(options)
    view = flags.view(options, several=False)

    from finetune import dual_report, dual_runs  # load torch, which takes seconds

    school = dual_runs.School(Path(options.output), options.source, tuple(options.targets),
                              tuple(options.target_text), settings, view)  # fmt: skip
    names = variants_of(options)
    results = [school.result(name, share, seed) for share in options.source_share
               for seed in seeds for name in names]  # fmt: skip
    print(dual_report.written(results, Path(options.output)))


if __name__ == "__main__":
    sys.exit(main())
