"""The command `nerbert`: the table of its sub-commands, and the function that runs one."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nerbert import __version__
from nerbert.commands.completion import CompletionOptions, script
from nerbert.commands.options import near, with_options
from nerbert.commands.parser import Command, exit_code
from nerbert.commands.process import check_system, is_first, prepare_streams, typed_program
from nerbert.commands.recipes import Recipes
from nerbert.errors import UserError

NO_RECIPES = Recipes()
_FIT = "finetune.settings:FitSettings"
_FIT_RECIPES = Recipes("finetune", "nerbert")
_TO_BEAM = "Every other flag goes to Beam, for example --runner and what that needs."
_TO_TRAINER = (
    "Every other flag goes to transformers.TrainingArguments, for example --learning-rate, "
    "--num-train-epochs, --bf16, --torch-compile, --report-to tensorboard, --push-to-hub, "
    "--resume-from-checkpoint DIR."
)


@dataclass(frozen=True)
class Entry:
    """A row of the table of commands.

    Attributes:
        summary: what the command does, for the list of all commands.
        work: "module:function"; it takes an instance of each options class, and returns the text
            to print, or None.
        options: "module:class" of each options class; the docstring of the first one is the first
            text of `--help`.
        recipes: the recipes that are shipped for the command.
        positionals_help: text of `--help` about unknown flags, which `work` takes as a last
            argument; empty if they are errors.
        passes_flags: whether `work` takes the options that were typed as flags as a last argument.
    """

    summary: str
    work: str
    options: tuple[str, ...]
    recipes: Recipes = NO_RECIPES
    positionals_help: str = ""
    passes_flags: bool = False

    def command(self) -> Command:
        """The command; its options classes are imported here, its work is not."""
        kinds = [_load(name) for name in self.options]
        return Command(
            inspect.getdoc(kinds[0]),
            *kinds,
            recipes=self.recipes,
            positionals_help=self.positionals_help,
            passes_flags=self.passes_flags,
        )


COMMANDS = {
    "fetch dump": Entry(
        "download the dump of a wiki",
        "nerbert.fetch.dump:fetch",
        ("nerbert.fetch.dump:DumpOptions",),
    ),
    "fetch types": Entry(
        "download DBpedia's classes of pages",
        "nerbert.fetch.types:fetch",
        ("nerbert.fetch.types:TypesOptions",),
    ),
    "fetch sets": Entry(
        "download evaluation sets",
        "finetune.data.download:fetch",
        ("finetune.data.download:SetsOptions",),
    ),
    "fetch vectors": Entry(
        "download vectors of words and n-grams",
        "nerbert.fetch.vectors:fetch",
        ("nerbert.fetch.vectors:VectorsOptions",),
    ),
    "corpus": Entry(
        "make a labelled corpus from a Wikipedia dump",
        "pipeline.runs.corpus:make_corpus",
        ("pipeline.settings:CorpusSettings",),
        recipes=Recipes("pipeline"),
        positionals_help=_TO_BEAM,
    ),
    "worker": Entry(
        "start Beam's workers on a host of a Flink or Spark cluster",
        "pipeline.clusters.pool:serve",
        ("pipeline.settings:WorkerOptions",),
    ),
    "domain": Entry(
        "extract the sentences of one domain from a corpus run",
        "pipeline.domain.run:run",
        ("pipeline.domain.definition:DomainSettings",),
        positionals_help=_TO_BEAM,
    ),
    "audit": Entry(
        "judge sampled mentions of a corpus on a web page",
        "pipeline.audit.run:audit",
        ("pipeline.audit.settings:AuditSettings",),
    ),
    "pretrain": Entry(
        "continue pre-training an encoder by entity tagging",
        "pretrain.tagging.run:run",
        ("pretrain.settings:PretrainSettings",),
        recipes=Recipes("pretrain.tagging", "nerbert"),
        positionals_help=_TO_TRAINER,
    ),
    "dapt": Entry(
        "continue masked language modelling on a domain corpus",
        "pretrain.mlm.run:run_all",
        ("pretrain.settings:DaptSettings",),
        recipes=Recipes("pretrain.mlm", "crossner-paper"),
        positionals_help=_TO_TRAINER,
    ),
    "train": Entry(
        "fine-tune a tagger and keep it",
        "finetune.use.train:train",
        ("finetune.options:TrainOptions", _FIT),
        recipes=_FIT_RECIPES,
    ),
    "search": Entry(
        "search the settings of fine-tuning",
        "finetune.experiments.search:search",
        ("finetune.options:SearchOptions", _FIT),
        recipes=_FIT_RECIPES,
        passes_flags=True,
    ),
    "evaluate": Entry(
        "fine-tune taggers and score them",
        "finetune.experiments.evaluate:evaluate",
        ("finetune.options:EvaluateOptions", _FIT),
        recipes=_FIT_RECIPES,
    ),
    "predict": Entry(
        "tag the entities in texts",
        "finetune.use.predict:print_predictions",
        ("finetune.options:PredictOptions",),
    ),
    "export": Entry(
        "write ONNX files, or the formats of other tools",
        "finetune.use.export:export",
        ("finetune.options:ExportOptions",),
    ),
    "matrix": Entry(
        "train on each of several sets, test on all of them",
        "finetune.experiments.matrix:fill_matrix",
        ("finetune.options:MatrixOptions", _FIT),
        recipes=_FIT_RECIPES,
    ),
    "crossner": Entry(
        "run the experiments of CrossNER",
        "finetune.crossner.grid:fill_grid",
        ("finetune.crossner.settings:CrossnerOptions", _FIT),
        recipes=Recipes("finetune", "crossner-paper"),
        passes_flags=True,
    ),
    "dualner": Entry(
        "train zero-shot cross-lingual taggers",
        "finetune.dualner.runs:run_all",
        ("finetune.dualner.settings:DualOptions", "finetune.dualner.settings:DualSettings"),
        recipes=Recipes("finetune.dualner", "dualner-base"),
    ),
    "overlap": Entry(
        "measure how many frequent words sets and corpora share",
        "finetune.experiments.overlap:compare_words",
        ("finetune.options:OverlapOptions",),
    ),
    "tsne": Entry(
        "plot how encoders represent the entities of a set",
        "finetune.experiments.tsne:draw_entities",
        ("finetune.options:TsneOptions",),
    ),
    "demo": Entry(
        "serve a web page that tags text",
        "finetune.use.app:serve",
        ("finetune.options:DemoOptions",),
    ),
    "push": Entry(
        "send a corpus or a checkpoint to the Hugging Face hub",
        "finetune.use.sending:push_folder",
        ("finetune.options:PushOptions",),
    ),
    "reproduce": Entry(
        "run the experiments of a paper, and judge its claims",
        "nerbert.reproduce.run:reproduce",
        ("nerbert.reproduce.plan:ReproduceOptions",),
    ),
    "completion": Entry(
        "print what makes a shell complete commands and flags",
        "nerbert.commands.table:complete",
        ("nerbert.commands.completion:CompletionOptions",),
    ),
}
"""Name of each sub-command -> its row."""


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


def run_command(name: str, argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Runs a sub-command and returns its exit code.

    Args:
        name: name of the sub-command.
        argv: its arguments; those of the process if None.
        prog: the command as the user typed it, for usage lines; that of the process if None.
    """
    prepare_streams()
    os.environ["MPLBACKEND"] = "agg"  # matplotlib only writes files, and refuses unknown ones
    code = 0

    def dispatch() -> None:
        nonlocal code
        entry = _entry(name)
        code = entry.command().main(
            lambda *arguments: _print(_load(entry.work)(*arguments)), argv, prog
        )

    return exit_code(dispatch) or code


