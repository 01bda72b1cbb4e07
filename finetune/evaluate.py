r"""Fine-tunes taggers on named-entity sets and scores them on their test splits.

    python -m finetune.evaluate --model ner-bert --data crossner/politics --seeds 5
    python -m finetune.evaluate --models bert-base-cased ner-bert --data 'crossner/*' \
        --setting source-target --source conll2003-crossner --output report
    python -m finetune.evaluate --models bert-base-cased ner-bert --data crossner/ai \
        --shots 10 25 50 all
    python -m finetune.evaluate --model tagger --data btc --setting zero-shot --label-map unified

Every run is kept in --output; the same command goes on with those that are missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from finetune import config, flags
from finetune.report import Report
from finetune.runs import ALL, Kept, Run, shots_of
from finetune.sets import differ, expand, sentences
from pipeline.errors import UserError
from pretrain import commandline

FLAGS: dict[str, dict[str, Any]] = {
    **flags.MODELS,
    "--data": {"nargs": "+", "required": True, "metavar": "SET",
               "help": "names of sets (patterns too), hf:NAME, folders with train, dev and test"},
    "--setting": {"choices": config.SETTINGS, "default": "target",
                  "help": "learn the target; the source, then the target; both; the source alone "
                          "(zero-shot; without --source the model is a tagger already)"},
    "--source": {"nargs": "+", "default": [], "metavar": "SET", "help": "source sets"},
    "--shots": {"nargs": "+", "default": [ALL], "metavar": "N",
                "help": "train sentences, drawn at random: numbers, 25%%, all (default: all)"},
    **flags.TRAINING,
    **flags.DATA,
    "--check-contamination": {"metavar": "CORPUS",
                              "help": "scores also without test sentences that are in this corpus "
                                      "of run_pipeline.py, or text file"},
    **flags.OUTPUT,
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """The command line."""
    return commandline.parser("finetune.evaluate", __doc__, FLAGS)


def planned(options: argparse.Namespace) -> list[Run]:
    """All runs, in order; their data has been read once.

    Raises:
        UserError: a value is out of range, or data is missing.
    """
    settings = flags.fit_settings(options)
    data, source = expand(options.data), tuple(expand(options.source))
    if options.setting in ("source-target", "joint") and not source:
        raise UserError(f"--setting {options.setting}: name the --source")
    seeds = flags.seeds(options)
    if options.setting == "target":
        source = ()
    if options.setting == "zero-shot":
        if options.shots != [ALL]:
            raise UserError("--shots: zero-shot learns no target sentences")
        seeds = seeds if source else seeds[:1]  # nothing is learnt, so nothing is drawn
    view = flags.view(options, several=options.setting != "target")
    for name in data:
        _check(name, options.setting)
    for name in source:
        sentences(name, "train")
    for text in options.shots:
        shots_of(text, 1)
    return [
        Run(model, name, replace(settings, seed=seed), options.setting, source, text, view)
        for name in data for text in options.shots for model in options.models for seed in seeds
    ]  # fmt: skip


def _check(name: str, setting: str) -> None:
    needed = ("test",) if setting == "zero-shot" else ("train", "test")
    for split in needed:
        sentences(name, split)
    if len(needed) == 2 and not differ(name):
        raise UserError(f"{name}: train and test are the same; give a folder with both")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    commandline.begin()
    options = parser().parse_args(argv)
    flags.use_data_root(options)
    return commandline.run(lambda: _evaluate(options), options.output)


def _evaluate(options: argparse.Namespace) -> None:
    runs = planned(options)
    output = Path(options.output)
    kept = Kept(output / "runs")
    results = [kept.result(run, scored_run, f"{number} of {len(runs)}: ")
               for number, run in enumerate(runs, start=1)]  # fmt: skip
    report = Report(results, kept, options.check_contamination)
    report.write(output)
    print(report.table())


def scored_run(run: Run) -> Any:
    """Scores and predictions of a run."""
    from finetune.scoring import scored  # loads torch, which takes seconds

    return scored(run)


if __name__ == "__main__":
    sys.exit(main())
