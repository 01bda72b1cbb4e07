"""The heads of DualNER: scores of tags, starts and ends of spans, in one checkpoint.

Source: Zeng et al. 2022 (DualNER), section 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from finetune.heads.sequence import MODULE
from finetune.heads.spans import pair_spans, starts_and_ends, tag_ids
from pretrain.training.models import tag_names

NAME = "span"
"""Value of `config.tag_head` of such a checkpoint."""

Floats = npt.NDArray[np.float32]


class ThreeHeads(nn.Linear):
    """Three linear layers: over the tags, and over "none" and the types for starts and for ends.

    The scores are concatenated: tags, starts, ends. The weights of the first layer have the names
    of transformers' tagging head, so transformers loads the checkpoint as a tagger by tags.
    """

    def __init__(self, hidden_size: int, tags: int, std: float = 0.02) -> None:
        """Initialises the weights with small random values.

        Args:
            hidden_size: hidden size of the encoder.
            tags: number of tags: O, and B- and I- of each type.
            std: standard deviation of the weights.
        """
        super().__init__(hidden_size, tags)
        classes = (tags - 1) // 2 + 1
        self.start, self.end = nn.Linear(hidden_size, classes), nn.Linear(hidden_size, classes)
        for layer in (self, self.start, self.end):
            nn.init.normal_(layer.weight, std=std)
            nn.init.zeros_(layer.bias)
        self.hidden_too = False

    def forward(self, hidden: Tensor) -> Tensor:
        """Scores (..., tags + 2 * (1 + types)), followed by the hidden states in `with_hidden`."""
        scores = [super().forward(hidden), self.start(hidden), self.end(hidden)]
        return torch.cat([*scores, hidden] if self.hidden_too else scores, dim=-1)


@contextmanager
def with_hidden(model: Any) -> Iterator[None]:
    """In the block the scores of a model with three heads are followed by its hidden states.

    They are a part of the output because the replicas of DataParallel give nothing else back.
    """
    heads = getattr(model, "module", model).classifier
    heads.hidden_too = True
    try:
        yield
    finally:
        heads.hidden_too = False


def scores_of(model: PreTrainedModel) -> int:
    """Number of scores of each word; with a head over states, the size of the states."""
    if hasattr(model, MODULE):
        return int(model.config.hidden_size)
    tags = len(tag_names(model))
    return tags + 2 * ((tags - 1) // 2 + 1) if has_three_heads(model) else tags


def parts(scores: Tensor, tags: int) -> tuple[Tensor, Tensor, Tensor]:
    """Splits concatenated scores into those of tags, starts and ends."""
    classes = (tags - 1) // 2 + 1
    return scores[..., :tags], scores[..., tags : tags + classes], scores[..., tags + classes :]


def add_heads(model: PreTrainedModel) -> None:
    """Replaces the head of a tagger by three heads."""
    model.classifier = ThreeHeads(
        model.config.hidden_size,
        len(tag_names(model)),
        getattr(model.config, "initializer_range", 0.02),
    )
    model.config.tag_head = NAME


class SpanHead:
    """Tags words by the scores of starts and ends; the scores of tags are not used.

    Source: Zeng et al. 2022 (DualNER), section 2.2: inference by the span layer.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        """Takes a model with three heads."""
        self._tags = len(tag_names(model))

    def decode(self, logits: Floats) -> tuple[list[int], list[float]]:
        """Tag of each word, and probability of its span: of its start, times that of its end.

        Args:
            logits: shape (words, scores of three heads).
        """
        if not len(logits):
            return [], []
        _, starts, ends = (part.softmax(-1) for part in parts(torch.from_numpy(logits), self._tags))
        tags = [0] * len(logits)
        scores = (starts[:, 0] * ends[:, 0]).tolist()
        for first, stop, kind in pair_spans(starts, ends):
            tags[first] = 2 * kind - 1
            tags[first + 1 : stop] = [2 * kind] * (stop - first - 1)
            chance = float(starts[first, kind] * ends[stop - 1, kind])
            scores[first:stop] = [chance] * (stop - first)
        return tags, scores

    def probabilities(self, logits: Floats) -> Floats:
        """Probabilities of the tags of each word by the head for tags (words, tags)."""
        found: Floats = parts(torch.from_numpy(logits), self._tags)[0].softmax(-1).numpy()
        return found


def labels_of(scores: Tensor, tags: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pseudo-labels for each head by the other: tags from spans, starts and ends from tags.

    Source: Zeng et al. 2022 (DualNER), equations 5 and 6.

    Args:
        scores: scores of three heads (texts, words, width); at padding, the first class must win.
        tags: number of tags.

    Returns:
        Tags by the span heads; starts and ends by the tagging head; each (texts, words).
    """
    by_tag, starts, ends = (part.argmax(-1) for part in parts(scores, tags))
    return (tag_ids(starts, ends, (tags - 1) // 2), *starts_and_ends(by_tag))


def has_three_heads(model: Any) -> bool:
    """Whether a model has these heads."""
    return isinstance(getattr(model, "classifier", None), ThreeHeads)
