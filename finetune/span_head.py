"""DualNER's heads: tags, starts and ends of each word, side by side in one checkpoint.

Source: Zeng et al. 2022 (DualNER), section 2.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from finetune.spans import pair_spans, starts_and_ends, tag_ids
from pretrain.tagging import tag_names

NAME = "span"
"""What `config.tag_head` says of such a checkpoint."""

Floats = npt.NDArray[np.float32]


class ThreeHeads(nn.Linear):
    """A linear layer over the tags, and two over the types and none, for starts and ends.

    The scores stand side by side: tags, starts, ends. The first layer's weights have the names that
    transformers gives a tagging head, so it loads the checkpoint too, as a tagger by tags.
    """

    def __init__(self, hidden_size: int, tags: int, std: float = 0.02) -> None:
        """Draws small random weights.

        Args:
            hidden_size: of the encoder.
            tags: how many: O, and B- and I- of each type.
            std: deviation of the weights.
        """
        super().__init__(hidden_size, tags)
        classes = (tags - 1) // 2 + 1
        self.start, self.end = nn.Linear(hidden_size, classes), nn.Linear(hidden_size, classes)
        for layer in (self, self.start, self.end):
            nn.init.normal_(layer.weight, std=std)
            nn.init.zeros_(layer.bias)
        self.seen: Tensor | None = None

    def forward(self, hidden: Tensor) -> Tensor:
        """Scores (..., tags + 2 * (1 + types)); keeps what it saw, for the regulariser."""
        self.seen = hidden
        return torch.cat([super().forward(hidden), self.start(hidden), self.end(hidden)], dim=-1)


def scores_of(model: PreTrainedModel) -> int:
    """How many scores a tagger gives each word."""
    tags = len(tag_names(model))
    return tags + 2 * ((tags - 1) // 2 + 1) if has_three_heads(model) else tags


def parts(scores: Tensor, tags: int) -> tuple[Tensor, Tensor, Tensor]:
    """Scores of tags, starts and ends, from side by side."""
    classes = (tags - 1) // 2 + 1
    return scores[..., :tags], scores[..., tags : tags + classes], scores[..., tags + classes :]


def add_heads(model: PreTrainedModel) -> None:
    """Puts the three heads in place of a tagger's own."""
    model.classifier = ThreeHeads(
        model.config.hidden_size, len(tag_names(model)),
        getattr(model.config, "initializer_range", 0.02),
    )  # fmt: skip
    model.config.tag_head = NAME


class SpanHead:
    """Words are tagged by the spans that start and end at them; the tags' own scores are not used.

    Source: Zeng et al. 2022 (DualNER), section 2.2: inference by the span layer.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        """Takes a model with three heads."""
        self._tags = len(tag_names(model))

    def decode(self, logits: Floats) -> tuple[list[int], list[float]]:
        """Tag of each word, and the probability of its span: that of its start, times its end's.

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


def labels_of(scores: Tensor, tags: int) -> tuple[Tensor, Tensor, Tensor]:
    """What each paradigm teaches the other: tags from the spans, starts and ends from the tags.

    Source: Zeng et al. 2022 (DualNER), equations 5 and 6.

    Args:
        scores: of three heads, (texts, words, width); of what is no word, none wins everywhere.
        tags: how many.

    Returns:
        Tags by the span head; starts and ends by the tagging head; each (texts, words).
    """
    by_tag, starts, ends = (part.argmax(-1) for part in parts(scores, tags))
    return (tag_ids(starts, ends, (tags - 1) // 2), *starts_and_ends(by_tag))


def has_three_heads(model: Any) -> bool:
    """Whether a model has these heads."""
    return isinstance(getattr(model, "classifier", None), ThreeHeads)
