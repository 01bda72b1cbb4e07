"""Converts between tags, and starts and ends of spans, as tensors.

Tag ids are those of `nerbert.text.tags.LabelSet`: 0 for O, 2k - 1 for the B- and 2k for the I- of
the k-th type. Starts and ends are 0 for none, k for the k-th type.

Source: Zeng et al. 2022 (DualNER), section 2.2, `Sequential` and `ExtractSpan`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from finetune.heads.head import Floats, Head
from pretrain.training.models import tag_names


def pair_spans(start_logits: Any, end_logits: Any) -> Any:
    """Decodes the scores of span heads.

    The start, or end, at a word has the type with the highest score, or none. Each start is paired
    with the nearest end of its type at or after it and before the next start of any type. Starts
    and ends without a partner are dropped. So spans never overlap.

    Args:
        start_logits: scores (words, 1 + types), or (texts, words, 1 + types); class 0 is none.
        end_logits: scores of ends, with the same shape.

    Returns:
        Half-open spans (start, end, type) in order; types are counted from 1. With several texts, a
        list of spans for each text.

    Raises:
        ValueError: the shapes differ, or are of another form.

    >>> starts, ends = [[0, 2], [3, 0], [3, 0]], [[3, 0], [0, 2], [3, 0]]
    >>> pair_spans(starts, ends)
    [(0, 2, 1)]
    """
    start_scores, end_scores = torch.as_tensor(start_logits), torch.as_tensor(end_logits)
    if start_scores.shape != end_scores.shape or start_scores.dim() not in (2, 3):
        raise ValueError(
            f"start scores {tuple(start_scores.shape)}, end scores {tuple(end_scores.shape)}"
        )
    if start_scores.dim() == 2:
        pairs: list[Any] = pair_spans(start_scores.unsqueeze(0), end_scores.unsqueeze(0))
        return pairs[0]
    starts = start_scores.argmax(-1)
    stops = paired(starts, end_scores.argmax(-1), start_scores.shape[-1] - 1)
    spans: list[list[tuple[int, int, int]]] = [[] for _ in range(len(starts))]
    for row, place in stops.nonzero().tolist():
        spans[row].append((place, int(stops[row, place]), int(starts[row, place])))
    return spans


def paired(starts: Tensor, ends: Tensor, types: int) -> Tensor:
    """End (half-open) of the span that starts at each word, 0 without such a span (texts, words).

    Args:
        starts: type that starts at each word (texts, words).
        ends: type that ends at each word (texts, words).
        types: number of types.
    """
    length = starts.shape[1]
    place = torch.arange(length, device=starts.device).expand_as(starts)
    beyond = torch.full_like(place, length)
    own_place = place.where(starts > 0, beyond)
    following = torch.cat([_from_right(own_place)[:, 1:], beyond[:, :1]], dim=1)
    nearest = beyond
    for kind in range(1, types + 1):
        nearest = _from_right(place.where(ends == kind, beyond)).where(starts == kind, nearest)
    return (nearest + 1) * ((starts > 0) & (nearest < following))


def _from_right(places: Tensor) -> Tensor:
    """Smallest of each value and those after it, by row."""
    if not places.numel():
        return places
    return places.flip(1).cummin(1).values.flip(1)


def tag_ids(starts: Tensor, ends: Tensor, types: int) -> Tensor:
    """Converts starts and ends to tag ids (texts, words).

    Args:
        starts: type that starts at each word (texts, words).
        ends: type that ends at each word (texts, words).
        types: number of types.
    """
    if not starts.numel():
        return starts
    stops = paired(starts, ends, types)
    begins = stops > 0
    place = torch.arange(starts.shape[1], device=starts.device).expand_as(starts)
    origin = place.where(begins, torch.zeros_like(place)).cummax(1).values  # of the last span
    inside = place < stops.gather(1, origin)
    kind = starts.gather(1, origin)
    return torch.where(begins, 2 * starts - 1, torch.where(inside, 2 * kind, 0))


def starts_and_ends(tags: Tensor) -> tuple[Tensor, Tensor]:
    """Converts tag ids to starts and ends, each (texts, words); strict, like seqeval.

    Args:
        tags: tag ids (texts, words); 0 at padding.
    """
    if not tags.numel():
        return tags, tags
    kind = (tags + 1) // 2
    begins = tags % 2 == 1
    before = torch.cat([torch.zeros_like(kind[:, :1]), kind[:, :-1]], dim=1)
    goes_on = (tags > 0) & ~begins & (kind == before)
    place = torch.arange(tags.shape[1], device=tags.device).expand_as(tags)
    origin = place.where(~goes_on, torch.zeros_like(place)).cummax(1).values
    real = begins.gather(1, origin)  # tags after a stray I- are not a mention
    last = torch.cat([~goes_on[:, 1:], torch.ones_like(goes_on[:, :1])], dim=1)
    return kind * begins, kind * (real & last)


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


def split_scores(scores: Tensor, tags: int) -> tuple[Tensor, Tensor, Tensor]:
    """Splits concatenated scores into those of tags, starts and ends."""
    classes = (tags - 1) // 2 + 1
    return scores[..., :tags], scores[..., tags : tags + classes], scores[..., tags + classes :]


class SpanHead(Head):
    """Tags words by the scores of starts and ends; the scores of tags are not used.

    Source: Zeng et al. 2022 (DualNER), section 2.2: inference by the span layer.
    """

    name = "span"
    parts = ("classifier",)

    def __init__(self, model: PreTrainedModel) -> None:
        """Takes a model with three heads."""
        super().__init__(model)
        self._tags = len(tag_names(model))

    @classmethod
    def restore(cls, model: PreTrainedModel) -> None:
        """Replaces the head of a tagger by three heads."""
        model.classifier = ThreeHeads(
            model.config.hidden_size,
            len(tag_names(model)),
            getattr(model.config, "initializer_range", 0.02),
        )
        model.config.tag_head = cls.name

    @property
    def n_scores(self) -> int:
        return self._tags + 2 * ((self._tags - 1) // 2 + 1)

    def decode(self, logits: Floats) -> tuple[list[int], list[float]]:
        """Tag of each word, and probability of its span: of its start, times that of its end.

        Args:
            logits: shape (words, scores of three heads).
        """
        if not len(logits):
            return [], []
        _, starts, ends = (
            part.softmax(-1) for part in split_scores(torch.from_numpy(logits), self._tags)
        )
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
        chances: Floats = split_scores(torch.from_numpy(logits), self._tags)[0].softmax(-1).numpy()
        return chances


def labels_of(scores: Tensor, tags: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pseudo-labels for each head by the other: tags from spans, starts and ends from tags.

    Source: Zeng et al. 2022 (DualNER), equations 5 and 6.

    Args:
        scores: scores of three heads (texts, words, width); at padding, the first class must win.
        tags: number of tags.

    Returns:
        Tags by the span heads; starts and ends by the tagging head; each (texts, words).
    """
    by_tag, starts, ends = (part.argmax(-1) for part in split_scores(scores, tags))
    return (tag_ids(starts, ends, (tags - 1) // 2), *starts_and_ends(by_tag))
