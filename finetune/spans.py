"""Two ways to write mentions down: tags, and where spans start and end; and from one to the other.

Tag ids are those of `ontology.labels.LabelSet`: 0 for O, 2k - 1 for the B- and 2k for the I- of the
k-th type. Starts and ends are 0 for none, k for the k-th type.

Source: Zeng et al. 2022 (DualNER), section 2.2, `Sequential` and `ExtractSpan`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ontology.labels import spans_to_tags, tags_to_spans

__all__ = ["pair_spans", "paired", "spans_to_tags", "starts_and_ends", "tag_ids", "tags_to_spans"]


def pair_spans(start_logits: Any, end_logits: Any) -> Any:
    """Spans of a span head's scores.

    A word starts, or ends, the type that it scores highest, or none. Each start is paired with the
    nearest end of its type at or after it and before the next start of any type; what finds no
    partner is dropped. So spans never overlap: of two that would, the probabilities of their starts
    have decided.

    Args:
        start_logits: scores (words, 1 + types), or (texts, words, 1 + types); class 0 is none.
        end_logits: likewise.

    Returns:
        Half-open spans (start, end, type) in order, a list of them for each text if there are
        several; types are counted from 1.

    Raises:
        ValueError: the shapes differ, or are neither.

    >>> starts, ends = [[0, 2], [3, 0], [3, 0]], [[3, 0], [0, 2], [3, 0]]
    >>> pair_spans(starts, ends)
    [(0, 2, 1)]
    """
    one, other = torch.as_tensor(start_logits), torch.as_tensor(end_logits)
    if one.shape != other.shape or one.dim() not in (2, 3):
        raise ValueError(f"start scores {tuple(one.shape)}, end scores {tuple(other.shape)}")
    if one.dim() == 2:
        found: list[Any] = pair_spans(one.unsqueeze(0), other.unsqueeze(0))
        return found[0]
    starts = one.argmax(-1)
    stops = paired(starts, other.argmax(-1), one.shape[-1] - 1)
    spans: list[list[tuple[int, int, int]]] = [[] for _ in range(len(starts))]
    for row, place in stops.nonzero().tolist():
        spans[row].append((place, int(stops[row, place]), int(starts[row, place])))
    return spans


def paired(starts: Tensor, ends: Tensor, types: int) -> Tensor:
    """Where the span that starts at each word stops (half-open), 0 where none does.

    Args:
        starts: type that starts at each word, (texts, words).
        ends: type that ends there.
        types: how many there are.
    """
    length = starts.shape[1]
    place = torch.arange(length, device=starts.device).expand_as(starts)
    beyond = torch.full_like(place, length)
    here = place.where(starts > 0, beyond)
    following = torch.cat([_from_right(here)[:, 1:], beyond[:, :1]], dim=1)
    nearest = beyond
    for kind in range(1, types + 1):
        nearest = _from_right(place.where(ends == kind, beyond)).where(starts == kind, nearest)
    return (nearest + 1) * ((starts > 0) & (nearest < following))


def _from_right(places: Tensor) -> Tensor:
    """Least of each place and all behind it, by row."""
    if not places.numel():
        return places
    return places.flip(1).cummin(1).values.flip(1)


def tag_ids(starts: Tensor, ends: Tensor, types: int) -> Tensor:
    """Tags that say the same as starts and ends, (texts, words).

    Args:
        starts: type that starts at each word, (texts, words).
        ends: type that ends there.
        types: how many there are.
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
    """Starts and ends of the mentions that tags spell, each (texts, words); strict, as seqeval.

    Args:
        tags: ids, (texts, words); what is no word is 0.
    """
    if not tags.numel():
        return tags, tags
    kind = (tags + 1) // 2
    begins = tags % 2 == 1
    before = torch.cat([torch.zeros_like(kind[:, :1]), kind[:, :-1]], dim=1)
    goes_on = (tags > 0) & ~begins & (kind == before)
    place = torch.arange(tags.shape[1], device=tags.device).expand_as(tags)
    origin = place.where(~goes_on, torch.zeros_like(place)).cummax(1).values
    real = begins.gather(1, origin)  # a run that an I- opens is no mention
    last = torch.cat([~goes_on[:, 1:], torch.ones_like(goes_on[:, :1])], dim=1)
    return kind * begins, kind * (real & last)
