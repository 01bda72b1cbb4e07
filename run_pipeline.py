"""Turns a Wikipedia dump into a weakly-labelled, balanced named-entity corpus in Parquet.

    python run_pipeline.py                                      the demo dump, in a minute
    python run_pipeline.py --dump 'enwiki-*.xml.bz2' --output enwiki-corpus
    python run_pipeline.py --dump gs://bucket/enwiki/ --output gs://bucket/corpus \
        --runner DataflowRunner --project P --region R --temp_location gs://bucket/tmp

Our flags come first; the rest are Beam's.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
import time
from collections.abc import Sequence
from importlib.resources import files as resource_files
from typing import Any

from pipeline import config, files, progress, report, stages
from pipeline.errors import UserError
from pipeline.runner import Runner, quiet_beam

_LOGGER = logging.getLogger("nerbert")
DEMO_OUTPUT = "demo-corpus"
DEMO_MIN_ENTITIES = 2


def parser() -> argparse.ArgumentParser:
    """The command line."""
    select, defaults = config.SelectSettings(), config.ExtractSettings()
    main_parser = argparse.ArgumentParser(
        prog="run_pipeline.py", description=(__doc__ or "").strip(), allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Every other flag goes to Beam, for example --runner and what it needs.",
    )  # fmt: skip
    group = main_parser.add_argument_group("input and output")
    group.add_argument(
        "--dump",
        nargs="+",
        action="extend",
        metavar="PATH",
        help="dump files, globs or directories, local or gs:// (default: the demo)",
    )
    group.add_argument("--output", metavar="DIR", help="folder of all outputs (demo: demo-corpus)")
    group.add_argument("--language", help="code, where the dump names none or a wrong one")
    group = main_parser.add_argument_group("run")
    group.add_argument(
        "--stage",
        choices=stages_names(),
        default="corpus",
        help="last stage to run; those before it run when they are not up to date",
    )
    group.add_argument(
        "--workers", type=int, metavar="N", help="local worker processes (default: one per core)"
    )
    group.add_argument("--seed", type=int, default=0, help="of every random choice (default: 0)")
    group = main_parser.add_argument_group("extract: dump -> documents")
    group.add_argument(
        "--sentence-model",
        choices=config.SENTENCE_MODELS,
        default=defaults.sentence_model,
        help="Punkt trained on the dump itself, or NLTK's pre-trained model "
        "(NLTK_DATA) (default: dump)",
    )
    group.add_argument("--list-items", action="store_true", help="keep the items of lists")
    group = main_parser.add_argument_group("resolve: titles -> classes")
    group.add_argument(
        "--types",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="DBpedia instance-type files (.ttl, .nt; .bz2, .gz, .xz)",
    )
    group.add_argument("--ontology", metavar="FILE", help="DBpedia ontology (default: shipped)")
    group.add_argument(
        "--infobox-mapping",
        metavar="FILE",
        help="DBpedia's Mapping_xx.xml (default: shipped, English)",
    )
    group.add_argument("--no-infobox", action="store_true", help="classes from --types only")
    group = main_parser.add_argument_group("corpus: label, filter, balance")
    group.add_argument(
        "--categories",
        default=select.categories,
        metavar="SET",
        help="specific, nerbert315, nerbert212, coarse4, or a table 'class TAB "
        "category' (default: specific)",
    )
    group.add_argument(
        "--min-entities",
        type=int,
        metavar="N",
        help="distinct entities a category needs (default: "
        f"{select.min_entities}; demo: {DEMO_MIN_ENTITIES})",
    )
    group.add_argument(
        "--frequent",
        type=int,
        default=select.frequent,
        metavar="N",
        help="most frequent categories for the drop rule (default: %(default)s)",
    )
    group.add_argument(
        "--drop-entity",
        default="3:0.3,4:0.5,5:0.7",
        metavar="N:P,...",
        help="drop probability by number of ENTITY mentions (default: %(default)s)",
    )
    group.add_argument(
        "--min-tokens",
        type=int,
        default=select.min_tokens,
        metavar="N",
        help="shorter sentences are dropped (default: %(default)s)",
    )
    group.add_argument(
        "--max-tokens",
        type=int,
        default=select.max_tokens,
        metavar="N",
        help=f"length of a sentence (default: {select.min_tokens} to {select.max_tokens})",
    )
    group.add_argument(
        "--exclude",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="evaluation sets (CoNLL columns) to keep out of the corpus",
    )
    group.add_argument(
        "--validation-share",
        type=float,
        default=select.validation_share,
        metavar="S",
        help="share of pages for validation (default: %(default)s)",
    )
    group.add_argument(
        "--balance",
        choices=config.BALANCES,
        default="category-first",
        help="how train examples are repeated (default: category-first)",
    )
    group.add_argument(
        "--alpha",
        type=float,
        default=0.7,
        metavar="A",
        help="exponent of balancing, 0 to 1 (default: %(default)s)",
    )
    return main_parser


def stages_names() -> tuple[str, ...]:
    """Stages by the name that --stage takes."""
    return config.STAGES


def settings_from(options: argparse.Namespace) -> stages.Settings:
    """The settings that the flags name; without --dump those of the demo."""
    demo = not options.dump
    least = options.min_entities
    if least is None:
        least = DEMO_MIN_ENTITIES if demo else config.SelectSettings.min_entities
    if not demo and not options.output:
        raise UserError("--output is missing: name the folder for the outputs")
    demo_dump = str(resource_files("pipeline") / "data" / "demo.xml")
    return stages.Settings(
        dumps=(demo_dump,) if demo else tuple(options.dump),
        output=options.output or DEMO_OUTPUT, language=options.language,
        extract=config.ExtractSettings(options.sentence_model, options.list_items, options.seed),
        resolve=config.ResolveSettings(tuple(options.types), options.ontology,
                                       options.infobox_mapping, not options.no_infobox),
        select=config.SelectSettings(
            options.categories, least, options.frequent,
            config.parse_drop_entity(options.drop_entity), options.min_tokens, options.max_tokens,
            options.validation_share, tuple(options.exclude), options.seed),
        balance=config.BalanceSettings(options.balance, options.alpha, options.seed),
    )  # fmt: skip


def run(plan: stages.Plan, runner: Runner, last: str) -> None:
    """Runs the stages that are not up to date, in order."""
    from pipeline import build, extract, resolve

    settings = plan.settings
    files.write_json(files.join(settings.output, "manifest.json"), stages.manifest(plan))
    extract_plan = extract.ExtractPlan(plan.units, settings.extract, plan.documents.path)

    def make_extract() -> Any:
        if plan.pretrained is not None:
            files.write_bytes(extract_plan.model_path, plan.pretrained.to_json().encode())
        return extract.Extract(extract_plan, plan.documents.state)

    def make_resolve() -> Any:
        return resolve.Resolve(
            resolve.ResolvePlan(plan.parts, settings.resolve.types, plan.mapping, plan.tree,
                                plan.entities.path), plan.entities.state)  # fmt: skip

    def make_corpus() -> Any:
        plan.examples.prepare()
        return build.BuildCorpus(build.corpus_plan(plan), plan.corpus.state)

    steps = (("extract", plan.documents, make_extract), ("resolve", plan.entities, make_resolve),
             ("corpus", plan.corpus, make_corpus))  # fmt: skip
    for name, folder, make in steps[: config.STAGES.index(last) + 1]:
        if folder.is_complete():
            _LOGGER.info("%s: up to date", name)
            continue
        folder.prepare()
        start = time.monotonic()
        watched = files.join(folder.path, "pages") if name == "resolve" else folder.path
        with progress.shown(name, watched, len(plan.units)):
            runner.run(make(), len(plan.units))
        _LOGGER.info("%s: done in %.1f s", name, time.monotonic() - start)
    files.write_json(files.join(settings.output, "manifest.json"), stages.manifest(plan))


def _stop(number: int, frame: Any) -> None:
    """Ends the run with one line: what Beam's threads say of their end is of no use."""
    logging.disable(logging.CRITICAL)
    threading.excepthook = lambda args: None
    raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    quiet_beam()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    options, beam_args = parser().parse_known_args(argv)
    try:
        runner = Runner(tuple(beam_args), options.workers)
        settings = settings_from(options)
        plan = stages.plan(settings)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    if not options.dump:
        _LOGGER.info("No --dump: the demo dump, with --min-entities %d, into %s",
                     settings.select.min_entities, settings.output)  # fmt: skip
    try:
        run(plan, runner, options.stage)
    except KeyboardInterrupt:
        print(f"Stopped; the same command goes on from {settings.output}.", file=sys.stderr)
        return 130
    if options.stage != "corpus":
        print(f"Done up to {options.stage}: {settings.output}")
    else:
        print(report.summary(files.read_json(files.join(plan.corpus.path, "report.json"))))
        print(f"corpus     {plan.corpus.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
