"""The loss terms of DualNER.

Source: Zeng et al. 2022 (DualNER), equations 1 to 10.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor
from torch.nn import functional

from finetune.papers.dualner.spans import paired, split_scores, starts_and_ends


def gold_loss(scores: Tensor, tags: Tensor, mask: Tensor, heads: Collection[str]) -> Tensor:
    """Cross entropy of gold labels, summed over words: L_sequence + L_start + L_end.

    Args:
        scores: scores of three heads (texts, words, width), or of the tagging head only.
        tags: gold tag ids (texts, words); 0 where masked.
        mask: whether a word is labelled (texts, words).
        heads: heads that are trained: "sequence", "span".
    """
    if "span" not in heads:
        return functional.cross_entropy(scores[mask], tags[mask], reduction="sum")
    gold_parts = [tags if "sequence" in heads else None, *starts_and_ends(tags)]
    return _cross_entropies(scores, gold_parts, mask, _tags(scores))


def pseudo_loss(scores: Tensor, labels: tuple[Tensor, Tensor, Tensor], mask: Tensor) -> Tensor:
    """Cross entropy of the teacher's tags, starts and ends, summed over words.

    Args:
        scores: scores of three heads (texts, words, width).
        labels: tags, starts and ends by the teacher, each (texts, words).
        mask: whether there is a word (texts, words).
    """
    return _cross_entropies(scores, list(labels), mask, _tags(scores))


def _tags(scores: Tensor) -> int:
    """Number of tags, because width = tags + 2 * (1 + types) and tags = 1 + 2 * types."""
    return (scores.shape[-1] - 3) // 2 + 1


def _cross_entropies(
    scores: Tensor, gold_parts: list[Tensor | None], mask: Tensor, tags: int
) -> Tensor:
    total = scores.new_zeros(())
    for part, labels in zip(split_scores(scores, tags), gold_parts, strict=True):
        if labels is not None:
            total = total + functional.cross_entropy(part[mask], labels[mask], reduction="sum")
    return total


def self_loss(scores: Tensor, teacher: Tensor, mask: Tensor) -> Tensor:
    """Divergence of each head from the same head of the teacher, summed over words.

    Source: Zeng et al. 2022, section 3.3, ablation "w/ selfKL".

    Args:
        scores: scores of the student's three heads (texts, words, width).
        teacher: scores of the teacher's three heads (texts, words, width).
        mask: whether there is a word (texts, words).
    """
    total = scores.new_zeros(())
    tags = _tags(scores)
    for student_part, teacher_part in zip(
        split_scores(scores, tags), split_scores(teacher, tags), strict=True
    ):
        total = total + functional.kl_div(
            student_part[mask].log_softmax(-1),
            teacher_part[mask].log_softmax(-1),
            reduction="sum",
            log_target=True,
        )
    return total


def entities(
    scores: Tensor, hidden: Tensor, mask: Tensor, languages: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Representations of the mentions that the span heads predict: first and last word, joined.

    Args:
        scores: scores of three heads (texts, words, width).
        hidden: hidden states before the heads (texts, words, size).
        mask: whether there is a word (texts, words).
        languages: number of the language of each text (texts,).

    Returns:
        Representations (mentions, 2 * size); types and languages of the mentions (mentions,).
    """
    tags = _tags(scores)
    _, starts, ends = (part.argmax(-1) * mask for part in split_scores(scores.detach(), tags))
    stops = paired(starts, ends, (tags - 1) // 2)
    rows, first = stops.nonzero(as_tuple=True)
    last = stops[rows, first] - 1
    vectors = torch.cat([hidden[rows, first], hidden[rows, last]], dim=-1)
    return vectors, starts[rows, first], languages[rows]


def sums(
    vectors: Tensor, types: Tensor, languages: Tensor, shape: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Sum and number of the representations of each type in each language.

    Args:
        vectors: representations of mentions (mentions, size).
        types: types of the mentions (mentions,).
        languages: numbers of the languages of the mentions (mentions,).
        shape: largest number of a type, and of a language, plus one.

    Returns:
        Sums (types, languages, size), numbers (types, languages).
    """
    cells, count = types * shape[1] + languages, shape[0] * shape[1]
    total = vectors.new_zeros(count, vectors.shape[-1]).index_add(0, cells, vectors)
    return total.view(*shape, -1), torch.bincount(cells, minlength=count).view(shape)


def regularisation(total: Tensor, counts: Tensor) -> Tensor:
    """Mean squared distance between the mean representations of a type in two languages.

    The mean is over all types and all pairs of languages; 0 if no type is in two languages. Our
    copy of the paper lacks equation 9; this follows its description in the text.

    Args:
        total: sums of representations (types, languages, size).
        counts: their numbers (types, languages).
    """
    distances = []
    for sum_of_kind, count in zip(total, counts, strict=True):
        means = sum_of_kind[count > 0] / count[count > 0].unsqueeze(1)
        first, second = torch.triu_indices(len(means), len(means), 1, device=means.device)
        distances.append((means[first] - means[second]).square().mean(-1))
    pairs = torch.cat(distances)
    return pairs.mean() if len(pairs) else total.sum() * 0.0
