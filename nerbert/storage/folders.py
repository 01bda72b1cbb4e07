"""The folders of stages: what they were made from, and which files in them are ours.

`stage.json` in a folder says which stage made it, from what, and, when the stage is finished, the
size of each file. Only files that it lists, or whose names stages give, are ever removed.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nerbert.digests import fingerprint
from nerbert.errors import UserError
from nerbert.storage import files, unfinished
from nerbert.storage.unfinished import finished_name

STATE = "stage.json"
_SIZES = "sizes"
_LOGGER = logging.getLogger("nerbert")
_PART = re.compile(r"part-\d+(?:-\d+)?\.(?:parquet|jsonl?|conll)")
_OTHERS = {
    *(STATE, "sentences.json", "words.json"),
    *("classes.json", "page_typer.npz", "dictionary.arrow", "contexts.npz", "page_ids.parquet"),
    *(f"{name}.npy" for name in ("keys", "entities", "classes", "support", "voters", "qids")),
    *("README.md", "labels.json", "report.json", "categories.png", "funnel.png"),
}
"""Names of the files that stages write beside parts."""


def _is_ours(path: str) -> bool:
    """Whether a stage gives this name, or it is an unfinished file of such a name."""
    name = files.name(path)
    name = finished_name(name) or name
    return name in _OTHERS or _PART.fullmatch(name) is not None


def _stem(path: str) -> str:
    """`part-00001` of a part, of its report and of its list of damage; "" for other files."""
    name = files.name(path)
    return name.partition(".")[0] if _PART.fullmatch(name) else ""


@dataclass(frozen=True)
class Folder:
    """A folder of outputs.

    Attributes:
        path: path of the folder.
        state: content of `stage.json`: stage, fingerprint, and what the outputs are made from.
    """

    path: str
    state: dict[str, Any]

    @classmethod
    def of(cls, path: str, stage: str, made_from: dict[str, Any]) -> Folder:
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
    def state_path(self) -> str:
        """Path of the state."""
        return files.join(self.path, STATE)

    def on_disk(self) -> dict[str, Any]:
        """The state on disk, without the sizes of files; empty if there is none, or it is torn."""
        return {key: value for key, value in self._read().items() if key != _SIZES}

    def is_current(self) -> bool:
        """Whether the outputs, as far as there are any, were made from the same."""
        return self._read().get("fingerprint") == self.fingerprint

    def is_complete(self) -> bool:
        """Whether the folder holds all outputs of these inputs and settings, with their sizes."""
        state = self._read()
        if not state.get("complete") or state["fingerprint"] != self.fingerprint:
            return False
        return not _damaged(state, files.listing(self.path))

    def prepare(self) -> None:
        """Empties the folder if its outputs were made from something else; else keeps its parts.

        Raises:
            UserError: the folder holds files that no run made; nothing has been removed.
        """
        state, there = self._read(), files.listing(self.path)
        if state.get("fingerprint") != self.fingerprint:
            self._check_ours(state, there)
            unfinished.remove(self.path)  # first: a late writer of the old run must not finish now
            files.remove(self.path, [name for name in there if not _is_hidden(name)])
        elif damaged := _damaged(state, there):
            _LOGGER.warning(
                "%s: %d files, such as %s, are missing or have another size; they are made again",
                self.path,
                len(damaged),
                damaged[0],
            )
            # A part is made again if its report is gone; other files, if all of them are.
            again = {_stem(name) for name in damaged}
            files.remove(self.path, [name for name in there if _stem(name) in again])
        unfinished.remove(self.path)
        files.write_json(self.state_path, {**self.state, "complete": False})

    def spoil(self) -> None:
        """Marks the outputs as of unknown origin, so that the next run makes them again."""
        files.write_json(self.state_path, {**self.state, "fingerprint": "", "complete": False})

    def finish(self, **facts: Any) -> None:
        """Marks the folder as complete, with other facts about it and the sizes of its files.

        Raises:
            UserError: the folder was removed or emptied since `prepare`.
        """
        if not self.is_current():
            raise changed(self.path)
        seal(self.state_path, {**self.state, "complete": True, **facts}, edited=())

    def _read(self) -> dict[str, Any]:
        state = files.read_json_or_none(self.state_path)
        return state if isinstance(state, dict) and "fingerprint" in state else {}

    def _check_ours(self, state: Mapping[str, Any], there: Mapping[str, int]) -> None:
        """Checks that a folder may be emptied."""
        seen = [name for name in there if not _is_hidden(name)]
        if seen and STATE not in there:
            raise UserError(
                f"{self.path}: not empty, and no run made it; move its files, or choose another "
                "--output"
            )
        sizes = state.get(_SIZES)
        for name in seen:
            unfinished = finished_name(files.name(name)) is not None
            if sizes is None or unfinished or name == STATE:
                ours = _is_ours(name)
            else:
                ours = sizes.get(name) == there[name]
            if not ours:
                raise UserError(
                    f"{files.join(self.path, name)}: changed since a run wrote it, and the folder "
                    "must be emptied; move this file, or choose another --output"
                )


def changed(path: str) -> UserError:
    """The error of outputs that are not as the run left them."""
    return UserError(f"{path}: changed while the run wrote; run the same command again")


def _is_hidden(name: str) -> bool:
    """Whether a file is hidden, and none of our unfinished ones: it is left alone."""
    last = files.name(name)
    return last.startswith(".") and finished_name(last) is None


def _damaged(record: Mapping[str, Any], there: Mapping[str, int]) -> list[str]:
    """Files of a finished result that are missing, or have another size."""
    sizes = record.get(_SIZES, {})
    return [
        name for name, size in sizes.items() if name not in there or size not in (None, there[name])
    ]


def check_made(output: str, record: str, keys: set[str]) -> None:
    """Checks that an output folder is empty, or that a run made it.

    Args:
        output: the folder.
        record: name of the JSON file by which a run marks its folder.
        keys: keys that this file has.

    Raises:
        UserError: it holds something else.
    """
    if not files.is_used_folder(output):
        return
    path = files.join(output, record)
    content = files.read_json_or_none(path)
    is_torn = files.exists(path) and not files.size(path)  # by a power cut
    if not is_torn and not (isinstance(content, dict) and keys <= content.keys()):
        raise UserError(
            f"{output}: not empty, and no run made it; choose another --output, or empty it"
        )


def check_same(output: str, record: str, content: dict[str, Any]) -> None:
    """Checks that an output folder is empty, or that the same run made it; then marks it.

    Args:
        output: the folder.
        record: name of the JSON file by which a run marks its folder.
        content: content of this file: everything that decides the outputs.

    Raises:
        UserError: it holds something else.
    """
    check_made(output, record, set(content))
    path = files.join(output, record)
    content = json.loads(json.dumps(content))  # a file has lists for tuples
    earlier = files.read_json_or_none(path) or content
    if changed := [key for key in content if earlier[key] != content[key]]:
        raise UserError(
            f"{output}: made with other {changed[0].replace('_', ' ')}; choose another --output, "
            "or remove it"
        )
    files.write_json(path, content)


def seal(
    record: str,
    content: Mapping[str, Any],
    made: Iterable[str] | None = None,
    edited: Collection[str] = ("README.md",),
) -> None:
    """Writes the record of a result, with the sizes of its files; it is written last.

    Args:
        record: path of the record, a JSON file.
        content: its content.
        made: names of the files beside it that belong to the result; None for all in its folder
            and below, except hidden ones.
        edited: names of files that users change: they must only be there.
    """
    folder, name = os.path.split(record)
    there = files.listing(folder or ".")
    if made is None:
        made = [path for path in there if path != name and not _is_below_hidden(path)]
    sizes = {path: None if path in edited else there[path] for path in made}
    files.write_json(record, {**content, _SIZES: sizes})


def sealed(record: str, log: bool = True) -> dict[str, Any] | None:
    """The content of a record whose files are there with their sizes; None otherwise.

    Records of older versions have no sizes; their files are not checked.

    Args:
        record: path of the record.
        log: whether a torn result is logged.
    """
    if not files.exists(record):
        return None
    content = files.read_json_or_none(record)
    if not isinstance(content, dict) or not isinstance(content.get(_SIZES, {}), dict):
        reason = f"{record}: torn"
    else:
        folder = os.path.dirname(record) or "."
        damaged = _damaged(content, files.listing(folder))
        if not damaged:
            content.pop(_SIZES, None)
            return content
        path = os.path.join(folder, damaged[0])
        reason = f"{path}: missing, or not of the size that was written"
    if log:
        _LOGGER.warning("%s; the result is made again", reason)
    return None


def _is_below_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split(os.sep))


@contextmanager
def made_whole(folder: Path) -> Iterator[Path]:
    """A new folder that replaces `folder`, which is a run's own, when the block ends.

    If the block fails, or the process dies in it, the old folder stays.
    """
    half = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    yield half
    shutil.rmtree(folder, ignore_errors=True)
    half.rename(folder)


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
