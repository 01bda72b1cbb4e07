"""Records: JSON files beside a result that say what it is made from, and which files belong to it.

`seal` writes a record last, with the sizes of the files and a digest of itself: a result without
its record is not finished, and one whose files or record were changed is made again.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from nerbert.digests import fingerprint
from nerbert.errors import UserError
from nerbert.storage.places import Place

SIZES, _DIGEST = "sizes", "digest"
_TYPED = {"settings", "training"}
"""Tables in a record with the values that users give; others hold digests, which say nothing."""
_LOGGER = logging.getLogger("nerbert")


def read_record(path: Place) -> dict[str, Any]:
    """The content of a record; empty if it is missing, torn, edited or of another shape."""
    content = path.read_json_or_none()
    if not isinstance(content, dict):
        return {}
    digest = content.pop(_DIGEST, None)
    if digest is not None:
        return content if digest == _digest(content) else {}
    # An unfinished result, or one of an older version.
    tables = (content.get(name, {}) for name in (SIZES, "made_from", "counts", "settings"))
    return content if all(isinstance(entry, dict) for entry in tables) else {}


def _digest(content: Mapping[str, Any]) -> str:
    return fingerprint(json.dumps(content, sort_keys=True))


def damaged(record: Mapping[str, Any], present: Mapping[str, int]) -> list[str]:
    """Files of a finished result that are missing, or have another size.

    Args:
        record: content of its record.
        present: size of each file in its folder.
    """
    sizes = record.get(SIZES, {})
    return [
        name
        for name, size in sizes.items()
        if name not in present or size not in (None, present[name])
    ]


def check_made(output: Place, record: str, keys: set[str]) -> None:
    """Checks that an output folder is empty, or that a run made it.

    Args:
        output: the folder.
        record: name of the JSON file by which a run marks its folder.
        keys: keys that this file has.

    Raises:
        UserError: it holds something else.
    """
    if not output.is_used_folder():
        return
    path = output / record
    content = path.read_json_or_none()
    is_torn = path.exists() and not path.size()  # by a power cut
    if not is_torn and not (isinstance(content, dict) and keys <= content.keys()):
        raise UserError(
            f"{output}: not empty, and no run made it; choose another --output, or empty it"
        )


def check_same(output: Place, record: str, content: dict[str, Any]) -> None:
    """Checks that an output folder is empty, or that the same run made it; then marks it.

    Args:
        output: the folder.
        record: name of the JSON file by which a run marks its folder.
        content: content of this file: everything that decides the outputs.

    Raises:
        UserError: it holds something else.
    """
    path = output / record
    content = json.loads(json.dumps(content))  # a file has lists for tuples
    earlier = path.read_json_or_none() or content
    # Runs of other versions have other keys; a foreign file has few of ours.
    shared = {*earlier} & {*content} if isinstance(earlier, dict) else set()
    check_made(output, record, shared if 2 * len(shared) > len(content) else {*content})
    if change := difference(earlier, content):
        raise UserError(f"{output}: made with {change}; choose another --output, or remove it")
    path.write_json(content)


def difference(earlier: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Says what an earlier run made its outputs with that is another thing now; "" if nothing is.

    Args:
        earlier: what decided the outputs.
        content: what would decide them now.
    """
    for key in {**content, **earlier}:
        was, now = earlier.get(key), content.get(key)
        if was == now:
            continue
        if key in _TYPED and isinstance(was, dict) and isinstance(now, dict):
            # A version before may have had fewer options: what is not there is None.
            names = [name for name in {**now, **was} if was.get(name) != now.get(name)]
            if names:
                return f"{names[0]} {was.get(names[0])!r}, not {now.get(names[0])!r}"
            continue
        return f"other {key.replace('_', ' ')}"
    return ""


def seal(
    record: Place,
    content: Mapping[str, Any],
    outputs: Iterable[str] | None = None,
    edited: Collection[str] = ("README.md",),
) -> None:
    """Writes the record of a result, with the sizes of its files; it is written last.

    Args:
        record: path of the record, a JSON file.
        content: its content.
        outputs: names of the files beside it that belong to the result; None for all in its folder
            and below, except hidden ones.
        edited: names of files that users change: they must only be there.
    """
    present = record.folder.listing()
    if outputs is None:
        outputs = [path for path in present if path != record.name and not _is_below_hidden(path)]
    sizes = {path: None if path in edited else present[path] for path in outputs}
    full_content = json.loads(json.dumps({**content, SIZES: sizes}))
    record.write_json({**full_content, _DIGEST: _digest(full_content)})


def sealed(record: Place, log: bool = True) -> dict[str, Any] | None:
    """The content of a record whose files are there with their sizes; None otherwise.

    Records of older versions have no sizes; their files are not checked.

    Args:
        record: path of the record.
        log: whether a torn result is logged.
    """
    if not record.exists():
        return None
    try:
        content = _whole_record(record)
    except UserError as error:
        if log:
            _LOGGER.warning("%s; the result is made again", error)
        return None
    content.pop(SIZES, None)
    return content


def listed(record: Place) -> list[str]:
    """Names of the files of a finished result, its record included, which are as they were written.

    Args:
        record: path of the record: `stage.json`, or what `seal` wrote.

    Raises:
        UserError: the result is not finished, or files are missing or have another size.
    """
    content = _whole_record(record) if record.exists() else {}
    if SIZES not in content or content.get("complete") is False:
        raise UserError(f"{record}: no finished run; run the same command again, which ends it")
    return [record.name, *content[SIZES]]


def _whole_record(record: Place) -> dict[str, Any]:
    """The content of a record; a UserError if it or its files are not as they were written."""
    content = read_record(record)
    if not content:
        raise UserError(f"{record}: torn, or changed since it was written")
    if lost := damaged(content, record.folder.listing()):
        raise UserError(f"{record.folder / lost[0]}: missing, or not of the size that was written")
    return content


def _is_below_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split(os.sep))
