"""Drives the stages of a run: those that are not up to date, in order, on one executor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nerbert.commands.options import options_of
from nerbert.commands.process import log_file
from nerbert.commands.values import near
from nerbert.errors import UserError
from nerbert.seams import entries, load
from nerbert.storage.folders import Folder, changed
from nerbert.storage.places import Place
from pipeline.execution.executor import Executor
from pipeline.execution.local import Local
from pipeline.execution.part_pass import Stage

_LOGGER = logging.getLogger("nerbert")


@dataclass(frozen=True)
class PlannedStage:
    """A stage of a run.

    Attributes:
        name: name of the stage.
        folders: the folders that it writes.
        stage: makes the stage; called if a folder is not complete.
        check: called after the stage was run.
    """

    name: str
    folders: Sequence[Folder]
    stage: Callable[[], Stage]
    check: Callable[[], None] = lambda: None


def drive(
    output: Place,
    inputs: Sequence[Place],
    runs: Executor,
    write_record: Callable[[], None],
    steps: Iterable[PlannedStage],
) -> bool:
    """Runs the stages that are not up to date, with the log in the folder of the run.

    Args:
        output: folder of the run, which the caller has locked.
        inputs: files that workers read.
        runs: runs the stages.
        write_record: writes the record that marks the folder as a run's.
        steps: the stages in order. Where this is a generator, what stands between two of its steps
            is done between them.

    Returns:
        Whether all stages are finished; false if one was only written as a Dataflow template.

    Raises:
        UserError: a stage cannot be run, or an output has changed since it was written.
    """
    write_record()  # first: by it a later run knows the folder
    with log_file(output), runs.opened(output, inputs):
        finished: list[Folder] = []
        for step in steps:
            if all(folder.is_complete() for folder in step.folders):
                _LOGGER.info("%s: up to date", step.name)
            elif runs.make(step.name, step.stage(), *step.folders):
                step.check()
            else:
                return False
            finished += step.folders
        _check_made(finished)
        write_record()
        return True


def _check_made(folders: Sequence[Folder]) -> None:
    """Checks that the outputs of all stages, in order, are still as they were written.

    Raises:
        UserError: one is not; those that are made from it are made again by the next run.
    """
    for number, folder in enumerate(folders):
        if not folder.is_complete():
            for later in folders[number + 1 :]:
                later.spoil()
            raise changed(folder.path)


def executor(settings: Any, beam_flags: Sequence[str]) -> Executor:
    """The executor of a run.

    Args:
        settings: settings of the run, with the number of local processes.
        beam_flags: flags of Beam; none for local processes.

    Raises:
        UserError: Beam does not know a flag, or the runner loses data.
    """
    if not beam_flags:
        return Local(settings.workers)
    if not any(flag.partition("=")[0] == "--runner" for flag in beam_flags):
        our_flags = [flag for entry in options_of(type(settings)) for flag in entry.flags]
        for word in beam_flags:  # Beam, which knows its own flags, takes seconds to load
            if word.startswith("--") and (hint := near(word.partition("=")[0], our_flags, 0.75)):
                raise UserError(f"{word}: no such flag{hint}")
    beam = load(entries("executors")["beam"])  # which takes a second
    on_beam: Executor = beam.of(beam_flags)
    return on_beam
