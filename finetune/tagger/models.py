"""Decoding heads: the best tag of each word, the best path of a CRF, or spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils.hub import cached_file

from finetune.data.views import in_words
from finetune.heads import spans, windows
from finetune.heads.crf import CRF
from finetune.heads.sequence import MODULE, StateHead, packed, tag_crf
from finetune.settings import NAMES, FitSettings
from finetune.words import bilstm, heads
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet
from pretrain.tagging import open_head
from pretrain.tagging.open_loss import OpenLoss
from pretrain.training.checkpoints import check_finite, check_vocabulary
from pretrain.training.models import HeadInitMap, check_length, load_model, load_tagger, tag_names
from pretrain.training.scores import best_label
from pretrain.training.subwords import IGNORED, token_loss
from pretrain.training.tokenizer import UNLOADABLE, load_config, load_tokenizer

_PREFIX = "crf."

Floats = npt.NDArray[np.float32]


class LinearHead(windows.LinearHead):
    """Tags each word by itself; it can be trained."""

    loss = staticmethod(token_loss)
    best = staticmethod(best_label)


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
    model: PreTrainedModel,
    settings: FitSettings,
    tokenizer: Any,
    labels: LabelSet,
    domains: Sequence[Sequence[str]],
) -> Head | OpenLoss:
    """Adds the head of the settings to a model that is to be fine-tuned.

    Args:
        model: model with a new linear layer.
        settings: settings of the fine-tuning.
        tokenizer: tokenizer of the model.
        labels: labels of the head.
        domains: types of the target and of the source.

    Raises:
        UserError: the head does not fit the model.
    """
    if settings.head in heads.KINDS:
        heads.add(model, settings, tokenizer, domains)
        return StateHead(model)
    if settings.head == open_head.NAME:
        model.config.open_types = words = in_words(labels.categories)
        return OpenLoss(model, tokenizer, list(words.values()))
    return CrfHead.add(model) if settings.head == "crf" else LinearHead()


_CLASSIFIERS = {spans.NAME: spans.add_heads, open_head.NAME: open_head.add_open_head}
"""Value of `tag_head` in a config -> puts a head in the place of transformers' own."""

_WEIGHTS = {
    "crf": (_PREFIX,),
    **dict.fromkeys(_CLASSIFIERS, ("classifier.",)),
    **dict.fromkeys(heads.KINDS, (f"{MODULE}.", "classifier.")),
}
"""Value of `tag_head` in a config -> beginnings of the names of weights that `_load_head` loads."""


def fresh_model(
    base: str,
    settings: FitSettings,
    train: Sequence[Sentence],
    labels: LabelSet,
    head_init_map: HeadInitMap | None,
) -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
    """Loads a tokenizer, and a model with a new head.

    Args:
        base: encoder, or name of a model over words.
        settings: settings of the fine-tuning.
        train: train sentences; models over words take their words from these.
        labels: labels of the head.
        head_init_map: see `load_model`.

    Raises:
        UserError: the encoder cannot be loaded.
    """
    if base in NAMES:
        return bilstm.build(base, train, labels, settings)
    if settings.head == open_head.NAME:
        model = _open_model(base, settings.max_subwords)
    else:
        model = load_model(base, labels, settings.max_subwords, head_init_map)
    if settings.head_dropout is not None:
        for name in ("dropout", "classifier_dropout"):  # as the architectures call it
            if isinstance(dropout := getattr(model, name, None), nn.Dropout):
                dropout.p = settings.head_dropout
    tokenizer = load_tokenizer(base)
    check_vocabulary(model, tokenizer, base)
    return tokenizer, model


def _open_model(base: str, max_subwords: int | None) -> PreTrainedModel:
    """Loads a model with an open head: its own, or a new one."""
    if getattr(load_config(base), "tag_head", None) == open_head.NAME:
        model = load_with_head(base)
        if max_subwords is not None:
            check_length(model, base, max_subwords)
        return model
    model = load_model(base, open_head.LABELS, max_subwords)
    open_head.add_open_head(model)
    return model


@dataclass(frozen=True)
class TorchForward:
    """Computes the scores of sub-words by a model; it can be pickled with its tagger."""

    model: PreTrainedModel

    @torch.inference_mode()
    def __call__(self, ids: npt.NDArray[np.int64], mask: npt.NDArray[np.int64]) -> Floats:
        """See `finetune.heads.windows.Forward`."""
        model = self.model.eval()  # type: ignore[no-untyped-call]
        texts, attention = (torch.from_numpy(array).to(model.device) for array in (ids, mask))
        scores: Floats = (
            model(input_ids=texts, attention_mask=attention).logits.float().cpu().numpy()
        )
        return scores


def word_tagger(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    max_subwords: int,
    batch_size: int = windows.BATCH,
    forward: windows.Forward | None = None,
    attend: bool = False,
) -> windows.WordTagger:
    """Scores words by a model of transformers.

    Args:
        model: tagger.
        tokenizer: tokenizer of the model.
        max_subwords: largest number of sub-words of a window, including special ones.
        batch_size: number of windows of a batch.
        forward: computes instead of the model.
        attend: see `WordTagger`.
    """
    return windows.WordTagger(
        forward or TorchForward(model),
        tokenizer.backend_tokenizer,
        int(tokenizer.pad_token_id or 0),
        spans.scores_of(model),
        max_subwords,
        batch_size,
        hasattr(model, MODULE),
        attend,
    )


def load_with_head(folder: str) -> PreTrainedModel:
    """Loads a tagger with the head of its checkpoint, also one that transformers does not know.

    Raises:
        UserError: there is no such checkpoint, or weights are missing.
    """
    model = load_tagger(folder, _WEIGHTS)
    _load_head(model, folder)
    return model


def _load_head(model: PreTrainedModel, folder: str) -> None:
    kind = str(getattr(model.config, "tag_head", "linear"))
    if kind not in _WEIGHTS:
        return
    try:
        if kind == "crf":
            CrfHead.add(model)
            module = model.get_submodule("crf")
        elif kind in _CLASSIFIERS:
            _CLASSIFIERS[kind](model)
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
