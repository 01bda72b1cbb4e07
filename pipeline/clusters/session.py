"""A run on a runner of Beam: the check of its workers, and a job for each stage."""

from __future__ import annotations

import logging
import math
import os
import re
import secrets
import threading
import time
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from nerbert.errors import HostLostError, RunError, UserError
from nerbert.storage import unfinished
from nerbert.storage.places import Place
from pipeline.clusters import check, portable
from pipeline.clusters.engine import Engine
from pipeline.execution.beam import BeamStage
from pipeline.execution.part_pass import Stage

_OS_ERROR = re.compile(r"OSError: \[Errno (\d+)\]")
_LOGGER = logging.getLogger("nerbert")
_SUBMIT_S = 10.0
_STARTS = 4
_LOOK_S = 1.0


class Session:
    """A run on an engine.

    Attributes:
        folder: folder of the logs.
    """

    def __init__(self, engine: Engine, engine_flags: Sequence[str], folder: Place) -> None:
        """Takes the engine, the flags that suit it, and the folder of the logs."""
        self._engine, self.folder = engine, folder
        self._flags = [*engine.flags, *engine_flags]
        self._told = False

    def announce(self) -> None:
        """Says once what the engine is, and which flags were chosen for it."""
        if not self._told and (description := self._engine.described()):
            self._told = True
            _LOGGER.info("%s", " ".join([f"{description};", *self._engine.fitting_flags()]))

    def check(self, output: Place, inputs: Sequence[Place]) -> None:
        """Runs a small job that looks whether each host is fit.

        Raises:
            UserError: one is not, or none answers.
        """
        token = secrets.token_hex(8)
        folder = output / f".check-{token}"
        proof = folder / "proof"
        proof.write_bytes(token.encode())
        try:
            needs = check.Wanted.of(inputs, proof, token)
            slots = int(self._options.get_all_options().get("parallelism") or 1)
            job = check.CheckJob(needs, max(slots, 1))
            result = self._run(job, "check", check.SECONDS)
            check.raise_problem(result, self._engine.workers_flag)
            self._flags += (
                self._engine.fitting_flags()
            )  # some engines show their hosts only to a job
            self.announce()
            if warning := self._engine.warning():
                _LOGGER.warning("%s", warning)
        finally:
            unfinished.erase(folder)

    def run(self, stage: Stage, name: str, folder: Place) -> bool:
        """Runs a stage.

        Args:
            stage: the stage.
            name: its name.
            folder: a folder that it writes.

        Returns:
            Whether the stage is finished; false if its job was only written, or submitted.
        """
        if self._engine.template is None and self._engine.waits:
            self._run_to_end(stage, name, folder)
            return True
        self._run(BeamStage(stage, None), name)
        next_step = "when it is done, give this command again for the next stage"
        _LOGGER.info("%s: %s; %s", name, self._engine.leftover, next_step)
        return False

    def _run_to_end(self, stage: Stage, name: str, folder: Place) -> None:
        """Runs a stage; if a host is lost, its job starts again on those that are left."""
        for attempt in range(_STARTS):
            try:
                with unfinished.work_folder(folder) as work_folder:
                    self._run(BeamStage(stage, work_folder), name)
                return
            except HostLostError as lost:
                if attempt == _STARTS - 1:
                    raise
                self._engine.leave_out(lost.host)
                self._engine.check()
                self._flags += self._engine.fitting_flags()  # the last flag of a name counts
                _LOGGER.info("%s: %s; starting again on %s", name, lost, self._engine.described())

    @property
    def _options(self) -> PipelineOptions:
        return PipelineOptions(self._flags)

    def _run(
        self, graph: beam.PTransform[Any, Any], name: str, limit_s: float | None = None
    ) -> Any:
        job = self._options.view_as(GoogleCloudOptions).job_name
        if job is None:
            job = f"nerbert-{name.replace(' ', '-')}-{secrets.token_hex(4)}"
        with self._engine.staged() as package:
            options = PipelineOptions([*self._flags, *package, f"--job_name={job}"])
            pipeline = beam.Pipeline(options=options)
            _ = pipeline | graph
            try:
                if self._engine.in_thread:
                    return self._watched(pipeline, job, limit_s)
                result = pipeline.run()
                result.wait_until_finish()
                return result
            except (UserError, RunError):
                raise
            except Exception as error:  # Beam wraps the error that ended a bundle
                raise self._explained(error, name) from None

    def _watched(self, pipeline: beam.Pipeline, job: str, limit_s: float | None) -> Any:
        """Runs a job in a thread; if it is interrupted, the job is cancelled."""
        submission = _Submission(pipeline, self._engine.waits)
        submission.start()
        try:
            end = time.monotonic() + (limit_s or math.inf)
            while time.monotonic() < end:
                if submission.wait(_LOOK_S):
                    return submission.result
                self._engine.watch(job)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._cancelled(job, submission)) from None
        self._cancelled(job, submission)
        raise UserError(
            f"{self._engine.workers_flag}: no worker answered within {limit_s:.0f} s; a pool whose "
            f"Python cannot start, or no free slot; see the output of each `nerbert worker`, "
            f"{self._engine.address_of(job)} and {self.folder}"
        )

    def _cancelled(self, job: str, submission: _Submission) -> str:
        """Cancels a job; returns what the user must know about it."""
        submission.wait_for_result(_SUBMIT_S)
        try:
            ended = self._engine.cancel(job, submission.result)
        except Exception as error:  # whatever a client library raises: the job must be named
            _LOGGER.debug("%s", error)
            ended = False
        if ended:
            return f"Job {job} is cancelled."
        return f"Job {job} may still run: cancel it at {self._engine.address_of(job)}."

    def _explained(self, error: Exception, name: str) -> BaseException:
        """The error to raise instead of one of Beam."""
        text = f"{error!r}\n{error}"
        logging.getLogger("apache_beam").error("%s: %s", name, text)
        if "KeyboardInterrupt" in text:
            return KeyboardInterrupt()
        if (explained := self._engine.explain(text)) is not None:
            return explained
        if (match := _OS_ERROR.search(text)) is not None:
            return OSError(int(match[1]), os.strerror(int(match[1])))
        if (explained := portable.not_fetched(self._engine.name, text)) is not None:
            return explained
        if not self._engine.is_cluster:
            return error
        return RunError(f"{name}: {_last_cause(text)}; see the logs in {self.folder}")


class _Submission(threading.Thread):
    """Submits a job, and waits for its end."""

    def __init__(self, pipeline: beam.Pipeline, waits: bool) -> None:
        super().__init__(daemon=True)
        self._pipeline, self._waits = pipeline, waits
        self._submitted = threading.Event()
        self._error: Exception | None = None
        self.result: Any = None

    def run(self) -> None:
        try:
            self.result = self._pipeline.run()
            self._submitted.set()
            if self._waits:
                self.result.wait_until_finish()
        except Exception as error:  # raised by `wait`, in the thread that asked
            self._error = error
        finally:
            self._submitted.set()

    def wait(self, limit_s: float) -> bool:
        """Waits for the end; returns whether it came within the limit."""
        self.join(limit_s)
        if self._error is not None:
            raise self._error
        return not self.is_alive()

    def wait_for_result(self, limit_s: float) -> None:
        """Waits until the job is submitted, or the limit is over."""
        self._submitted.wait(limit_s)


def _last_cause(text: str) -> str:
    """The last cause that a trace names."""
    causes = re.findall(r"(?:Caused by: |^)([\w.]+(?:Error|Exception): [^\n]+)", text, re.MULTILINE)
    return str(causes[-1]) if causes else text.strip().splitlines()[-1]
