"""Taggers as ONNX files beside their checkpoint: which there are, and how they compute."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from nerbert.errors import UserError
from nerbert.storage.folders import sealed
from nerbert.storage.identity import Identities

FOLDER, RECORD = "onnx", "export.json"
"""Folder of the files in a checkpoint, and the file that says which weights they are made from."""

NAMES = {"onnx": "model.onnx", "int8": "model_int8.onnx"}
"""Kind of the file -> its name; int8 has weights of 8 bits."""


def weights_of(folder: str | os.PathLike[str]) -> list[Any]:
    """Identity of a checkpoint's weights."""
    return list(Identities().of(str(Path(folder) / "model.safetensors")))


def beside(folder: str, kind: str) -> Path | None:
    """The ONNX file of a checkpoint; None if there is none, or it is made from other weights."""
    path = Path(folder) / FOLDER / NAMES[kind]
    record = sealed(str(path.with_name(RECORD))) or {}
    if not path.is_file() or not Path(folder, "model.safetensors").is_file():
        return None
    is_right = record.get("weights") == weights_of(folder)
    is_right &= record.get("digests", {}).get(path.name) == list(Identities().of(str(path)))
    return path if is_right else None


class OnnxModel:
    """Computes the scores of tags by ONNX Runtime, on the CPU, as a model of transformers does."""

    device = torch.device("cpu")

    def __init__(self, path: Path, scores: int) -> None:
        """Loads a file.

        Args:
            path: path of the file.
            scores: number of scores of each sub-word that the tagger has.

        Raises:
            UserError: ONNX Runtime cannot load it, or it is of another tagger.
        """
        # An extra installs it.
        import onnxruntime

        try:
            self._session = onnxruntime.InferenceSession(
                str(path), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its errors have no common class
            raise UserError(f"{path}: {str(error).splitlines()[0]}; export it again") from error
        (output, *_) = self._session.get_outputs()
        if output.shape[-1] != scores:
            raise UserError(
                f"{path}: gives {output.shape[-1]} scores where the tagger has {scores}; export it "
                "again"
            )

    def eval(self) -> OnnxModel:
        """Does nothing: such a model is never trained."""
        return self

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        """Scores of tags, as `logits` (texts, sub-words, tags)."""
        fed = {"input_ids": input_ids.numpy(), "attention_mask": attention_mask.numpy()}
        (logits,) = self._session.run(None, fed)
        return SimpleNamespace(logits=torch.from_numpy(logits))


def exported(folder: str, backend: str, scores: int) -> OnnxModel | None:
    """The ONNX file of a checkpoint, if there is one or it is asked for.

    Args:
        folder: the checkpoint.
        scores: number of scores of each sub-word that the tagger has.
        backend: "onnx" or "int8"; "auto" for onnx if it is there.

    Raises:
        UserError: it is asked for, and is not there.
    """
    path = beside(folder, "onnx" if backend == "auto" else backend)
    if path is None and backend in NAMES:
        raise UserError(
            f"no {NAMES[backend]} of these weights; run nerbert export --format {backend}", folder
        )
    return OnnxModel(path, scores) if path else None
