"""Reads data sets from the Hugging Face hub, and from folders that `datasets` wrote."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from finetune.data import json_rows
from nerbert.errors import UserError
from nerbert.text.columns import Sentences
from nerbert.text.schemes import Scheme

PREFIX = "hf:"
"""Prefix of names on the hub: `hf:NAME`, or `hf:NAME:CONFIG`."""

CONVERTED = "refs/convert/parquet"
"""Revision that the hub makes of each set: its tables as Parquet."""

_FOLDERS = ("", "dataset/", "data/")
_SAVED = ("dataset_dict.json", "state.json")


def is_folder(path: Path) -> bool:
    """Whether `datasets` wrote the folder, or it has a card that `load_dataset` reads."""
    if any((path / name).is_file() for name in _SAVED):
        return True
    card = path / "README.md"
    has_script = (path / f"{path.name}.py").is_file()
    return (
        card.is_file()
        and not has_script
        and "dataset_info" in card.read_text(encoding="utf-8", errors="replace")
    )


def read(
    name: str,
    splits: Sequence[str],
    needed: bool,
    revision: str | None = None,
    columns: str | None = None,
) -> Sentences:
    """Reads the sentences of a split, in strict IOB2.

    Args:
        name: `hf:NAME`, `hf:NAME:CONFIG`, or a folder.
        splits: possible names of the split; the first one that exists is used.
        needed: whether a missing split is an error; else it is empty.
        revision: branch, tag or commit on the hub; None for the main branch.
        columns: columns of words and tags, such as "word=tokens,tag=fine"; None for usual ones.

    Raises:
        UserError: the set cannot be loaded, has no such split, or no columns of words and tags.
    """
    dataset = _load(name, revision)
    split = next((split for split in splits if split in dataset), None)
    if split is None:
        if needed:
            raise UserError(f"no split {' or '.join(splits)}; it has {', '.join(dataset)}", name)
        return Sentences((), Scheme("IOB2", 0))
    rows = dataset[split]
    lists = [key for key, kind in rows.features.items() if hasattr(kind, "feature")]
    table = rows.select_columns(lists).to_dict()
    try:
        words, tags = json_rows.columns_of(table, columns)
        listed = getattr(rows.features[tags].feature, "names", None)
        return json_rows.sentences(
            (
                (f"row {number}", {words: row_words, tags: row_tags})
                for number, (row_words, row_tags) in enumerate(
                    zip(table[words], table[tags], strict=True)
                )
            ),
            f"word={words},tag={tags}",
            lambda: dict(enumerate(listed)) if listed else _label_names(name),
        )
    except ValueError as error:
        raise UserError(str(error), name) from None


def _label_names(name: str) -> dict[int, str] | None:
    """The names of tags by number, from a label file of a folder, or of a set's main branch."""
    if not name.startswith(PREFIX):
        return json_rows.beside(Path(name) / "dataset")
    # The hub's client loads many modules; most sets are plain files.
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    path = name.removeprefix(PREFIX).partition(":")[0]
    candidates = [folder + label for label in json_rows.LABEL_FILES for folder in _FOLDERS]
    try:
        present = set(HfApi().list_repo_files(path, repo_type="dataset"))
        file = next((candidate for candidate in candidates if candidate in present), None)
        if file is None:
            return None
        return json_rows.numbered(Path(HfApi().hf_hub_download(path, file, repo_type="dataset")))
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise UserError(_reason(name, error), name) from error


def _load(name: str, revision: str | None) -> Any:
    # These load pandas and torch, which takes seconds; most sets are plain files.
    import datasets

    from nerbert.commands.process import quiet_libraries

    quiet_libraries()
    try:
        if not name.startswith(PREFIX):
            if (Path(name) / "dataset_dict.json").is_file():
                return datasets.load_from_disk(name)
            if (Path(name) / "state.json").is_file():
                return {"train": datasets.load_from_disk(name)}
            return datasets.load_dataset(name)
        path, _, config = name.removeprefix(PREFIX).partition(":")
        return datasets.load_dataset(path, config or None, revision=revision)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise UserError(_reason(name, error), name) from error


def _reason(name: str, error: Exception) -> str:
    """Why a set cannot be loaded, and what to do."""
    reason = str(error).split("\n", 1)[0]
    if "scripts are no longer supported" in reason:
        return (
            "this set is a Python script, and datasets no longer runs scripts; give --revision "
            f"{CONVERTED} (the hub's copy as Parquet), or clone the set and name its folder"
        )
    hint = "" if os.path.exists(name) else "; is the name right, and the hub in reach?"
    return reason + hint
