r"""Fine-tunes taggers on named-entity sets and scores them on their test splits.

    python -m finetune.evaluate --model ner-bert --data crossner/politics --seeds 5
    python -m finetune.evaluate --model bert-base-cased ner-bert --data 'crossner/*' \
        --setting source-target --source crossner/conll2003 --output report

Every run is kept in --output; the same command goes on with those that are missing.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from finetune import config
from finetune.report import markdown
from finetune.sets import expand, registry, sentences
from pipeline.errors import UserError
from pretrain import commandline

_LOGGER = logging.getLogger("nerbert")
_CROSSNER_SEEDS = (555, 666, 777, 888, 999)

FLAGS: dict[str, dict[str, Any]] = {
    "--model": {"nargs": "+", "required": True, "metavar": "MODEL",
                "help": "encoders or pre-trained taggers: names on the hub, or folders"},
    "--data": {"nargs": "+", "required": True, "metavar": "SET",
               "help": "names of sets (patterns too), folders with train, dev and test files"},
    "--setting": {"choices": config.SETTINGS, "default": "target",
                  "help": "fine-tune on the target; on the source, then the target; on both"},
    "--source": {"nargs": "+", "default": [], "metavar": "SET", "help": "source sets"},
    "--seeds": {"type": int, "default": 3, "metavar": "N", "help": "runs of each (default: 3)"},
    "--profile": {"default": "nerbert", "metavar": "NAME",
                  "help": f"{', '.join(config.profile_names())} (default: nerbert)"},
    "--shots": {"type": int, "default": 0, "metavar": "N",
                "help": "train on N sentences drawn at random; 0 for all"},
    "--learning-rate": {"type": float, "metavar": "R", "help": "instead of the profile's"},
    "--batch-size": {"type": int, "metavar": "N", "help": "instead of the profile's"},
    "--epochs": {"type": int, "metavar": "N", "help": "at most, instead of the profile's"},
    "--patience": {"type": int, "metavar": "N", "help": "instead of the profile's"},
    "--data-root": {"metavar": "DIR", "help": "folder of the named sets (default: NERBERT_DATA)"},
    "--output": {"default": "report", "metavar": "DIR", "help": "of the report (default: report)"},
}  # fmt: skip

_CHANGES = ("learning_rate", "batch_size", "epochs", "patience")


@dataclass(frozen=True)
class Run:
    """One cell of the table: a model, a set, a seed."""

    model: str
    data: str
    setting: str
    source: tuple[str, ...]
    shots: int
    settings: config.FitSettings

    def to_json(self) -> dict[str, Any]:
        settings = self.settings.to_json()
        return {**vars(self), "source": list(self.source), "settings": settings}

    @property
    def file(self) -> str:
        """Name of the file that keeps its result."""
        digest = blake2b(json.dumps(self.to_json(), sort_keys=True).encode(), digest_size=8)
        return f"{digest.hexdigest()}.json"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    return commandline.parser("finetune.evaluate", __doc__, FLAGS)


def planned(options: argparse.Namespace) -> list[Run]:
    """The runs that the flags ask for; their data is looked for before the first is run.

    Raises:
        UserError: a value is out of range, or data is missing.
    """
    changes = {name: getattr(options, name) for name in _CHANGES
               if getattr(options, name) is not None}  # fmt: skip
    settings = config.read_profile(options.profile, changes)
    if options.setting != "target" and not options.source:
        raise UserError(f"--setting {options.setting}: name the --source")
    if not 1 <= options.seeds <= len(_CROSSNER_SEEDS):
        raise UserError(f"--seeds {options.seeds}: give 1 to {len(_CROSSNER_SEEDS)}")
    data, source = expand(options.data), tuple(expand(options.source))
    for name in data:
        for split in ("train", "test"):
            sentences(name, split)
    for name in source:
        sentences(name, "train")
    return [
        Run(model, name, options.setting, source if options.setting != "target" else (),
            options.shots, replace(settings, seed=seed))
        for model in options.model for name in data for seed in _CROSSNER_SEEDS[: options.seeds]
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    commandline.begin()
    options = parser().parse_args(argv)
    if options.data_root:
        os.environ["NERBERT_DATA"] = options.data_root
    try:
        runs = planned(options)
        results = [_result(run, Path(options.output), number, len(runs))
                   for number, run in enumerate(runs, start=1)]  # fmt: skip
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    table = markdown(results)
    report = {"runs": results, "sets": {run.data: _facts(run.data) for run in runs}}
    output = Path(options.output)
    (output / "report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    (output / "report.md").write_text(table, encoding="utf-8")
    print(table)
    return 0


def _facts(name: str) -> dict[str, Any]:
    known = registry().get(name)
    return {} if known is None else {"citation": known.citation, "licence": known.licence}


def _result(run: Run, output: Path, number: int, of: int) -> dict[str, Any]:
    """The result of a run, from its file where it was run before."""
    path = output / "runs" / run.file
    if path.is_file():
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    from finetune.scoring import scored  # loads torch, which takes seconds

    result = {**run.to_json(), **scored(run)}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)
    _LOGGER.info("%d of %d: %s on %s, seed %d: F1 %.4f in %.0f s", number, of, run.model, run.data,
                 run.settings.seed, result["strict"]["f1"], result["seconds"])  # fmt: skip
    return result


if __name__ == "__main__":
    sys.exit(main())
