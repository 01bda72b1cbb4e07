"""The shape of an engine: what a runner of Beam needs beside a stage; its flags, addresses."""

from __future__ import annotations

import re
import socket
from argparse import ArgumentError
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import requests
from apache_beam.options import pipeline_options
from apache_beam.options.pipeline_options import (
    PipelineOptions,
    PortableOptions,
    StandardOptions,
    _BeamArgumentParser,
)
from apache_beam.runners.portability.job_server import JavaJarJobServer

from nerbert.errors import RunError, UserError

_REST_S = 5.0


class Engine:
    """A runner of Beam. This class itself is for runners on this machine, such as DirectRunner.

    Attributes:
        flags: the user's flags of Beam.
        options: the same, parsed.
    """

    is_cluster = False
    """Whether the workers are on other hosts: a job checks them before the first stage."""

    in_thread = False
    """Whether jobs run elsewhere: a thread waits for them, and they are cancelled with the run."""

    @classmethod
    def suits(cls, options: PipelineOptions, name: str) -> bool:
        """Whether flags name this engine.

        Args:
            options: the flags, parsed.
            name: name of the class of Beam's runner.
        """
        return False

    def __init__(self, flags: Sequence[str]) -> None:
        """Takes the user's flags of Beam."""
        self.flags = tuple(flags)
        self.options = PipelineOptions(list(flags))

    @property
    def name(self) -> str:
        """The runner, as the user typed it."""
        return self.options.view_as(StandardOptions).runner or ""

    @property
    def endpoint(self) -> str | None:
        """Address of a job service, if the user gave one."""
        endpoint: str | None = self.options.view_as(PortableOptions).job_endpoint
        return endpoint

    def check(self) -> None:
        """Checks, before anything is written, that the engine can be reached.

        Raises:
            UserError: it cannot, or a flag does not suit it.
        """

    def fitting_flags(self) -> list[str]:
        """Flags that suit the engine as it is now; the user's own flags win."""
        return []

    def described(self) -> str:
        """Name, version and size of the engine, for the first line of a run; empty if unknown."""
        return ""

    @property
    def template(self) -> str | None:
        """Path of a file that the runner writes instead of running a job; None if it runs."""
        return None

    @property
    def leftover(self) -> str:
        """The result of a run that does not finish its stage: a template, or a submitted job."""
        return f"template in {self.template}" if self.template else "job submitted"

    @property
    def waits(self) -> bool:
        """Whether a run waits for its jobs."""
        return True

    @contextmanager
    def staged(self) -> Iterator[list[str]]:
        """Flags by which the workers get our package; for the time of a submission."""
        yield []

    def job_server(self, options: PipelineOptions) -> JavaJarJobServer | None:
        """Beam's job server that must be started for a run; None if none must be."""
        return None

    def cancel(self, job: str, result: Any) -> bool:
        """Cancels the jobs of this name, and waits for their end.

        Args:
            job: name of the jobs.
            result: Beam's result of the job; None if it was interrupted before there was one.

        Returns:
            Whether no such job runs any more.
        """
        return True

    def leave_out(self, host: str) -> None:
        """Does without a host that was lost, from now on."""

    def address_of(self, job: str) -> str:
        """Where users see a job: an address, or a name."""
        return self.endpoint or self.name

    def watch(self, job: str) -> None:
        """Looks at the engine while a job of this name runs, about once a second."""

    def warning(self) -> str:
        """A warning about a setting that makes the run slow, with its remedy; empty without one."""
        return ""

    def explain(self, error: str) -> Exception | None:
        """One line for an error of the engine.

        Args:
            error: its text, with traces of Java and Python.

        Returns:
            The error to raise instead; None if it is not known.
        """
        for pattern, kind, message in _KNOWN:
            if (match := re.search(pattern, error)) is not None:
                return kind(message.format(*match.groups(), flag=self.workers_flag))
        return None

    @property
    def workers_flag(self) -> str:
        """The flag that says where workers are, with its value, for messages."""
        portable = self.options.view_as(PortableOptions)
        if portable.environment_config:
            return f"--environment_config {portable.environment_config}"
        return f"--environment_type {portable.environment_type or 'DOCKER'}"


