"""The process of a command: system check, logging, signals, cores, limits, cycle search."""

from __future__ import annotations

import errno
import gc
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from nerbert import check_packages
from nerbert.errors import TooSlowError, UserError
from nerbert.storage.places import Place

RUN_LOG = "logs/run.log"
"""File in the folder of a run with the lines of all its runs, and their times."""


class _LogFile(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Says nothing: the run itself says that the disk is full, in one line."""


@contextmanager
def log_file(output: Place) -> Iterator[None]:
    """Keeps the log lines of a run in its folder, beside the screen; not in a remote one."""
    if output.is_remote:
        yield
        return
    path = output / RUN_LOG
    os.makedirs(os.path.dirname(path), exist_ok=True)
    logger, handler = logging.getLogger("nerbert"), _LogFile(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


@contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Makes SIGTERM end a command as Ctrl-C does, with one line.

    Python hands signals to its main thread; in other threads this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        # Beam's threads would print tracebacks after that line.
        logging.disable(logging.CRITICAL)
        threading.excepthook = lambda args: None
        raise KeyboardInterrupt

    def resend_interrupt(ignored: Any) -> None:
        """Python ignores an exception while it clears an object away; Ctrl-C must not be lost."""
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            # Not at once: what is raised in here would be ignored, too.
            timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
            timer.daemon = True
            timer.start()
        else:
            unraisable(ignored)

    hook, unraisable = threading.excepthook, sys.unraisablehook
    sys.unraisablehook = resend_interrupt
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        threading.excepthook = hook
        sys.unraisablehook = unraisable
        logging.disable(logging.NOTSET)


def cores() -> int:
    """Number of cores that this process may use."""
    # A container or a job of a cluster may use fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _ClosedOutput(io.TextIOBase):
    """Stands for a standard output that the caller has closed: what is printed there is lost."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")


def prepare_streams() -> None:
    """Replaces standard streams that the caller has closed, as by `2>&-`.

    Without it the next file that is opened would get what libraries write to standard error.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # to the end of the process
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()


def end_output() -> None:
    """Writes what is printed to standard output.

    Else Python does it as the process ends: an error then is several lines, and exit code 120.

    Raises:
        OSError: it cannot be written, as on a full disk; what is left of it is dropped.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        drop_output()
        raise OSError(error.errno, error.strerror, "standard output") from error


def drop_output() -> None:
    """Drops what is or will be printed to standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Ends the block after some seconds, also within a regular expression.

    Only the main thread of a process can be interrupted; other threads, such as those of Beam's
    workers, have no limit.

    Raises:
        TooSlowError: the block took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise TooSlowError(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def no_cycle_search() -> Iterator[None]:
    """Puts off the search for reference cycles: a part makes millions of objects without any."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect(0)  # of what the block made and is still there
        if enabled:
            gc.enable()


_VERBOSITIES = ("TRANSFORMERS_VERBOSITY", "DATASETS_VERBOSITY", "HF_HUB_VERBOSITY")


def be_verbose() -> None:
    """Shows all that we and the libraries log: requests, retries, caches."""
    logging.getLogger().setLevel(logging.DEBUG)


def quiet_libraries() -> None:
    """Hides the messages and progress bars of transformers and datasets, also if loaded later."""
    if logging.getLogger().isEnabledFor(logging.DEBUG):
        return
    # Without a network it repeats each request for half a minute, with two lines for each.
    os.environ.update(dict.fromkeys(_VERBOSITIES, "error"), HF_HUB_DISABLE_PROGRESS_BARS="1")
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    if (transformers := sys.modules.get("transformers")) is not None:
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
    if not sys.stderr.isatty():
        os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
    if (datasets := sys.modules.get("datasets")) is not None:
        datasets.utils.logging.set_verbosity_error()
        if not sys.stderr.isatty():
            datasets.disable_progress_bars()


_LEAST_ADDRESSES = 4_000_000_000
"""A run of two workers needs 2 GB; much of it is reserved by Arrow, and never used."""


def check_system(module: str) -> None:
    """Checks that this system has what we need, and that no other package hides one of ours.

    Args:
        module: module of the command.

    Raises:
        UserError: it is not.
    """
    if sys.platform == "win32":
        raise UserError("nerbert runs on Linux and macOS; on Windows use it in WSL")
    import resource  # Windows has none

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= limit < _LEAST_ADDRESSES:
        raise UserError(
            f"ulimit -v leaves {limit / 1e9:.1f} GB of addresses; OpenBLAS may hang below "
            f"{_LEAST_ADDRESSES / 1e9:g} GB; raise it"
        )
    try:
        check_packages(module)
    except ImportError as error:
        raise UserError(str(error)) from None


def print_error(message: str) -> None:
    """Prints an error. If a run has several processes, only the first one prints."""
    if is_first():
        end_bars()
        print(message, file=sys.stderr)


def end_bars() -> None:
    """Ends bars that an error has left, so that its line stands by itself."""
    if (tqdm := sys.modules.get("tqdm")) is not None:
        for bar in list(getattr(tqdm.tqdm, "_instances", ())):
            bar.close()


def begin_logging() -> None:
    """Sends log lines to standard error. If a run has several processes, only the first logs."""
    level = logging.INFO if is_first() else logging.ERROR
    logging.basicConfig(level=level, format="%(message)s", stream=sys.stderr, force=True)
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it tells of its font cache


def is_first() -> bool:
    """Whether this is the first process that torchrun started, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def only_run(output: Place) -> AbstractContextManager[None]:
    """Locks an output folder against a second run; the first of several processes locks it.

    Raises:
        UserError: another run has locked it.
    """
    return output.locked() if is_first() else nullcontext()


def typed_program() -> str:
    """The program as the user typed it: "nerbert", "python -m nerbert evaluate", "python x.py"."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return f"python -m {spec.name.removesuffix('.__main__')}"
    name = os.path.basename(sys.argv[0] or "nerbert")
    return f"python {name}" if name.endswith(".py") else name
