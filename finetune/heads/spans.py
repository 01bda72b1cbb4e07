"""Converts between tags, and starts and ends of spans, as tensors.

Tag ids are those of `nerbert.text.tags.LabelSet`: 0 for O, 2k - 1 for the B- and 2k for the I- of
the k-th type. Starts and ends are 0 for none, k for the k-th type.

Source: Zeng et al. 2022 (DualNER), section 2.2, `Sequential` and `ExtractSpan`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
    """End (half-open) of the span that starts at each word, 0 without such a span (texts, words).

    Args:
        starts: type that starts at each word (texts, words).
        ends: type that ends at each word (texts, words).
        types: number of types.
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
