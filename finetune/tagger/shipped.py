r"""Taggers that are shipped: a few megabytes that are added to an encoder of the hub.

Of each matrix the difference from the encoder's is kept, as the product of two narrow ones (its
best approximation of that rank), in bytes, and of all other weights the difference itself. It is
written by

    python -m finetune.tagger.shipped --encoder ENCODER --tagger CHECKPOINT... --output FOLDER

Several checkpoints of one start, which have seen the sentences in other orders (`--data-seed`),
become one: the mean of their weights tags better than each (Wortsman et al. 2022, "Model soups").

At first use the whole checkpoint is put together in the cache of the hub.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

from finetune.options import SHIPPED
from nerbert.errors import UserError

_DATA = Path(__file__).parent.parent / "data"
_WEIGHTS, _DIFFERENCE, _FACTS = "model.safetensors", "difference.safetensors", "encoder.json"
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
_LEFT, _SCALE, _RIGHT = ":left", ":scale", ":right"
"""Of a matrix of numbers: two matrices of bytes, and the factor of each column of the first one."""
_RANK = 64

Weights = dict[str, npt.NDArray[Any]]


def checkpoint_of(name: str, encoder: str | None = None) -> str:
    """The folder of a shipped tagger as an ordinary checkpoint; it is made if it is not there.

    Args:
        name: one of `finetune.options.SHIPPED`.
        encoder: folder with the encoder; None for the cache of the hub, or the hub.

    Raises:
        UserError: the encoder is not at hand, or another one.
    """
    source = _DATA / name
    facts = json.loads((source / _FACTS).read_text(encoding="utf-8"))
    folder = _cache() / f"{name}-{_version(source)}"
    if folder.is_dir():
        return str(folder)
    if _digest(source / _DIFFERENCE) != facts["difference"]:
        raise UserError("is damaged; install nerbert again", str(source / _DIFFERENCE))
    weights = _encoder_file(name, facts["encoder"], encoder, _WEIGHTS)
    if _digest(weights) != facts["sha256"]:
        raise UserError(
            f"--encoder {weights.parent}: its weights are not those of {facts['encoder']}, which "
            f"{name} was trained on; give a copy of that one"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as parent:
        new_folder = Path(parent, name)
        new_folder.mkdir()
        for path in source.iterdir():
            if path.name not in (_DIFFERENCE, _FACTS):
                shutil.copyfile(path, new_folder / path.name)
        for file in _TOKENIZER:
            if (new_folder / file).exists():
                continue
            path = _encoder_file(name, facts["encoder"], encoder, file)
            shutil.copyfile(path, new_folder / file)
        sums = _added(load_file(weights), load_file(source / _DIFFERENCE), facts["prefix"])
        save_file(sums, new_folder / _WEIGHTS, metadata={"format": "pt"})
        try:
            os.rename(new_folder, folder)
        except OSError:
            if not folder.is_dir():  # another process has made it meanwhile
                raise
    return str(folder)


def folder_of(model: str) -> str:
    """The folder of a tagger: that of a shipped one as an ordinary checkpoint, or as it is given.

    Raises:
        UserError: see `checkpoint_of`.
    """
    return checkpoint_of(model) if model in SHIPPED and not os.path.isdir(model) else model


def write_difference(
    encoder: str, taggers: Sequence[str], folder: str, name: str, rank: int = _RANK
) -> None:
    """Writes a trained tagger, or the mean of several, as its difference from an encoder.

    Args:
        encoder: folder of the encoder.
        taggers: folders of the trained checkpoints.
        folder: folder to write.
        name: name of the encoder on the hub.
        rank: largest rank of the difference of a matrix.
    """
    before = load_file(Path(encoder, _WEIGHTS))
    trained = [load_file(Path(tagger, _WEIGHTS)) for tagger in taggers]
    after: Weights = {key: np.mean([w[key] for w in trained], axis=0) for key in trained[0]}
    prefix = next(key for key in after if key.partition(".")[2] in before).partition(".")[0] + "."
    parts: Weights = {}
    for key, values in after.items():
        base = before.get(key.removeprefix(prefix)) if key.startswith(prefix) else None
        if base is not None and base.shape != values.shape:
            base = None
        difference = values if base is None else values - base
        if base is None or values.ndim != 2 or min(values.shape) <= rank:
            parts[key] = difference.astype(np.float16)
            continue
        tall, scales, wide = np.linalg.svd(difference, full_matrices=False)
        columns, column_units = _in_bytes(tall[:, :rank].T)
        rows, row_units = _in_bytes(wide[:rank])
        parts[key + _LEFT] = np.ascontiguousarray(columns.T)
        parts[key + _RIGHT] = rows
        parts[key + _SCALE] = (scales[:rank] * column_units * row_units).astype(np.float32)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    save_file(parts, target / _DIFFERENCE)
    for file in ("config.json", "tokenizer_config.json"):
        shutil.copyfile(Path(taggers[0], file), target / file)
    facts = {
        "encoder": name,
        "sha256": _digest(Path(encoder, _WEIGHTS)),
        "prefix": prefix,
        "difference": _digest(target / _DIFFERENCE),
    }
    (target / _FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _in_bytes(rows: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int8], npt.NDArray[Any]]:
    """Rows of numbers as bytes, and what one unit is in each."""
    unit = np.maximum(np.abs(rows).max(1), 1e-12) / 127
    return np.round(rows / unit[:, None]).astype(np.int8), unit


def _added(before: Weights, parts: Weights, prefix: str) -> Weights:
    """The weights of a tagger: those of its encoder, and what is added to them."""
    after: Weights = {}
    for key, values in parts.items():
        name = key.removesuffix(_LEFT)
        if key.endswith((_RIGHT, _SCALE)):
            continue
        difference = values.astype(np.float32)
        if name != key:
            difference = (difference * parts[name + _SCALE]) @ parts[name + _RIGHT]
        base = before.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if base is not None and base.shape == difference.shape:
            difference = base + difference
        after[name] = difference
    return after


def _encoder_file(name: str, repository: str, encoder: str | None, file: str) -> Path:
    """A file of the encoder, in its folder, in the cache of the hub, or from the hub.

    Raises:
        UserError: it is not at hand.
    """
    if encoder is not None:
        path = Path(encoder, file)
        if not path.is_file():
            raise UserError(f"--encoder {encoder}: {file} is missing; give a copy of {repository}")
        return path
    from huggingface_hub import hf_hub_download  # takes half a second

    try:
        return Path(hf_hub_download(repository, file))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:100]
        raise UserError(
            f"its encoder {repository} is not at hand ({reason}); go online once, or give its "
            f"folder once: nerbert predict --model {name} --encoder DIR TEXT",
            name,
        ) from error


def _cache() -> Path:
    # Commands that name no shipped tagger need not load it.
    from huggingface_hub.constants import HF_HOME

    return Path(HF_HOME) / "nerbert"


def _version(source: Path) -> str:
    """Digest of a shipped tagger, whose encoder.json has the digests of the weights."""
    texts = (source / file for file in ("config.json", "tokenizer_config.json", _FACTS))
    return hashlib.sha256(b"".join(path.read_bytes() for path in texts)).hexdigest()[:16]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for flag in ("encoder", "output"):
        parser.add_argument(f"--{flag}", required=True)
    parser.add_argument("--tagger", nargs="+", required=True)
    parser.add_argument("--name", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--rank", type=int, default=_RANK)
    flags = parser.parse_args()
    write_difference(flags.encoder, flags.tagger, flags.output, flags.name, flags.rank)
