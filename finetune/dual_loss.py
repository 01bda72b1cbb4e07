"""The terms of DualNER's objective.

Source: Zeng et al. 2022 (DualNER), equations 1 to 10.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations

import torch
from torch import Tensor
from torch.nn import functional

from finetune.span_head import parts
from finetune.spans import paired, starts_and_ends


def gold_loss(scores: Tensor, tags: Tensor, mask: Tensor, heads: Collection[str]) -> Tensor:
    """Cross entropy of gold labels, summed over words: L_sequence + L_start + L_end.

    Args:
        scores: of three heads, (texts, words, width); of the tags alone where only they learn.
        tags: gold tag ids, (texts, words); what is masked is 0.
        mask: words that are labelled, (texts, words).
        heads: that learn: "sequence", "span".
    """
    if "span" not in heads:
        return functional.cross_entropy(scores[mask], tags[mask], reduction="sum")
    wanted = [tags if "sequence" in heads else None, *starts_and_ends(tags)]
    return _cross_entropies(scores, wanted, mask, _tags(scores))


def pseudo_loss(scores: Tensor, labels: tuple[Tensor, Tensor, Tensor], mask: Tensor) -> Tensor:
    """Cross entropy of the teacher's tags, starts and ends, summed over words.

    Args:
        scores: of three heads, (texts, words, width).
        labels: tags, starts, ends, each (texts, words).
        mask: words, (texts, words).
    """
    return _cross_entropies(scores, list(labels), mask, _tags(scores))


def _tags(scores: Tensor) -> int:
    """Number of tags: width = tags + 2 * (1 + types), tags = 1 + 2 * types."""
    return (scores.shape[-1] - 3) // 2 + 1


def _cross_entropies(
    scores: Tensor, wanted: list[Tensor | None], mask: Tensor, tags: int
) -> Tensor:
    total = scores.new_zeros(())
    for part, labels in zip(parts(scores, tags), wanted, strict=True):
        if labels is not None:
            total = total + functional.cross_entropy(part[mask], labels[mask], reduction="sum")
    return total


def self_loss(scores: Tensor, teacher: Tensor, mask: Tensor) -> Tensor:
    """Divergence from the teacher's own distribution, head by head, summed over words.

    The ablation "w/ selfKL" of Zeng et al. 2022, section 3.3.

    Args:
        scores: of the student's three heads, (texts, words, width).
        teacher: of the teacher's, likewise.
        mask: words, (texts, words).
    """
    total = scores.new_zeros(())
    tags = _tags(scores)
    for own, other in zip(parts(scores, tags), parts(teacher, tags), strict=True):
        total = total + functional.kl_div(
            own[mask].log_softmax(-1), other[mask].log_softmax(-1), reduction="sum",
            log_target=True,
        )  # fmt: skip
    return total


def entities(
    scores: Tensor, hidden: Tensor, mask: Tensor, languages: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Representations of the mentions that the span heads predict: start and end side by side.

    Args:
        scores: of three heads, (texts, words, width).
        hidden: what they saw, (texts, words, size).
        mask: words, (texts, words).
        languages: number of each text's, (texts,).

    Returns:
        Representations (mentions, 2 * size); type and language of each, (mentions,).
    """
    tags = _tags(scores)
    _, starts, ends = (part.argmax(-1) * mask for part in parts(scores.detach(), tags))
    stops = paired(starts, ends, (tags - 1) // 2)
    rows, first = stops.nonzero(as_tuple=True)
    last = stops[rows, first] - 1
    vectors = torch.cat([hidden[rows, first], hidden[rows, last]], dim=-1)
    return vectors, starts[rows, first], languages[rows]


def regularisation(vectors: Tensor, types: Tensor, languages: Tensor) -> Tensor:
    """Mean squared distance of a type's mean representations in two languages.

    The mean over all pairs of languages, and all types, of a batch; 0 where no type is in two. The
    paper's equation 9 is lost in the texts that we have; this is how we read its words.

    Args:
        vectors: of mentions, (mentions, size).
        types: of each.
        languages: likewise.
    """
    distances = []
    for kind in sorted(set(types.tolist())):
        of_kind = types == kind
        means = [vectors[of_kind & (languages == language)].mean(0)
                 for language in sorted(set(languages[of_kind].tolist()))]  # fmt: skip
        distances += [functional.mse_loss(one, other) for one, other in combinations(means, 2)]
    return torch.stack(distances).mean() if distances else vectors.new_zeros(())
