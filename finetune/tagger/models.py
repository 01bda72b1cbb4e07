"""Decoding heads: the best tag of each word, the best path of a CRF, or spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils.hub import cached_file

from finetune.heads import spans
from finetune.heads.crf import CRF
from finetune.heads.sequence import MODULE, StateHead, packed, tag_crf
from finetune.settings import FitSettings
from finetune.words import heads
from nerbert.errors import UserError
from pretrain.training.checkpoints import check_finite
from pretrain.training.models import load_tagger, tag_names
from pretrain.training.scores import best_label
from pretrain.training.subwords import IGNORED, token_loss
from pretrain.training.tokenizer import UNLOADABLE

_PREFIX = "crf."

Floats = npt.NDArray[np.float32]


class LinearHead:
    """Tags each word by itself."""

    loss = staticmethod(token_loss)
    best = staticmethod(best_label)

    def decode(self, logits: Floats) -> tuple[list[int], list[float]]:
        """Best tag of each word, and its probability.

        Args:
            logits: shape (words, tags).
        """
        rows = torch.from_numpy(logits).softmax(-1)
        scores, tags = rows.max(-1)
        return tags.tolist(), scores.tolist()

    def probabilities(self, logits: Floats) -> Floats:
        """Probabilities of the tags of each word (words, tags)."""
        return torch.from_numpy(logits).softmax(-1).numpy()


class CrfHead:
    """Tags the words of a text together, by a CRF over the scores of their first sub-words.

    The CRF is a part of the model, `model.crf`, and is trained and saved with it. transformers
    itself loads the checkpoint without the CRF.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        """Takes a model that has a CRF."""
        crf: Any = model.get_submodule("crf")
        self._crf: CRF = crf

    @classmethod
    def add(cls, model: PreTrainedModel) -> CrfHead:
        """Adds a CRF to a model; it forbids an I- tag without a B- or I- of its type before it."""
        names = tag_names(model)
        model.add_module("crf", tag_crf(names))
        model.config.tag_head = "crf"
        return cls(model)

    def loss(self, outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        """Negative log likelihood, divided by labelled sub-words of the step as in `token_loss`."""
        emissions, tags, mask = packed(outputs.logits.float(), labels)
        total = -self._crf(emissions, tags, mask).sum()
        items = mask.sum() if num_items_in_batch is None else num_items_in_batch
        loss: Tensor = total / torch.as_tensor(items, device=total.device).clamp(min=1)
        return loss

    def best(self, logits: Tensor, labels: Any) -> Tensor:
        """Label ids at first sub-words (batch, length), by the best path."""
        gold = labels[0] if isinstance(labels, tuple | list) else labels
        emissions, _, mask = packed(logits.float(), gold)
        tags = torch.zeros_like(gold)
        paths = [tag for path in self._crf.decode(emissions, mask) for tag in path]
        tags[gold.ne(IGNORED)] = torch.tensor(paths, device=gold.device, dtype=gold.dtype)
        return tags

    def decode(self, logits: Floats) -> tuple[list[int], list[float]]:
        """Tags of the best path, and the marginal probability of each.

        Args:
            logits: shape (words, tags).
        """
        if not len(logits):
            return [], []
        emissions = torch.from_numpy(logits).unsqueeze(0).to(self._crf.transitions.device)
        (path,) = self._crf.decode(emissions)
        marginals = self._crf.marginals(emissions)[0]
        return path, marginals[range(len(path)), path].tolist()

    def probabilities(self, logits: Floats) -> Floats:
        """Marginal probabilities of the tags of each word (words, tags)."""
        if not len(logits):
            return logits
        emissions = torch.from_numpy(logits).unsqueeze(0).to(self._crf.transitions.device)
        chances: Floats = self._crf.marginals(emissions)[0].detach().float().cpu().numpy()
        return chances


Head = LinearHead | CrfHead | spans.SpanHead | StateHead


def head_of(model: PreTrainedModel) -> Head:
    """The decoder for the head of a model."""
    if hasattr(model, MODULE):
        return StateHead(model)
    if spans.has_three_heads(model):
        return spans.SpanHead(model)
    return CrfHead(model) if hasattr(model, "crf") else LinearHead()


def add_head(
    model: PreTrainedModel, settings: FitSettings, tokenizer: Any, domains: Sequence[Sequence[str]]
) -> Head:
    """Adds the head of the settings to a model that is to be fine-tuned.

    Args:
        model: model with a new linear layer.
        settings: settings of the fine-tuning.
        tokenizer: tokenizer of the model.
        domains: types of the target and of the source.

    Raises:
        UserError: the head does not fit the model.
    """
    if settings.head in heads.KINDS:
        heads.add(model, settings, tokenizer, domains)
        return StateHead(model)
    return CrfHead.add(model) if settings.head == "crf" else LinearHead()


_WEIGHTS = {
    "crf": (_PREFIX,),
    spans.NAME: ("classifier.",),
    **dict.fromkeys(heads.KINDS, (f"{MODULE}.", "classifier.")),
}
"""Value of `tag_head` in a config -> beginnings of the names of weights that `_load_head` loads."""


def load_with_head(folder: str) -> PreTrainedModel:
    """Loads a tagger with the head of its checkpoint, also one that transformers does not know.

    Raises:
        UserError: there is no such checkpoint, or weights are missing.
    """
    model = load_tagger(folder, _WEIGHTS)
    _load_head(model, folder)
    return model


def _load_head(model: PreTrainedModel, folder: str) -> None:
    kind = getattr(model.config, "tag_head", "linear")
    if kind not in _WEIGHTS:
        return
    try:
        if kind == "crf":
            CrfHead.add(model)
            module = model.get_submodule("crf")
        elif kind == spans.NAME:
            spans.add_heads(model)
            module = model.get_submodule("classifier")
        else:
            heads.restore(model)
            module = model.get_submodule(MODULE)
        file = cached_file(folder, "model.safetensors")
        assert file is not None
        prefix = _WEIGHTS[kind][0]
        weights = load_file(file)
        state = {
            name.removeprefix(prefix): value
            for name, value in weights.items()
            if name.startswith(prefix)
        }
        module.load_state_dict(state)
    except UNLOADABLE as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"its head {kind!r} cannot be loaded ({reason})", folder) from error
    check_finite(module, folder)