_KNOWN: tuple[tuple[str, type[Exception], str], ...] = (
    (r"nerbert\.errors\.(?:User|Run)Error: ([^\n]+)", RunError, "{0}"),
    (
        r"No module named '(pipeline|nerbert|ontology)\b",
        UserError,
        "{flag}: the Python of its workers has no {0}; install nerbert there, "
        "and start the workers with `nerbert worker`",
    ),
    (
        r"(?:Connection refused|UNAVAILABLE)[^\n]*?(localhost|[\w.-]+)/[\d.:]*?:(\d+)",
        UserError,
        "{flag}: no worker pool answers at {0}:{1} of a host; start `nerbert worker --port {1}` on "
        "each",
    ),
    (  # Flink's last cause, which is all that Beam tells, has no address
        r"finishConnect\(\.\.\) failed: Connection refused",
        UserError,
        "{flag}: no worker pool answers there on one host or more; start `nerbert worker` on each",
    ),
)


def check_address(flag: str, address: str, remedy: str) -> None:
    """Checks that something listens at HOST:PORT.

    Raises:
        UserError: nothing does.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UserError(f"{flag} {address}: no HOST:PORT")
    try:
        socket.create_connection((host, int(port)), _REST_S).close()
    except OSError as error:
        raise UserError(f"{flag} {address}: {error.strerror or error}; {remedy}") from None


class Rest:
    """The REST interface of a cluster. Proxies of the environment are not for it."""

    def __init__(self, url: str) -> None:
        """Takes the address, with http:// or https://."""
        self.url = url.rstrip("/")
        self._session = requests.Session()
        self._session.trust_env = False

    def get(self, path: str) -> Any:
        """The JSON at a path.

        Raises:
            requests.RequestException: there is none.
        """
        answer = self._session.get(f"{self.url}/{path}", timeout=_REST_S)
        answer.raise_for_status()
        return answer.json()

    def patch(self, path: str) -> None:
        """Changes something.

        Raises:
            requests.RequestException: it is refused.
        """
        self._session.patch(f"{self.url}/{path}", timeout=_REST_S).raise_for_status()


def check_flags(flags: Sequence[str], extra_flags: Collection[str] = ()) -> None:
    """Checks that Beam knows its flags, and that a runner is among them.

    Args:
        flags: the user's flags that are not ours.
        extra_flags: names of options that the job server knows beside those of Beam's Python.

    Raises:
        UserError: it is not so.
    """
    wrong: list[str] = []
    is_wrong = True
    for word in unknown_flags(flags):
        if word.startswith("--"):
            is_wrong = _name(word) not in extra_flags
        if is_wrong:
            wrong.append(word)
    if wrong:
        raise UserError(f"{' '.join(wrong)}: neither our flag nor Beam's; see --help")
    if not is_given(flags, "runner"):
        raise UserError(f"{flags[0]}: Beam's flag, but there is no --runner; add it, or drop this")


def unknown_flags(flags: Sequence[str]) -> list[str]:
    """The flags, and their values, that no options class of Beam's Python knows.

    Raises:
        UserError: it knows a flag, but not its value.
    """
    parser = _BeamArgumentParser(
        add_help=False, allow_abbrev=False, conflict_handler="resolve", exit_on_error=False
    )
    for cls in sorted(PipelineOptions.__subclasses__(), key=lambda c: c.__name__):
        if cls.__module__ == pipeline_options.__name__:
            cls._add_argparse_args(parser)
    try:
        return parser.parse_known_args(list(flags))[1]
    except ArgumentError as error:
        raise UserError(str(error).removeprefix("argument ")) from None
    except SystemExit:  # a flag without its value
        return list(flags)


def is_given(flags: Sequence[str], name: str) -> bool:
    """Whether the user gave the flag `--name`."""
    return any(flag.startswith("--") and _name(flag) == name for flag in flags)


def _name(flag: str) -> str:
    return flag.removeprefix("--").partition("=")[0].replace("-", "_")