def function(name: str) -> Callable[..., Any]:
    """A sub-command as a function of its options; it returns what the command prints."""
    entry = _entry(name)
    kinds = [_load(kind) for kind in entry.options]

    @with_options(*kinds, recipe=True)
    def call(**options: Any) -> Any:
        return entry.command().call(_load(entry.work), **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (call.__doc__ or "").replace("", inspect.getdoc(kinds[0]) or "", 1)
    return call


def complete(options: CompletionOptions) -> str:
    """Runs `nerbert completion`."""
    commands = {name: entry.command() for name, entry in COMMANDS.items()}
    return script(options.shell, commands, {n: entry.summary for n, entry in COMMANDS.items()})


def _print(result: Any) -> None:
    """Prints what a command returned; the first of several processes does."""
    if result is not None and is_first():
        print(str(result).removesuffix("\n"))


def _entry(name: str) -> Entry:
    """The row of a sub-command.

    Raises:
        UserError: there is no such command, the system is not supported, or another package hides
            one of ours.
    """
    if name not in COMMANDS:
        namesakes = [full_name for full_name in COMMANDS if full_name.startswith(f"{name} ")]
        hint = f"; there are {', '.join(namesakes or COMMANDS)}"
        if not namesakes:
            hint = near(name, COMMANDS) or hint
        raise UserError(f"nerbert {name}: no such command{hint}")
    check_system(COMMANDS[name].work)
    return COMMANDS[name]


def _load(name: str) -> Any:
    """Imports "module:name"."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def _program() -> str:
    typed = typed_program()
    return typed if typed.endswith("nerbert") else "nerbert"


def _help() -> str:
    lines = [f"  {name:11} {entry.summary}" for name, entry in COMMANDS.items()]
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
