r"""Turns a Wikipedia dump into a weakly-labelled, balanced named-entity corpus in Parquet.

    python run_pipeline.py                                      the demo dump, in a minute
    python run_pipeline.py --dump 'enwiki-*.xml.bz2' --output enwiki-corpus
    python run_pipeline.py --dump gs://bucket/enwiki/ --output gs://bucket/corpus \
        --runner DataflowRunner --project P --region R --temp_location gs://bucket/tmp
    python run_pipeline.py domain --documents enwiki-corpus --domain music --output music-corpus

Our flags come first; the rest are Beam's.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pipeline import config, domain_plan, files, flags, progress, stages
from pipeline.errors import UserError
from pipeline.runner import Runner, WorkerDiedError, quiet_beam

_LOGGER = logging.getLogger("nerbert")


def run(plan: stages.Plan, runner: Runner, last: str) -> bool:
    """Runs the stages that are not up to date, in order; the others' code is not even loaded.

    Returns:
        Whether all are done; not so where a stage was only written as a Dataflow template.
    """
    settings = plan.settings
    files.write_json(files.join(settings.output, "manifest.json"), stages.manifest(plan))

    def make_extract() -> Any:
        from pipeline import extract

        extract_plan = extract.ExtractPlan(plan.units, settings.extract, plan.documents.path)
        if plan.pretrained is not None:
            files.write_bytes(extract_plan.model_path, plan.pretrained.to_json().encode())
        return extract.Extract(extract_plan, plan.documents.state)

    def make_resolve() -> Any:
        from pipeline import resolve

        return resolve.Resolve(
            resolve.ResolvePlan(plan.parts, settings.resolve.types, plan.mapping, plan.tree,
                                plan.entities.path), plan.entities.state)  # fmt: skip

    def make_corpus() -> Any:
        from pipeline import build

        plan.examples.prepare()
        return build.BuildCorpus(build.corpus_plan(plan), plan.corpus.state)

    steps = (("extract", plan.documents, make_extract), ("resolve", plan.entities, make_resolve),
             ("corpus", plan.corpus, make_corpus))  # fmt: skip
    for name, folder, make in steps[: config.STAGES.index(last) + 1]:
        if folder.is_complete():
            _LOGGER.info("%s: up to date", name)
        else:
            folder.prepare()
            start = time.monotonic()
            watched = files.join(folder.path, "pages") if name == "resolve" else folder.path
            with progress.shown(name, watched, len(plan.units)):
                runner.run(make(), len(plan.units))
            if runner.template is not None:
                _LOGGER.info("%s: template in %s; run it, then give this command for the next",
                             name, runner.template)  # fmt: skip
                return False
            _LOGGER.info("%s: done in %.1f s", name, time.monotonic() - start)
        if name == "extract":
            stages.check_set_aside(plan)
    files.write_json(files.join(settings.output, "manifest.json"), stages.manifest(plan))
    return True


def _stop(number: int, frame: Any) -> None:
    """Ends the run with one line: what Beam's threads say of their end is of no use."""
    logging.disable(logging.CRITICAL)
    threading.excepthook = lambda args: None
    raise KeyboardInterrupt


Work = Callable[[], str | None]
"""What a command does once its input is checked; its closing lines for people."""


def _corpus(options: argparse.Namespace, runner: Runner) -> tuple[str, Work]:
    """Checks the input of a corpus; where it goes, and the work."""
    settings = flags.settings_from(options)
    if runner.is_dataflow:
        stages.check_remote(stages.paths_of(settings))
    if not runner.is_local:
        settings = stages.with_absolute_paths(settings)
    plan = stages.plan(settings)
    if not options.dump:
        _LOGGER.info("No --dump: the demo dump, with --min-entities %d, into %s",
                     settings.select.min_entities, settings.output)  # fmt: skip

    def work() -> str | None:
        if not run(plan, runner, options.stage):
            return None
        if options.stage != "corpus":
            return f"Done up to {options.stage}: {settings.output}"
        from pipeline import report

        summary = report.summary(files.read_json(files.join(plan.corpus.path, "report.json")))
        return f"{summary}\ncorpus     {plan.corpus.path}"

    return settings.output, work


def _domain(options: argparse.Namespace, runner: Runner) -> tuple[str, Work]:
    """The same for a domain corpus."""
    settings = flags.domain_settings_from(options)
    if runner.template is not None:
        raise UserError("--template_location: a domain corpus takes two jobs, the second of which "
                        "needs the first one's output; run it without a template")  # fmt: skip
    if runner.is_dataflow:
        stages.check_remote({"--documents": (settings.documents,), "--output": (settings.output,),
                             "--exclude": settings.exclude})  # fmt: skip
    if not runner.is_local:
        settings = replace(settings, documents=files.absolute(settings.documents),
                           output=files.absolute(settings.output),
                           exclude=tuple(map(files.absolute, settings.exclude)))  # fmt: skip
    plan = domain_plan.plan(settings)

    def work() -> str:
        from pipeline import domain_stage

        return domain_stage.run(plan, runner)

    return settings.output, work


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    quiet_beam()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    given = list(sys.argv[1:] if argv is None else argv)
    command = flags.DOMAIN if given[:1] == [flags.DOMAIN] else ""
    parser = flags.parser((__doc__ or "").strip(), command)
    options, beam_args = parser.parse_known_args(given[bool(command) :])
    try:
        runner = Runner(tuple(beam_args), options.workers)
        output, work = (_domain if command else _corpus)(options, runner)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        with files.locked(output):
            summary = work()
    except KeyboardInterrupt:
        print(f"Stopped; the same command goes on from {output}.", file=sys.stderr)
        return 130
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except WorkerDiedError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        place = error.filename or output
        print(f"{place}: {error.strerror or error}; check space and permissions, then run the "
              "same command again", file=sys.stderr)  # fmt: skip
        return 1
    if summary is not None:
        print(summary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
