"""Makes ONNX files of a tagger, and compares what they say with what torch says."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from finetune.heads.head import head_of
from finetune.heads.windows import INPUTS
from finetune.tagger.onnx import FOLDER, NAMES, RECORD, TOKENIZER, Facts, record_of
from finetune.tagger.tagger import Tagger
from nerbert.errors import RunError, UserError
from nerbert.storage.folders import made_whole
from nerbert.storage.places import Place
from nerbert.storage.records import seal
from pretrain.tagging.open_head import is_open, numbers_of
from pretrain.tagging.open_types import SIZE
from pretrain.training.letter_cases import takes_cases
from pretrain.training.models import longest_input

TOLERANCE = 1e-4
"""Largest difference of a probability from torch's; files of 8 bits are only reported."""

_TEXTS = [
    "Angela Merkel met Barack Obama in Berlin in 2013.",
    "The University of Oxford, founded before 1200, is older than the Aztec Empire!",
    "Юлия Тимошенко живёт в Киеве.",
    "東京は日本の首都です。",
    "x",
    "Mr. and Mrs. Smith of New York sold 3,000 shares of ACME Corp. to Deutsche Bank. " * 9,
]


@dataclass(frozen=True)
class Difference:
    """How by_onnx ways to compute a tagger differ on some texts.

    Attributes:
        words: number of words.
        other_tags: number of words that get another tag.
        largest: largest difference of a probability.
    """

    words: int
    other_tags: int
    largest: float


class _Logits(nn.Module):
    """A tagger that returns only its scores."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Tensor) -> Tensor:
        scores: Tensor = self.model(**dict(zip(INPUTS, inputs, strict=False))).logits
        return scores


class _OpenLogits(_Logits):
    """An open tagger that returns its scores, and the vectors of sub-words as words of names."""

    def forward(self, *inputs: Tensor) -> Tensor:
        model: Any = self.model
        head = model.classifier
        states = model.base_model(**dict(zip(INPUTS, inputs, strict=False))).last_hidden_state
        return torch.cat([head(states), head.name(states)], -1)


def export_onnx(folder: str, kinds: tuple[str, ...]) -> dict[str, Difference]:
    """Writes ONNX files into the folder `onnx` of a checkpoint.

    Args:
        folder: the checkpoint.
        kinds: names of `finetune.tagger.onnx.NAMES`.

    Returns:
        Kind -> difference from torch.

    Raises:
        UserError: the folder is no tagger, it has an `onnx` folder that we did not make, or torch
            cannot export its architecture.
        RunError: the file says something else than torch.
    """
    if not Path(folder, "model.safetensors").is_file():
        raise UserError("give the folder of a tagger (model.safetensors in it)", folder)
    output = Path(folder, FOLDER)
    with made_whole(output, RECORD) as half, _quiet():
        tagger = Tagger.load(folder, device="cpu", backend="torch")
        try:
            _write(tagger.model, takes_cases(tagger.tokenizer), half / NAMES["onnx"])
            tagger.tokenizer.backend_tokenizer.save(str(half / TOKENIZER))
        except Exception as error:  # torch's exporter has many
            reason = str(error).strip().splitlines()[0]
            raise UserError(f"torch cannot export this architecture: {reason}", folder) from error
        if "int8" in kinds:
            _quantize(half)
        seal(Place(half / RECORD), record_of(folder, half, _facts(tagger)))
    differences = {kind: difference(tagger, folder, kind) for kind in kinds}
    unrounded = differences.get("onnx")
    if unrounded is not None and (unrounded.other_tags or unrounded.largest > TOLERANCE):
        raise RunError(
            f"{output}: differs from torch by {unrounded.largest:.1e} in a probability, and in "
            f"{unrounded.other_tags} of {unrounded.words} tags; report this architecture "
            "to us"
        )
    return differences


def _facts(tagger: Tagger) -> Facts:
    model, pad = tagger.model, tagger.tokenizer.pad_token_id
    head = head_of(model)
    calibration = getattr(model.config, "mention_scores", None)
    limit, scheme = longest_input(model), getattr(model.config, "tagging_scheme", None)
    facts = Facts(
        tagger.tags,
        head.name,
        limit,
        int(pad or 0),
        head.n_scores,
        calibration,
        scheme,
        takes_cases=takes_cases(tagger.tokenizer),
    )
    if not tagger.is_open:
        return facts
    types = tagger.trained_types
    return replace(facts, scores=facts.scores + SIZE, open_types=types, numbers=numbers_of(model))


def difference(tagger: Tagger, folder: str, kind: str) -> Difference:
    """Compares the predictions of a tagger with those of its ONNX file."""
    exported = Tagger.load(folder, device="cpu", backend=kind)
    pairs = list(
        zip(
            tagger.predictions(_TEXTS, probabilities=True),
            exported.predictions(_TEXTS, probabilities=True),
            strict=True,
        )
    )
    far = [
        np.abs(by_torch.probabilities - by_onnx.probabilities).max()  # type: ignore[operator]
        for by_torch, by_onnx in pairs
        if by_torch.words
    ]
    tags = [
        tag for by_torch, by_onnx in pairs for tag in zip(by_torch.tags, by_onnx.tags, strict=True)
    ]
    return Difference(
        len(tags), sum(by_torch != by_onnx for by_torch, by_onnx in tags), float(max(far))
    )


def _write(model: Any, with_cases: bool, path: Path) -> None:
    ids = torch.randint(5, model.config.vocab_size or 100, (2, 16))
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    inputs = [ids, mask, torch.zeros_like(ids)][: 3 if with_cases else 2]
    batch, length = torch.export.Dim("batch", min=1), torch.export.Dim("length", min=2)
    program = torch.onnx.export(
        (_OpenLogits if is_open(model) else _Logits)(model).eval(),
        tuple(inputs),
        dynamo=True,
        dynamic_shapes=(tuple({0: batch, 1: length} for _ in inputs),),
        input_names=list(INPUTS[: len(inputs)]),
        output_names=["logits"],
        verbose=False,
    )
    assert program is not None
    program.save(path)


def _quantize(folder: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic  # an extra installs it

    # A scale for each channel, and 7 bits: older processors saturate with 8. Of six ways this one
    # lost least F1.
    quantize_dynamic(
        folder / NAMES["onnx"],
        folder / NAMES["int8"],
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences the many notes of torch's exporter and of ONNX Runtime."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
