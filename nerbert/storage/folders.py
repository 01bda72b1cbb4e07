"""The folders of stages: what they were made from, and which files in them are ours.

`stage.json` in a folder says which stage made it, from what, and, when the stage is finished, the
size of each file. Only files that it lists, or whose names stages give, are ever removed.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nerbert.digests import fingerprint
from nerbert.errors import UserError
from nerbert.storage import unfinished
from nerbert.storage.places import Place
from nerbert.storage.records import SIZES, damaged, read_record, seal
from nerbert.storage.unfinished import finished_name

STATE = "stage.json"
_LOGGER = logging.getLogger("nerbert")
_PART = re.compile(r"part-\d+(?:-\d+)?\.(?:parquet|jsonl?|conll)")
_OTHERS = {
    *(STATE, "sentences.json", "words.json"),
    *("classes.json", "page_typer.npz", "dictionary.arrow", "contexts.npz", "page_ids.parquet"),
    *(f"{name}.npy" for name in ("keys", "entities", "classes", "support", "voters", "qids")),
    *("phrase_bounds.npy", "phrase_ids.npy"),
    *("README.md", "labels.json", "report.json", "categories.png", "funnel.png"),
}
"""Names of the files that stages write beside parts."""


def _is_ours(path: str) -> bool:
    """Whether a stage gives this name, or it is an unfinished file of such a name."""
    name = os.path.basename(path)
    name = finished_name(name) or name
    return name in _OTHERS or _PART.fullmatch(name) is not None


def _stem(path: str) -> str:
    """`part-00001` of a part, of its report and of its list of damage; "" for other files."""
    name = os.path.basename(path)
    return name.partition(".")[0] if _PART.fullmatch(name) else ""


@dataclass(frozen=True)
class Folder:
    """A folder of outputs.

    Attributes:
        path: path of the folder.
        state: content of `stage.json`: stage, fingerprint, and what the outputs are made from.
    """

    path: Place
    state: dict[str, Any]

    @classmethod
    def of(cls, path: Place, stage: str, made_from: dict[str, Any]) -> Folder:
        """Describes the folder of a stage.

        Args:
            path: path of the folder.
            stage: name of the stage.
            made_from: everything that decides the outputs. Keys that end in `_files` are names of
                files, which the fingerprint ignores.
        """
        identifying = {key: value for key, value in made_from.items() if not key.endswith("_files")}
        digest = fingerprint(identifying)
        return cls(path, {"stage": stage, "fingerprint": digest, "made_from": made_from})

    @property
    def fingerprint(self) -> str:
        """Changes with anything that decides the outputs."""
        digest: str = self.state["fingerprint"]
        return digest

    @property
    def state_path(self) -> Place:
        """Path of the state."""
        return self.path / STATE

    def on_disk(self) -> dict[str, Any]:
        """The state on disk, without the sizes of files; empty if there is none, or it is torn."""
        return {key: value for key, value in self._read().items() if key != SIZES}

    def is_current(self) -> bool:
        """Whether the outputs, as far as there are any, were made from the same."""
        return self._read().get("fingerprint") == self.fingerprint

    def is_complete(self) -> bool:
        """Whether the folder holds all outputs of these inputs and settings, with their sizes."""
        state = self._read()
        if not state.get("complete") or state["fingerprint"] != self.fingerprint:
            return False
        return not damaged(state, self.path.listing())

    def prepare(self) -> None:
        """Empties the folder if its outputs were made from something else; else keeps its parts.

        Raises:
            UserError: the folder holds files that no run made; nothing has been removed.
        """
        state, present = self._read(), self.path.listing()
        if state.get("fingerprint") != self.fingerprint:
            self._check_ours(state, present)
            unfinished.remove(self.path)  # first: a late writer of the old run must not finish now
            self.path.remove([name for name in present if not _is_hidden(name)])
        elif lost := damaged(state, present):
            _LOGGER.warning(
                "%s: %d files, such as %s, are missing or have another size; they are made again",
                self.path,
                len(lost),
                lost[0],
            )
            # A part is made again if its report is gone; other files, if all of them are.
            damaged_stems = {_stem(name) for name in lost}
            self.path.remove([name for name in present if _stem(name) in damaged_stems])
        unfinished.remove(self.path)
        self.state_path.write_json({**self.state, "complete": False})

    def join(self) -> None:
        """Prepares a folder that several runs fill at the same time; removes nothing.

        Raises:
            UserError: the folder holds files, and not the parts of these runs.
        """
        if not self.is_current():
            is_used = self.path.is_used_folder()
            if is_used and not self.is_current():  # another run may just have begun
                raise UserError(f"{self.path}: of another run; remove it, or choose --output")
            self.state_path.write_json({**self.state, "complete": False})

    def spoil(self) -> None:
        """Marks the outputs as of unknown origin, so that the next run makes them again."""
        self.state_path.write_json({**self.state, "fingerprint": "", "complete": False})

    def finish(self, **facts: Any) -> None:
        """Marks the folder as complete, with other facts about it and the sizes of its files.

        Raises:
            UserError: the folder was removed or emptied since `prepare`.
        """
        if not self.is_current():
            raise changed(self.path)
        seal(self.state_path, {**self.state, "complete": True, **facts}, edited=())

    def _read(self) -> dict[str, Any]:
        state = read_record(self.state_path)
        return state if {"fingerprint", "made_from"} <= state.keys() else {}

    def _check_ours(self, state: Mapping[str, Any], present: Mapping[str, int]) -> None:
        """Checks that a folder may be emptied."""
        visible = [name for name in present if not _is_hidden(name)]
        # A process that is killed while it marks its folder leaves an unfinished mark.
        is_marked = any((finished_name(name) or name) == STATE for name in visible)
        if visible and not is_marked:
            raise UserError(
                f"{self.path}: not empty, and no run made it; move its files, or choose another "
                "--output"
            )
        sizes = state.get(SIZES)
        for name in visible:
            unfinished = finished_name(os.path.basename(name)) is not None
            if sizes is None or unfinished or name == STATE:
                is_ours = _is_ours(name)
            else:
                is_ours = sizes.get(name) == present[name]
            if not is_ours:
                raise UserError(
                    f"{self.path / name}: changed since a run wrote it, and the folder "
                    "must be emptied; move this file, or choose another --output"
                )


def changed(path: str) -> UserError:
    """The error of outputs that are not as the run left them."""
    return UserError(f"{path}: changed while the run wrote; run the same command again")


def _is_hidden(name: str) -> bool:
    """Whether a file is hidden, and none of our unfinished ones: it is left alone."""
    last = os.path.basename(name)
    return last.startswith(".") and finished_name(last) is None


@contextmanager
def made_whole(folder: Path, record: str) -> Iterator[Path]:
    """A new folder that replaces `folder`, which is a run's own, when the block ends.

    If the block fails, or the process dies in it, the old folder stays.

    Args:
        folder: the folder.
        record: name of its record, of `nerbert.storage.records`.

    Raises:
        UserError: `folder` holds files that its record does not list, or is a link.
    """
    if folder.is_symlink() or folder.is_file():
        raise UserError(f"{folder}: not a folder of ours; move it away")
    present = set(Place(folder).listing())
    sizes = read_record(Place(folder / record)).get(SIZES)
    is_torn = sizes is None and record in present  # then the names of the new files tell
    if not is_torn:
        _check_foreign(folder, present - {record, *(sizes or ())})
    half = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    yield half
    if is_torn:
        _check_foreign(folder, present - set(Place(half).listing()))
    shutil.rmtree(folder, ignore_errors=True)
    half.rename(folder)


def _check_foreign(folder: Path, names: Collection[str]) -> None:
    if names:
        raise UserError(f"{folder / min(names)}: no run made it; move it away first")


@contextmanager
def prepared(*folders: Folder) -> Iterator[None]:
    """Prepares the folders that a stage writes in the block.

    When the block fails, the unfinished files that killed workers leave are removed: they would
    take up space on a full disk.
    """
    for folder in folders:
        folder.prepare()
    try:
        yield
    except BaseException:
        for folder in folders:
            unfinished.remove(folder.path)
        raise
