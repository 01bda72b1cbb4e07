"""The command `nerbert`: finds the module of a sub-command and runs its `main`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from nerbert import __version__
from nerbert.command import check_system, exit_code, typed_program
from nerbert.errors import UserError
from nerbert.options import near

COMMANDS = {
    "fetch dump": ("nerbert.fetch.dump", "download the dump of a wiki"),
    "fetch types": ("nerbert.fetch.types", "download DBpedia's classes of pages"),
    "fetch sets": ("finetune.fetch", "download evaluation sets"),
    "corpus": ("pipeline.build", "make a labelled corpus from a Wikipedia dump"),
    "worker": ("pipeline.worker", "start Beam's workers on a host of a Flink or Spark cluster"),
    "domain": ("pipeline.domain.build", "extract the sentences of one domain from a corpus run"),
    "audit": ("pipeline.audit.__main__", "judge sampled mentions of a corpus on a web page"),
    "pretrain": ("pretrain.launch", "continue pre-training an encoder by entity tagging"),
    "dapt": ("pretrain.dapt", "continue masked language modelling on a domain corpus"),
    "train": ("finetune.train", "fine-tune a tagger and keep it"),
    "search": ("finetune.search", "search the settings of fine-tuning"),
    "evaluate": ("finetune.evaluate", "fine-tune taggers and score them"),
    "predict": ("finetune.predict", "tag the entities in texts"),
    "export": ("finetune.export", "write ONNX files, or the formats of other tools"),
    "matrix": ("finetune.matrix", "train on each of several sets, test on all of them"),
    "crossner": ("finetune.crossner.__main__", "run the experiments of CrossNER"),
    "dualner": ("finetune.dualner.__main__", "train zero-shot cross-lingual taggers"),
    "overlap": ("finetune.overlap", "measure how many frequent words sets and corpora share"),
    "tsne": ("finetune.tsne", "plot how encoders represent the entities of a set"),
    "demo": ("finetune.demo", "serve a web page that tags text"),
}
"""Name of each sub-command -> its module, and what the command does."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and returns its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if " ".join(argv[:2]) in COMMANDS:
        argv[:2] = [" ".join(argv[:2])]
    name = argv[0] if argv else "--help"
    if name in ("-h", "--help"):
        print(_help())
        return 0
    if name == "--version":
        print(f"nerbert {__version__}")
        return 0
    return run_command(name, argv[1:], f"{_program()} {name}")


def run_command(name: str, argv: Sequence[str], prog: str) -> int:
    """Runs a sub-command and returns its exit code.

    Args:
        name: name of the sub-command.
        argv: its arguments.
        prog: the command as the user typed it, for usage lines.
    """
    code = 0

    def work() -> None:
        nonlocal code
        code = _door(name).main(argv, prog)

    return exit_code(work) or code


def _door(name: str) -> Any:
    """Imports the module of a sub-command.

    Raises:
        UserError: there is no such command, the system is not supported, or another package hides
            one of ours.
    """
    if name not in COMMANDS:
        several = [known for known in COMMANDS if known.startswith(f"{name} ")]
        hint = f"; there are {', '.join(several or COMMANDS)}"
        if not several:
            hint = near(name, COMMANDS) or hint
        raise UserError(f"nerbert {name}: no such command{hint}")
    module, _ = COMMANDS[name]
    check_system(module)
    return import_module(module)


def _program() -> str:
    typed = typed_program()
    return typed if typed.endswith("nerbert") else "nerbert"


def _help() -> str:
    lines = [f"  {name:11} {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            f"usage: {_program()} COMMAND ...",
            "",
            "Makes named-entity corpora from Wikipedia dumps, pre-trains entity taggers on them,",
            "and fine-tunes and evaluates these taggers.",
            "",
            *lines,
            "",
            f"{_program()} COMMAND --help describes a command; --version prints the version.",
        ]
    )
