"""The executor `Beam`: runs stages on the runner that Beam's flags name, with logs of its own."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from apache_beam.options.pipeline_options import (
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from apache_beam.runners.runner import create_runner

from nerbert import progress
from nerbert.errors import UserError, install
from nerbert.seams import parts
from nerbert.storage.parts import report_path
from nerbert.storage.places import Place
from pipeline.clusters import portable
from pipeline.clusters.dataflow import Dataflow
from pipeline.clusters.engine import Engine, check_flags, is_given
from pipeline.clusters.portable import Portable
from pipeline.clusters.session import Session
from pipeline.clusters.spark import Spark
from pipeline.execution.executor import Executor, T, with_absolute_paths
from pipeline.execution.part_pass import Stage, part_passes

_PAUSE_S, _REMOTE_PAUSE_S = 0.5, 10.0

REFUSED = {"DaskRunner": "it loses what a DoFn emits when a bundle ends"}
"""Runner -> how it loses data (seen on Beam 2.77)."""


def engine_of(flags: Sequence[str]) -> Engine:
    """The engine that flags of Beam name: the first one that suits them, else a plain `Engine`.

    Raises:
        UserError: Beam does not know a flag or the runner, or the runner loses data.
    """
    options = PipelineOptions(list(flags))
    portable = bool(options.view_as(PortableOptions).job_endpoint)
    name = (options.view_as(StandardOptions).runner or "").rpartition(".")[2]
    jvm = name in ("FlinkRunner", "SparkRunner")
    if not (portable or jvm) or not is_given(flags, "runner"):
        check_flags(flags)  # others are checked by what the job server knows
    if (reason := REFUSED.get(name)) is not None:
        raise UserError(f"--runner {name}: refused, {reason}; use another runner")
    _check_runner(options)
    engine = next(
        (kind for kind in parts("engines").values() if kind.suits(options, name)), Engine
    )(flags)
    if type(engine) is Portable:
        engine.check()
        return Spark(flags) if engine.is_spark else engine
    return engine


class Beam(Executor):
    """Runs stages with the runner that Beam's flags name.

    Attributes:
        engine: what the runner needs.
    """

    def __init__(self, engine: Engine) -> None:
        """Takes the engine; `of` makes the one that flags name, and checks it."""
        self.engine = engine
        self._session: Session | None = None
        self._begin: Callable[[], Session]

    @property
    def template(self) -> str | None:
        return self.engine.template

    @classmethod
    def of(cls, flags: Sequence[str]) -> Beam:
        """The runner that flags name.

        Raises:
            UserError: a flag is wrong, or the engine cannot be reached.
        """
        quiet()
        runner = cls(engine_of(flags))
        runner.engine.check()
        runner._fetch_job_server()
        return runner

    def adapted(self, settings: T) -> T:
        """The settings with absolute paths, for workers in another folder or on another machine."""
        return with_absolute_paths(settings, isinstance(self.engine, Dataflow))

    @contextmanager
    def opened(self, output: Place, inputs: Sequence[Place]) -> Iterator[None]:
        """Logs, job server and the check of the workers begin with the first stage that runs."""
        with ExitStack() as stack:
            self._begin = lambda: stack.enter_context(self.session(output, inputs))
            yield

    def run(self, name: str, stage: Stage, folder: Place) -> bool:
        """Runs a stage as a job; see `Session.run`."""
        self._session = self._session or self._begin()
        passes = part_passes(stage)
        sizes = [len(step.elements()) for step in passes]
        paths = [step.part(element) for step in passes for element in step.elements()[:1]]
        # Each look lists folders, which takes time and money on a remote store.
        pause_s = _REMOTE_PAUSE_S if any(path.is_remote for path in paths) else _PAUSE_S
        with progress.polled(name, sum(sizes), lambda: _count_finished(paths), pause_s):
            return self._session.run(stage, name, folder)

    @contextmanager
    def session(self, output: Place, inputs: Sequence[Place]) -> Iterator[Session]:
        """Opens the logs and the job server that all stages of a run share; checks the workers.

        Args:
            output: folder of the run.
            inputs: files that workers read.

        Raises:
            UserError: the job server does not start, or the workers are not fit.
        """
        with kept_apart(output) as folder, self._served(folder) as flags:
            session = Session(self.engine, flags, folder)
            session.announce()
            if self.engine.is_cluster:
                session.check(output, inputs)
            yield session

    def _fetch_job_server(self) -> None:
        """Downloads the engine's job server, before anything is written.

        Raises:
            UserError: Beam cannot download it.
        """
        options = PipelineOptions([*self.engine.flags, *self.engine.fitting_flags()])
        if (server := self.engine.job_server(options)) is None:
            return
        cache = options.view_as(JobServerOptions).jar_cache_dir
        try:
            server.local_jar(server.path_to_jar(), cache)
        except RuntimeError as error:
            raise portable.not_fetched(self.engine.name, str(error)) or error from None

    @contextmanager
    def _served(self, folder: Place) -> Iterator[list[str]]:
        """The flags that the engine adds; for the block its job server runs."""
        flags = self.engine.fitting_flags()
        with _own_temporary_folder() as temporary:
            java = f"--job_server_jvm_properties=-Djava.io.tmpdir={temporary}"
            server = self.engine.job_server(PipelineOptions([java, *self.engine.flags, *flags]))
            if server is None:
                yield flags
                return
            command, endpoint = server.subprocess_cmd_and_endpoint()
            with portable.started(command, endpoint, folder / "job-server.log"):
                check_flags(self.engine.flags, portable.JobService(endpoint).options())
                yield [*flags, f"--job_endpoint={endpoint}"]


def _count_finished(paths: Sequence[Place]) -> int:
    """Number of finished parts, by the reports in the folders of some parts."""
    folders = {report_path(path).folder for path in paths}
    return sum(len((folder / "part-*.json").files()) for folder in folders)


@contextmanager
def _own_temporary_folder() -> Iterator[str]:
    """Temporary files of the block get a folder that ends with it: Beam leaves those of a job."""
    with tempfile.TemporaryDirectory(prefix="nerbert-", ignore_cleanup_errors=True) as folder:
        before, tempfile.tempdir = tempfile.tempdir, folder
        try:
            yield folder
        finally:
            tempfile.tempdir = before


def _check_runner(options: PipelineOptions) -> None:
    """Checks that Beam has the runner, and that it has what it needs.

    Raises:
        UserError: it is not so.
    """
    name = options.view_as(StandardOptions).runner or ""
    try:
        create_runner(name)
    except ValueError as error:
        runners = str(error).partition("Valid values are ")[2] or "see Beam's documentation"
        raise UserError(f"--runner {name}: no such runner; there are {runners}") from None
    except ImportError:
        raise UserError(f"--runner {name}: {install('gcp')}") from None
    endpoint = options.view_as(PortableOptions).job_endpoint
    if name.rpartition(".")[2] == "PortableRunner" and not endpoint:
        raise UserError(f"--runner {name}: add --job_endpoint HOST:PORT of a job service")


NAME = "logs"
_OURS = logging.getLogger("nerbert")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@contextmanager
def kept_apart(output: Place) -> Iterator[Place]:
    """Sends all log lines but ours into `beam.log`; yields the folder, for other logs.

    Errors that end a thread go there, too: Beam's threads end so when a job is cancelled.

    Args:
        output: folder of the run. Beside a remote one the logs go to a temporary folder, which
            stays.
    """
    folder = Place(tempfile.mkdtemp(prefix="nerbert-logs-"))
    if not output.is_remote:
        os.rmdir(folder)
        folder = output / NAME
        os.makedirs(folder, exist_ok=True)
    root = logging.getLogger()
    handlers, propagate, our_handlers = root.handlers[:], _OURS.propagate, _OURS.handlers[:]
    into = logging.FileHandler(folder / "beam.log", encoding="utf-8")
    into.setFormatter(logging.Formatter(_FORMAT))
    root.handlers = [into]
    # Without the root our lines go to its handlers directly, beside our own, such as a file.
    _OURS.handlers, _OURS.propagate = [*our_handlers, *(handlers if propagate else ())], False
    hook, threading.excepthook = threading.excepthook, _log_thread
    try:
        yield folder
    finally:
        root.handlers, _OURS.handlers, _OURS.propagate = handlers, our_handlers, propagate
        threading.excepthook = hook
        into.close()


def _log_thread(end: threading.ExceptHookArgs) -> None:
    name = end.thread.name if end.thread else "unknown"
    logging.getLogger("apache_beam").error("thread %s ended", name, exc_info=end.exc_value)


def quiet() -> None:
    """Silences the C part of gRPC, which writes to the terminal for every closed channel.

    It takes effect if gRPC has not been loaded.
    """
    if "grpc" not in sys.modules:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
