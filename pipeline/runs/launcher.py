"""Where stages run: in local processes, or on the runner that Beam's flags name."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from nerbert import progress
from nerbert.commands.process import cores
from nerbert.errors import UserError
from nerbert.storage import files
from nerbert.storage.folders import Folder
from nerbert.storage.parts import Report, report_path
from pipeline.execution import local
from pipeline.execution.part_pass import Stage, part_passes

if TYPE_CHECKING:
    from pipeline.clusters.beam_runner import BeamRunner
    from pipeline.clusters.session import Session

_PAUSE_S, _REMOTE_PAUSE_S = 0.5, 10.0
_LOGGER = logging.getLogger("nerbert")


def chosen_runner(beam_flags: Sequence[str]) -> BeamRunner | None:
    """The runner that Beam's flags name; None for local processes.

    Raises:
        UserError: Beam does not know a flag, or the runner loses data.
    """
    if not beam_flags:
        return None
    from pipeline.clusters.beam_runner import BeamRunner  # Beam takes a second to load

    return BeamRunner.of(beam_flags)


def check_remote(named: Mapping[str, Sequence[str | None]]) -> None:
    """Checks that no file is on the local disk, which other machines do not see.

    Args:
        named: flag -> paths.

    Raises:
        UserError: a file is on the local disk.
    """
    for flag, paths in named.items():
        for path in paths:
            if path and not files.is_remote(path):
                raise UserError(
                    f"{flag} {path}: Dataflow's workers do not see this disk; give a gs:// path"
                )


class Launcher:
    """Runs stages in local processes or with a runner of Beam, and shows their progress.

    What the stages of a run on Beam share, such as a job server, lives until the block ends.
    """

    def __init__(
        self, workers: int | None, runner: BeamRunner | None, output: str, inputs: Sequence[str]
    ) -> None:
        """Describes how stages are run.

        Args:
            workers: number of local processes; None for one a core.
            runner: runner of Beam; None for local processes.
            output: folder of the run.
            inputs: files that workers on other hosts must see.
        """
        self._workers, self._runner = workers, runner
        self._output, self._inputs = output, inputs
        self._stack = ExitStack()
        self._session: Session | None = None

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def run(self, name: str, stage: Stage, folder: Folder) -> bool:
        """Runs a stage.

        Args:
            name: name of the stage.
            stage: its steps.
            folder: a folder that it writes.

        Returns:
            Whether the stage is finished; false if its job was only written as a template of
            Dataflow, or submitted.
        """
        start = time.monotonic()
        passes = part_passes(stage)
        sizes = [len(step.elements()) for step in passes]
        if self._runner is None:
            wanted = self._workers or cores()
            with progress.shown(name, sum(sizes)) as add:

                def done(report: Report, made: bool) -> None:
                    pages = getattr(report, "pages", {}).get("read", 0)
                    add(pages if made else 0)

                local.run(stage, max(1, min(wanted, max(sizes))), done)
        elif not self._run_on_beam(self._runner, name, stage, folder):
            return False
        _LOGGER.info("%s: done in %.1f s", name, time.monotonic() - start)
        return True

    def _run_on_beam(self, runner: BeamRunner, name: str, stage: Stage, folder: Folder) -> bool:
        if self._session is None:
            session = runner.session(self._output, self._inputs)
            self._session = self._stack.enter_context(session)
        passes = part_passes(stage)
        sizes = [len(step.elements()) for step in passes]
        paths = [step.part(element) for step in passes for element in step.elements()[:1]]
        # Each look lists folders, which takes time and money on a remote store.
        pause_s = _REMOTE_PAUSE_S if any(map(files.is_remote, paths)) else _PAUSE_S
        with progress.polled(name, sum(sizes), lambda: _count_finished(paths), pause_s):
            return self._session.run(stage, name, folder.path)


def _count_finished(paths: Sequence[str]) -> int:
    """Number of finished parts, by the reports in the folders of some parts."""
    folders = {report_path(path).rpartition("/")[0] for path in paths}
    return sum(len(files.find(files.join(folder, "part-*.json"))) for folder in folders)
