"""Taggers as ONNX files beside their checkpoint: which there are, and how they compute.

A tagger with a linear head, or an open one, needs neither torch nor transformers then.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from finetune.heads.open_onnx import ExportedOpenHead
from finetune.heads.windows import BATCH, INPUTS, Floats, WordTagger
from nerbert.errors import UserError
from nerbert.storage.identity import Identities
from nerbert.storage.places import Place
from nerbert.storage.records import sealed

FOLDER, RECORD, TOKENIZER = "onnx", "export.json", "tokenizer.json"
"""Folder of the files in a checkpoint, the record of what they are made from, and the tokenizer."""

NAMES = {"onnx": "model.onnx", "int8": "model_int8.onnx"}
"""Kind of the file -> its name; int8 has weights of 8 bits."""

LINEAR = "linear"
_MADE_FROM = ("model.safetensors", "config.json", "tokenizer.json")


@dataclass(frozen=True)
class Facts:
    """The facts that decode the scores of an exported tagger.

    Attributes:
        tags: its tags, by label id.
        head: its head, such as LINEAR.
        max_subwords: largest number of sub-words of a window.
        pad: id of the sub-word that fills batches.
        scores: number of scores of each sub-word.
        mention_scores: fields of its `Calibration`; None if it has none.
        tagging_scheme: what its configuration says of the scheme of its tags.
        open_types: of an open head, its `trained_types`.
        numbers: of an open head, its `pretrain.tagging.open_types.Numbers`.
        takes_cases: whether the model is told the case of words.
    """

    tags: list[str]
    head: str
    max_subwords: int
    pad: int
    scores: int
    mention_scores: dict[str, float] | None = None
    tagging_scheme: str | None = None
    open_types: dict[str, str | None] | None = None
    numbers: Sequence[float] | None = None
    takes_cases: bool = False

    @property
    def without_torch(self) -> bool:
        """Whether the file and these facts tag without torch."""
        return self.head == LINEAR or self.numbers is not None


def made_from(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Identities of the files of a checkpoint that an ONNX file is made from."""
    paths = [Path(folder, name) for name in _MADE_FROM]
    return {path.name: list(Identities().of(Place(path))) for path in paths if path.is_file()}


def beside(folder: str, kind: str) -> tuple[Path, Facts] | None:
    """The ONNX file of a checkpoint; None if there is none, or it is made from other files."""
    path = Path(folder, FOLDER, NAMES[kind])
    record = sealed(Place(path.with_name(RECORD)), log=False) or {}
    if not path.is_file() or record.get("made_from") != made_from(folder):
        return None
    digests = record["digests"]
    for name in (path.name, TOKENIZER):
        if digests.get(name) != list(Identities().of(Place(path.with_name(name)))):
            return None
    return path, Facts(**record["tagger"])


def record_of(folder: str, half: Path, facts: Facts) -> dict[str, Any]:
    """The record of some ONNX files.

    Args:
        folder: the checkpoint.
        half: folder of the files.
        facts: what the tagger is.
    """
    digests = {path.name: Identities().of(Place(path)) for path in half.iterdir()}
    return {"made_from": made_from(folder), "digests": digests, "tagger": asdict(facts)}


class OnnxModel:
    """Computes the scores of sub-words by ONNX Runtime, on the CPU."""

    def __init__(self, path: Path, facts: Facts) -> None:
        """Loads a file.

        Args:
            path: path of the file.
            facts: what its tagger is.

        Raises:
            UserError: ONNX Runtime cannot load it, or it is of another tagger.
        """
        # An extra installs it.
        import onnxruntime

        self.facts, self._path = facts, path
        self._tokenizer = path.with_name(TOKENIZER)
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its errors have no common class
            raise UserError(f"{path}: {str(error).splitlines()[0]}; export it again") from error
        (output, *_) = self._session.get_outputs()
        if output.shape[-1] != facts.scores:
            raise UserError(
                f"{path}: gives {output.shape[-1]} scores where the tagger has {facts.scores}; "
                "export it again"
            )

    def __call__(self, *arrays: npt.NDArray[np.int64]) -> Floats:
        """Scores of sub-words (texts, sub-words, scores); see `finetune.heads.windows.Forward`."""
        scores: Floats
        (scores,) = self._session.run(None, dict(zip(INPUTS, arrays, strict=False)))
        return scores

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles what it is loaded from: a session cannot be pickled."""
        return OnnxModel, (self._path, self.facts)

    def open_head(self) -> ExportedOpenHead:
        """Makes the head of the file, if it is an open one."""
        return ExportedOpenHead(self, Tokenizer.from_file(str(self._tokenizer)), self.facts)

    def word_tagger(self, max_subwords: int | None) -> WordTagger:
        """Makes the tagger of words of the file, with the tokenizer beside it."""
        tokenizer = Tokenizer.from_file(str(self._tokenizer))
        facts = self.facts
        limit = max_subwords or facts.max_subwords
        return WordTagger(
            self, tokenizer, facts.pad, facts.scores, limit, BATCH, takes_cases=facts.takes_cases
        )


def exported(folder: str, backend: str) -> OnnxModel | None:
    """The ONNX file of a checkpoint, if there is one or it is asked for, and what runs it.

    Args:
        folder: the checkpoint.
        backend: "onnx" or "int8"; "auto" for onnx if it is there.

    Raises:
        UserError: it is asked for, and is not there.
    """
    file_and_runtime = beside(folder, "onnx" if backend == "auto" else backend)
    if file_and_runtime is None and backend in NAMES and Path(folder).is_dir():
        raise UserError(
            f"no {NAMES[backend]} of these weights; run nerbert export --format {backend}", folder
        )
    if backend == "auto" and find_spec("onnxruntime") is None and find_spec("torch") is not None:
        return None
    return OnnxModel(*file_and_runtime) if file_and_runtime else None
