"""Reads data sets from the Hugging Face hub, and from folders that `datasets` wrote."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.tags import to_iob2

PREFIX = "hf:"
"""Prefix of names on the hub: `hf:NAME`, or `hf:NAME:CONFIG`."""

_WORDS = ("tokens", "words")
_TAGS = ("ner_tags", "tags", "labels", "ner")
_SAVED = ("dataset_dict.json", "state.json")


def is_folder(path: Path) -> bool:
    """Whether `datasets` wrote the folder, or it has a card that `load_dataset` reads."""
    card = path / "README.md"
    return any((path / name).is_file() for name in _SAVED) or (
        card.is_file() and "dataset_info" in card.read_text(encoding="utf-8", errors="replace")
    )


def read(name: str, splits: tuple[str, ...], needed: bool) -> list[Sentence]:
    """Reads the sentences of a split, in strict IOB2.

    Args:
        name: `hf:NAME`, `hf:NAME:CONFIG`, or a folder.
        splits: possible names of the split; the first one that exists is used.
        needed: whether a missing split is an error; else it is empty.

    Raises:
        UserError: the set cannot be loaded, has no such split, or no columns of words and tags.
    """
    found = _load(name)
    split = next((split for split in splits if split in found), None)
    if split is None:
        if needed:
            raise UserError(f"{name}: no split {' or '.join(splits)}; it has {', '.join(found)}")
        return []
    rows = found[split]
    words = next((column for column in _WORDS if column in rows.column_names), None)
    tags = next((column for column in _TAGS if column in rows.column_names), None)
    if words is None or tags is None:
        raise UserError(
            f"{name}: columns {', '.join(rows.column_names)}; one of {', '.join(_WORDS)} and "
            f"one of {', '.join(_TAGS)} are needed"
        )
    names = getattr(getattr(rows.features[tags], "feature", None), "names", None)
    table = rows.select_columns([words, tags]).to_dict()
    if names is None and any(isinstance(tag, int) for row in table[tags] for tag in row):
        raise UserError(f"{name}: column {tags} has numbers without names; save it as ClassLabel")
    return [
        Sentence(list(one), to_iob2([names[tag] for tag in other] if names else other))
        for one, other in zip(table[words], table[tags], strict=True)
    ]


def _load(name: str) -> Any:
    # These load pandas and torch, which takes seconds; most sets are plain files.
    import datasets

    from pretrain.logs import quiet_libraries

    quiet_libraries()
    try:
        if not name.startswith(PREFIX):
            if (Path(name) / "dataset_dict.json").is_file():
                return datasets.load_from_disk(name)
            if (Path(name) / "state.json").is_file():
                return {"train": datasets.load_from_disk(name)}
            return datasets.load_dataset(name)
        path, _, config = name.removeprefix(PREFIX).partition(":")
        return datasets.load_dataset(path, config or None)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).split("\n", 1)[0]
        hint = "" if os.path.exists(name) else "; is the name right, and the hub in reach?"
        raise UserError(f"{name}: {reason}{hint}") from error
