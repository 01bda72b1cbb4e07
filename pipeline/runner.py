"""Running a stage's graph on Beam: the local default, or whatever runner Beam's own flags name."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from pipeline.errors import UserError

if TYPE_CHECKING:  # Beam loads when a run begins: it is slow, and --help and bad input do not wait
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

REFUSED = {"DaskRunner": "it loses what a DoFn emits when a bundle ends"}
"""Runners that lose data, and how (seen on Beam 2.77)."""
_LINES_SHOWN = 30
_OS_ERROR = re.compile(r"\[Errno (\d+)\]")
_SHUTDOWN_S = 5.0
"""How long the other workers may take to end when one has died."""


class WorkerDiedError(Exception):
    """A worker process of the local runner ended before its work."""

    def __init__(self, code: str) -> None:
        super().__init__(
            f"A worker process ended with code {code} (killed, or out of memory?); the same "
            "command goes on where it stopped, --workers 1 needs less memory"
        )


@dataclass(frozen=True)
class Runner:
    """How graphs are run.

    Attributes:
        beam_args: flags that are Beam's.
        workers: processes of the local runner; None for one a core.
    """

    beam_args: tuple[str, ...] = ()
    workers: int | None = None

    def __post_init__(self) -> None:
        """Checks Beam's flags.

        Raises:
            UserError: a flag neither Beam nor we know, or a runner that loses data.
        """
        if self.workers is not None and self.workers < 1:
            raise UserError(f"--workers {self.workers}: give a number of at least 1")
        if not self.beam_args:
            return
        unknown = unknown_beam_flags(self.beam_args)
        if unknown:
            raise UserError(f"{' '.join(unknown)}: no flag of ours or Beam's; see --help")
        from apache_beam.io.filesystems import FileSystems
        from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

        options = PipelineOptions(list(self.beam_args))
        FileSystems.set_options(options)  # --project, --no_auth ... hold for our own files too
        name = options.view_as(StandardOptions).runner or ""
        if (reason := REFUSED.get(name.rpartition(".")[2])) is not None:
            raise UserError(f"--runner {name}: refused, {reason}; use another runner")

    @property
    def is_local(self) -> bool:
        """Whether the graph runs on our local default."""
        return not any(arg.startswith("--runner") for arg in self.beam_args)

    @property
    def is_dataflow(self) -> bool:
        """Whether the graph runs on Google's machines."""
        return any("DataflowRunner" in arg for arg in self.beam_args)

    @property
    def template(self) -> str | None:
        """Where Dataflow shall write a template of the job, instead of running it."""
        if not self.beam_args:
            return None
        from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

        options = PipelineOptions(list(self.beam_args)).view_as(GoogleCloudOptions)
        location: str | None = options.template_location
        return location

    def options(self, units: int) -> PipelineOptions:
        """Beam's options for a stage of that many units."""
        from apache_beam.options.pipeline_options import PipelineOptions

        if not self.is_local:
            return PipelineOptions(list(self.beam_args))
        workers = max(1, min(self.workers or os.cpu_count() or 1, units))
        mode = "multi_processing" if workers > 1 else "in_memory"
        return PipelineOptions([
            "--runner=FnApiRunner", f"--direct_num_workers={workers}",
            f"--direct_running_mode={mode}", *self.beam_args,
        ])  # fmt: skip

    def run(self, stage: beam.PTransform[Any, Any], units: int) -> None:
        """Runs a stage from the pipeline's root and waits for it."""
        import apache_beam as beam

        aside = _workers_aside() if self.is_local else nullcontext()
        with aside, _watched_workers() as deaths:
            try:
                with beam.Pipeline(options=self.options(units)) as pipeline:
                    _ = pipeline | stage
            except (KeyboardInterrupt, RuntimeError) as error:  # Beam wraps what ends a bundle
                if deaths:
                    raise WorkerDiedError(deaths[0]) from None
                if "KeyboardInterrupt" in repr(error):
                    raise KeyboardInterrupt from None
                if (found := _OS_ERROR.search(str(error))) is not None:
                    raise OSError(int(found[1]), os.strerror(int(found[1]))) from None
                raise


