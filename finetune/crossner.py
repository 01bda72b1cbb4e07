r"""The experiments of CrossNER: domain-adaptive pre-training, then fine-tuning, by domain.

    python -m finetune.crossner --base-model bert-base-cased --dapt bert-music --domain music \
        --report out
    python -m finetune.crossner --base-model bert-base-cased --corpus music-corpus --domain music \
        --masking token span --level domain entity task integrated --report out

--dapt takes checkpoints of pretrain.dapt; --corpus makes those that are missing, in the report's
folder. Every run is kept there; the same command goes on with those that are missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from finetune import flags
from finetune.evaluate import scored_run
from finetune.runs import ALL, Kept, Run, shots_of
from finetune.sets import sentences
from pipeline.domains import LEVELS
from pipeline.errors import UserError
from pretrain import commandline
from pretrain.config import read_recipe, recipe_names, resolve
from pretrain.dapt import MASKINGS, DaptSettings

DOMAINS = ("politics", "science", "music", "literature", "ai")
SETTINGS = ("target", "source-target", "joint")
PROFILES = {"paper": "crossner-paper", "crossner-code": "crossner-code"}
RECORD = "pretrain.json"

FLAGS: dict[str, dict[str, Any]] = {
    "--base-model": {"required": True, "metavar": "MODEL",
                     "help": "encoder without domain-adaptive pre-training: name, or folder"},
    "--domain": {"nargs": "+", "required": True, "choices": DOMAINS, "help": "domains"},
    "--dapt": {"nargs": "+", "default": [], "metavar": "DIR",
               "help": "checkpoints of pretrain.dapt; each knows its domain, masking and level"},
    "--corpus": {"nargs": "+", "default": [], "metavar": "DIR",
                 "help": "folders of `run_pipeline.py domain`; pre-trains on them what is missing"},
    "--masking": {"nargs": "+", "choices": MASKINGS, "default": list(MASKINGS),
                  "help": "with --corpus (default: all)"},
    "--level": {"nargs": "+", "choices": list(LEVELS), "default": list(LEVELS),
                "help": "with --corpus (default: all)"},
    "--fraction": {"nargs": "+", "type": float, "default": [1.0], "metavar": "F",
                   "help": "shares of the corpus, with --corpus (default: 1)"},
    "--dapt-profile": {"metavar": "NAME",
                       "help": f"with --corpus: {', '.join(recipe_names('profiles'))}, or a TOML "
                               "file (default: as --profile)"},
    "--new-head": {"action": "store_true", "help": "with --corpus: see pretrain.dapt"},
    "--setting": {"nargs": "+", "choices": SETTINGS, "default": list(SETTINGS),
                  "help": "(default: all)"},
    "--source": {"default": "conll2003-crossner", "metavar": "SET",
                 "help": "source set (default: %(default)s)"},
    "--shots": {"nargs": "+", "default": [ALL], "metavar": "N",
                "help": "train sentences: numbers, 25%%, all (default: all)"},
    **flags.TRAINING,
    "--profile": {"choices": list(PROFILES), "default": "paper",
                  "help": "of the fine-tuning (default: paper)"},
    "--data-root": flags.DATA["--data-root"],
    "--report": {"default": "crossner", "metavar": "DIR",
                 "help": "folder of the report (default: %(default)s)"},
}  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """An encoder of the grid.

    Attributes:
        model: name or folder.
        domain: that it was adapted to; none for the base model, which all domains take.
        masking: of its domain-adaptive pre-training; `level` and `fraction` likewise.
    """

    model: str
    domain: str | None = None
    masking: str = ""
    level: str = ""
    fraction: float = 1.0

    @property
    def name(self) -> str:
        """As the published tables name it: "none", "span integrated"."""
        share = "" if self.fraction == 1 else f" {self.fraction:g}"
        return f"{self.masking} {self.level}{share}" if self.domain else "none"

    @classmethod
    def of(cls, folder: str) -> Variant:
        """A checkpoint of pretrain.dapt.

        Raises:
            UserError: the folder is none, or its training is not finished.
        """
        path = Path(folder) / RECORD
        record = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        settings = record.get("settings", {})
        if "masking" not in settings:
            raise UserError(f"--dapt {folder}: no checkpoint of pretrain.dapt ({RECORD} does not "
                            "say so); make it with python -m pretrain.dapt")  # fmt: skip
        if "results" not in record:
            raise UserError(f"--dapt {folder}: not finished; give the command that makes it again")
        return cls(folder, record["domain"], settings["masking"], settings["level"],
                   settings["fraction"])  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One run of the grid, and the encoder that it is of."""

    variant: Variant
    domain: str
    run: Run


