"""Executors: `Local` and `Beam` run the stages of a run, with the same bytes as result."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from nerbert.commands.options import options_of
from nerbert.errors import UserError
from nerbert.storage.folders import Folder, prepared
from nerbert.storage.places import Place
from pipeline.execution.part_pass import Stage

_LOGGER = logging.getLogger("nerbert")

T = TypeVar("T")


class Executor:
    """Runs stages somewhere, and shows their progress."""

    @property
    def template(self) -> str | None:
        """Path of a template that is written instead of running a stage; None if it runs."""
        return None

    def adapted(self, settings: T) -> T:
        """The settings of a run for the processes or machines that do its work.

        Raises:
            UserError: they would not see a file.
        """
        return settings

    @contextmanager
    def opened(self, output: Place, inputs: Sequence[Place]) -> Iterator[None]:
        """Opens what the stages in the block share, such as a job server.

        Args:
            output: folder of the run.
            inputs: files that workers on other hosts must see.
        """
        yield

    def run(self, name: str, stage: Stage, folder: Place) -> bool:
        """Runs a stage; `make` prepares its folders.

        Args:
            name: name of the stage.
            stage: its steps.
            folder: a folder that it writes.

        Returns:
            Whether the stage is finished; false if its job was only written as a template of
            Dataflow, or submitted.
        """
        raise NotImplementedError

    def make(self, name: str, stage: Stage, *folders: Folder) -> bool:
        """Runs a stage that writes some folders; returns whether it is finished."""
        with prepared(*folders):
            start = time.monotonic()
            is_finished = self.run(name, stage, folders[0].path)
            if is_finished:
                _LOGGER.info("%s: done in %.1f s", name, time.monotonic() - start)
            return is_finished


def with_absolute_paths(settings: T, is_remote: bool) -> T:
    """Settings whose paths hold in other folders and on other machines, too.

    Args:
        settings: an instance of an options class; some of its options are paths for workers.
        is_remote: whether the workers do not see this machine's disk.

    Raises:
        UserError: a path is on this disk, and workers do not see it.
    """
    absolute: dict[str, Any] = {}
    for entry in options_of(type(settings)):
        value = getattr(settings, entry.name)
        if entry.facts["path"] != "workers" or not value:
            continue
        paths = value if entry.is_list else (value,)
        for path in paths:
            if is_remote and not path.is_remote:
                raise UserError(
                    f"{entry.flags[0]} {path}: Dataflow's workers do not see this disk; give a "
                    "gs:// path"
                )
        places = tuple(path.absolute() for path in paths)
        absolute[entry.name] = places if entry.is_list else places[0]
    return replace(settings, **absolute)  # type: ignore[type-var]