@contextmanager
def _watched_workers() -> Iterator[list[str]]:
    """Ends the block with KeyboardInterrupt when a worker process dies; yields how workers died.

    Beam notices the death in a thread of its own, says so, and waits for the worker's answer. Where
    it then also waits for the end of the other workers, the whole process ends after a while: every
    file is written whole or not at all.
    """
    deaths: list[str] = []
    timers: list[threading.Timer] = []

    def give_up() -> None:
        print(WorkerDiedError(deaths[0]), file=sys.stderr, flush=True)
        os._exit(1)

    before = threading.excepthook
    main = threading.main_thread()
    if threading.current_thread() is not main:
        yield deaths
        return

    def hook(arguments: Any) -> None:
        if str(arguments.exc_value).startswith("Worker subprocess exited"):
            deaths.append(str(arguments.exc_value).rpartition(" ")[2])
            timers.append(threading.Timer(_SHUTDOWN_S, give_up))
            timers[-1].daemon = True
            timers[-1].start()
            signal.pthread_kill(main.ident or 0, signal.SIGUSR1)
        else:
            details = arguments.exc_type, arguments.exc_value, arguments.exc_traceback
            traceback.print_exception(*details, file=sys.__stderr__)

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    handler = signal.signal(signal.SIGUSR1, interrupt)
    threading.excepthook = hook
    try:
        yield deaths
    finally:
        for timer in timers:
            timer.cancel()
        threading.excepthook = before
        signal.signal(signal.SIGUSR1, handler)


@contextmanager
def _workers_aside() -> Iterator[None]:
    """Keeps what Beam and its workers print out of the way; shown when the run fails by surprise.

    Workers inherit file descriptor 2, and log every step of their start to it; `sys.__stderr__`
    writes there too. Our own messages go on to the old one, through `sys.stderr`.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log,
        os.fdopen(terminal, "w", buffering=1, encoding="utf-8") as stderr,
    ):
        os.dup2(log.fileno(), 2)
        try:
            with _logging_to(stderr):
                yield
        except (OSError, WorkerDiedError):  # the message says it all
            raise
        except Exception:
            log.seek(0)
            stderr.writelines(log.readlines()[-_LINES_SHOWN:])
            raise
        finally:
            stderr.flush()
            os.dup2(terminal, 2)


@contextmanager
def _logging_to(stderr: TextIO) -> Iterator[None]:
    """Logs our messages to a stream, those of others to file descriptor 2."""
    root = logging.getLogger()
    ours = [h for h in root.handlers if type(h) is logging.StreamHandler]
    others = logging.StreamHandler(sys.__stderr__)
    others.addFilter(lambda record: not _is_ours(record))
    before, sys.stderr = sys.stderr, stderr
    for handler in ours:
        handler.setStream(stderr)
        handler.addFilter(_is_ours)
    root.addHandler(others)
    try:
        yield
    finally:
        root.removeHandler(others)
        others.flush()
        sys.stderr = before
        for handler in ours:
            handler.setStream(before)
            handler.removeFilter(_is_ours)


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in ("nerbert", "pipeline")


def unknown_beam_flags(beam_args: Sequence[str]) -> list[str]:
    """Flags that no class of Beam's options knows."""
    from apache_beam.options import pipeline_options
    from apache_beam.options.pipeline_options import PipelineOptions, _BeamArgumentParser

    parser = _BeamArgumentParser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    for cls in sorted(PipelineOptions.__subclasses__(), key=lambda c: c.__name__):
        if cls.__module__ == pipeline_options.__name__:
            cls._add_argparse_args(parser)
    try:
        return parser.parse_known_args(list(beam_args))[1]
    except SystemExit:
        return list(beam_args)


def quiet_beam() -> None:
    """Keeps Beam's own messages, and its remarks on absent extras, out of the way."""
    logging.getLogger("apache_beam").setLevel(logging.ERROR)
    logging.getLogger("grpc").setLevel(logging.CRITICAL)  # a trace for each cut channel
    logging.getLogger().addFilter(lambda record: "apitools" not in record.getMessage())
