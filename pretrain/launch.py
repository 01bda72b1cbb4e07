r"""Continues pre-training an encoder by entity tagging on a corpus of run_pipeline.py.

    python -m pretrain.launch --corpus demo-corpus/corpus --recipe paper-debug --output demo-bert
    python -m pretrain.launch --corpus enwiki-corpus/corpus --output ner-bert
    torchrun --nproc-per-node 8 -m pretrain.launch --corpus enwiki-corpus/corpus --output ner-bert

Our flags come first; the rest are those of transformers.TrainingArguments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from pretrain import commandline, config

FLAGS: dict[str, dict[str, Any]] = {
    "--corpus": {"required": True, "metavar": "DIR", "help": "folder with labels.json"},
    "--output": {"required": True, "metavar": "DIR", "help": "folder of the checkpoint"},
    "--recipe": {"default": "paper", "metavar": "NAME",
                 "help": f"{', '.join(config.recipe_names())}, or a TOML file (default: paper)"},
    "--base-model": {"metavar": "MODEL",
                     "help": "name on the hub, folder, or `tiny`: made from the corpus"},
    "--categories": {"metavar": "SET",
                     "help": "view of the corpus's categories: corpus (as they are), specific, "
                             "nerbert315, nerbert212, coarse4, or a table 'category TAB category'"},
    "--max-subwords": {"type": int, "metavar": "N",
                       "help": "longer sentences are split outside mentions"},
    "--batch-size": {"type": int, "metavar": "N",
                     "help": "pieces of an optimiser step, over all devices"},
    "--mask-unlinked": {"action": "store_true",
                        "help": "leave names that no link marks out of the loss"},
    "--train-examples": {"type": int, "metavar": "N", "help": "use the first N; 0 for all"},
    "--validation-examples": {"type": int, "metavar": "N",
                              "help": "score checkpoints on N examples, drawn at random"},
    "--cache-dir": {"metavar": "DIR", "help": "for the memory-mapped corpus (default: datasets')"},
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """The command line; flags that it does not know are those of TrainingArguments."""
    return commandline.parser(
        "pretrain.launch", __doc__, FLAGS, argument_default=argparse.SUPPRESS,
        epilog="Every other flag goes to transformers.TrainingArguments, for example "
        "--learning-rate, --num-train-epochs, --bf16, --torch-compile, --report-to tensorboard, "
        "--push-to-hub, --resume-from-checkpoint DIR.",
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    options, rest = parser().parse_known_args(argv)
    commandline.begin()

    def work() -> None:
        flags = vars(options)
        recipe = config.read_recipe(flags.pop("recipe"))
        settings = config.resolve(recipe, flags, config.PretrainSettings)

        from pretrain import run  # loads torch, which takes seconds

        summary = run.run(settings, rest)
        if commandline.is_first():
            print(summary)

    return commandline.run(work, options.output)


if __name__ == "__main__":
    sys.exit(main())
