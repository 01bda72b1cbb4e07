"""Models of taggers: how a new one is made, and how its words are scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from finetune.heads import windows
from finetune.heads.head import Floats, head_class, head_of
from finetune.parts import models
from finetune.settings import FitSettings
from finetune.tagger.shipped import folder_of
from nerbert.seams import load
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet
from pretrain.training.checkpoints import check_vocabulary
from pretrain.training.letter_cases import takes_cases
from pretrain.training.models import HeadInitMap
from pretrain.training.tokenizer import load_tokenizer


def fresh_model(
    base: str,
    settings: FitSettings,
    train: Sequence[Sentence],
    labels: LabelSet,
    head_init_map: HeadInitMap | None,
) -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
    """Loads a tokenizer, and a model with a new linear layer, for `Head.add`.

    Args:
        base: encoder, shipped tagger, or name of a model without pre-training.
        settings: settings of the fine-tuning.
        train: train sentences; models over words take their words from these.
        labels: labels of the head.
        head_init_map: see `load_model`.

    Raises:
        UserError: the encoder cannot be loaded.
    """
    if base in models():
        pair: tuple[PreTrainedTokenizerFast, PreTrainedModel]
        pair = load(models()[base].build)(base, train, labels, settings)
        return pair
    base = folder_of(base)
    model = head_class(settings.head).new_model(base, settings, labels, head_init_map)
    if settings.head_dropout is not None:
        for name in ("dropout", "classifier_dropout"):  # as the architectures call it
            if isinstance(dropout := getattr(model, name, None), nn.Dropout):
                dropout.p = settings.head_dropout
    tokenizer = load_tokenizer(base)
    check_vocabulary(model, tokenizer, base)
    return tokenizer, model


@dataclass(frozen=True)
class TorchForward:
    """Computes the scores of sub-words by a model; it can be pickled with its tagger."""

    model: PreTrainedModel

    @torch.inference_mode()
    def __call__(self, *arrays: npt.NDArray[np.int64]) -> Floats:
        """See `finetune.heads.windows.Forward`."""
        model = self.model.eval()  # type: ignore[no-untyped-call]
        inputs = {
            name: torch.from_numpy(array).to(model.device)
            for name, array in zip(windows.INPUTS, arrays, strict=False)
        }
        scores: Floats = model(**inputs).logits.float().cpu().numpy()
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
    head = head_of(model)
    return windows.WordTagger(
        forward or TorchForward(model),
        tokenizer.backend_tokenizer,
        int(tokenizer.pad_token_id or 0),
        head.n_scores,
        max_subwords,
        batch_size,
        head.are_states,
        attend,
        takes_cases(tokenizer),
    )