def parser() -> argparse.ArgumentParser:
    """The command line."""
    return commandline.parser("finetune.crossner", __doc__, FLAGS)


def variants(options: argparse.Namespace) -> list[Variant]:
    """The encoders; those of --corpus are made.

    Raises:
        UserError: a checkpoint or a corpus is none, or of a domain that was not asked for.
    """
    found = [Variant(options.base_model), *map(Variant.of, options.dapt)]
    for corpus in options.corpus:
        for masking in options.masking:
            for level in options.level:
                for fraction in options.fraction:
                    found.append(_adapted(options, corpus, masking, level, fraction))
    for variant in found[1:]:
        if variant.domain not in options.domain:
            raise UserError(f"{variant.model}: is of the domain {variant.domain}; add it to "
                            "--domain")  # fmt: skip
    return found


def _adapted(
    options: argparse.Namespace, corpus: str, masking: str, level: str, fraction: float
) -> Variant:
    """A checkpoint in the report's folder; made, or gone on with, where it is not finished."""
    name = f"{Path(corpus).name}-{masking}-{level}-{fraction:g}"
    folder = Path(options.report) / "dapt" / name
    profile = options.dapt_profile or options.profile
    given = {"corpus": corpus, "output": str(folder), "base_model": options.base_model,
             "level": level, "masking": masking, "fraction": fraction,
             "new_head": options.new_head}  # fmt: skip
    recipe = read_recipe(profile, DaptSettings, "profiles", "--dapt-profile")
    settings = resolve(recipe, given, DaptSettings)
    path = folder / RECORD
    if not path.is_file() or "results" not in json.loads(path.read_text(encoding="utf-8")):
        from pretrain import mlm  # loads torch, which takes seconds

        rest = ["--bf16", "true", *_on_cpu()] if options.bf16 else []
        print(mlm.run(settings, rest))
    return Variant.of(str(folder))


def _on_cpu() -> list[str]:
    import torch

    return [] if torch.cuda.is_available() else ["--use-cpu", "true"]


def planned(options: argparse.Namespace, encoders: Sequence[Variant]) -> list[Cell]:
    """All runs, in order; their data has been read once.

    Raises:
        UserError: a value is out of range, or data is missing.
    """
    changed = argparse.Namespace(**{**vars(options), "profile": PROFILES[options.profile]})
    settings = flags.fit_settings(changed)
    for text in options.shots:
        shots_of(text, 1)
    for domain in options.domain:
        for split in ("train", "test"):
            sentences(f"crossner/{domain}", split)
    if set(options.setting) != {"target"}:
        sentences(options.source, "train")
    return [
        Cell(variant, domain, Run(variant.model, f"crossner/{domain}", replace(settings, seed=seed),
                                  setting, () if setting == "target" else (options.source,), shots))
        for setting in options.setting for variant in encoders for domain in options.domain
        for shots in options.shots for seed in flags.seeds(options)
        if variant.domain in (None, domain)
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    commandline.begin()
    options = parser().parse_args(argv)
    flags.use_data_root(options)
    return commandline.run(lambda: _fill(options), options.report)


def _fill(options: argparse.Namespace) -> None:
    planned(options, [Variant(options.base_model)])  # data and flags are looked at first
    plan = planned(options, variants(options))
    output = Path(options.report)
    kept = Kept(output / "runs")
    results = [
        kept.result(cell.run, scored_run,
                    f"{number} of {len(plan)}: {cell.run.setting}, {cell.variant.name}: ")
        for number, cell in enumerate(plan, start=1)
    ]  # fmt: skip

    from finetune.crossner_report import Grid

    grid = Grid(plan, results)
    grid.write(output)
    print(grid.table_2())


if __name__ == "__main__":
    sys.exit(main())
