"""A job of a few elements before the first stage: are the workers fit for the run?

Its graph has no function that is pickled by value, so that workers with another Python or another
version of this package can answer, too. They answer by the names of counters: runners do not
bring elements back.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.metrics.metric import Metrics, MetricsFilter

import nerbert
from nerbert.digests import fingerprint
from nerbert.errors import UserError
from nerbert.storage.places import Place

SECONDS = 60.0
"""The workers have this time to answer."""
_NAMESPACE = "nerbert.check"
_LOOKED_AT = 16
_ELEMENTS_A_SLOT = 8  # dealt by a digest: with fewer, a slot may get none
_PACKAGES = ("nerbert", "ontology", "pipeline")


@dataclass(frozen=True)
class Wanted:
    """The package, the Python and the files that each worker must have.

    Attributes:
        python: version of Python, such as "3.11".
        package: version of this package, and a digest of its code.
        inputs: files that they must read, with their sizes.
        proof: a file of this run, in a folder of its own in the output folder.
        content: its content.
    """

    python: str
    package: tuple[str, str]
    inputs: tuple[tuple[Place, int], ...]
    proof: Place
    content: str

    @classmethod
    def of(cls, inputs: Sequence[Place], proof: Place, content: str) -> Wanted:
        """The needs by this process; of many input files, every n-th one is compared."""
        step = max(1, -(-len(inputs) // _LOOKED_AT))
        sample = dict.fromkeys([*inputs[::step], *inputs[-1:]])
        sizes = tuple((path, path.size()) for path in sample)
        return cls(_python(), package(), sizes, proof, content)


def _python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


@cache
def package() -> tuple[str, str]:
    """The version of this package, and a digest of the code that workers run."""
    home = Path(__file__).resolve().parent.parent.parent
    sources = sorted(path for name in _PACKAGES for path in (home / name).rglob("*.py"))
    content = {str(path.relative_to(home)): path.read_text("utf-8") for path in sources}
    return nerbert.__version__, fingerprint(content)


class CheckJob(beam.PTransform[Any, Any]):
    """The graph of the check."""

    def __init__(self, needs: Wanted, slots: int) -> None:
        super().__init__()
        self._wanted, self._slots = needs, slots

    def expand(self, root: Any) -> Any:
        numbers = root | beam.Impulse() | beam.ParDo(_Numbers(self._slots * _ELEMENTS_A_SLOT))
        return numbers | beam.GroupByKey() | beam.ParDo(_Look(self._wanted))


class _Numbers(beam.DoFn):
    def __init__(self, count: int) -> None:
        self._count = count

    def process(self, element: Any) -> Iterator[tuple[int, int]]:
        for number in range(self._count):
            yield number, number


class _Look(beam.DoFn):
    """Looks at the worker once, and tells what it finds."""

    def __init__(self, needs: Wanted) -> None:
        self._wanted = needs

    def setup(self) -> None:
        self._facts: list[str] | None = None

    def process(self, element: Any) -> None:
        if self._facts is None:
            self._facts = [json.dumps(fact) for fact in facts(self._wanted)]
        for text in self._facts:
            Metrics.counter(_NAMESPACE, text).inc()


def facts(needs: Wanted) -> Iterator[tuple[str, str, str, str]]:
    """Problems of this host: its name, kind of the problem, the thing; kind "" if there is none."""
    host, visible = socket.gethostname(), 0
    for kind, thing, detail in _problems(needs):
        visible += 1
        yield host, kind, thing, detail
    if not visible:
        yield host, "", str(os.getpid()), ""


def _problems(needs: Wanted) -> Iterator[tuple[str, str, str]]:
    python = ".".join(map(str, sys.version_info[:2]))
    if python != needs.python:
        yield "python", f"Python {python}", f"Python {needs.python}"
    version, code = package()
    if (version, code) != tuple(needs.package):
        our_version = needs.package[0]
        yield (
            "package",
            f"nerbert {version}",
            f"nerbert {our_version}" if our_version != version else "other code",
        )
    for path, size in needs.inputs:
        try:
            n_bytes = path.size()
        except Exception as error:  # whatever a file system raises, the host cannot read it
            yield "input", path, _reason(error)
        else:
            if n_bytes != size:
                yield "input", path, f"{n_bytes:,} bytes there, {size:,} here"
    output = needs.proof.folder.folder
    try:
        content = needs.proof.read_bytes().decode()
    except Exception as error:  # the same
        yield "output", output, _reason(error)
        return
    if content != needs.content:
        yield "output", output, "another folder of the same name"
        return
    try:
        Place(f"{needs.proof}.{socket.gethostname()}.{os.getpid()}").write_bytes(b"")
    except Exception as error:  # the same
        yield "output", output, _reason(error)


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def raise_problem(result: Any, workers_flag: str) -> int:
    """Reads the answers of the workers.

    Returns:
        Number of processes that answered.

    Raises:
        UserError: a worker is not fit; the message names the first.
    """
    counters = result.metrics().query(MetricsFilter().with_namespace(_NAMESPACE))["counters"]
    answers = sorted(tuple(json.loads(counter.key.metric.name)) for counter in counters)
    for problem in answers:
        if problem[1]:
            raise UserError(_message(problem, workers_flag))
    return len(answers)


def _message(problem: Iterable[str], workers_flag: str) -> str:
    host, kind, thing, detail = problem
    if kind == "python":
        return f"{workers_flag}: host {host} has {thing}, here is {detail}; they must be equal"
    if kind == "package":
        difference = f"here is {detail}" if detail.startswith("nerbert") else f"but with {detail}"
        return (
            f"{workers_flag}: host {host} has {thing}, {difference}; install the same package on "
            "each host, and start `nerbert worker` again"
        )
    flag = "--dump" if kind == "input" else "--output"
    return (
        f"{flag} {thing}: host {host} does not see it ({detail}); workers need the same path: a "
        "shared disk, or s3://, gs://, hdfs://"
    )
