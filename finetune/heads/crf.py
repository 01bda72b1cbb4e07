"""The CRF head: a linear-chain conditional random field over the scores of the tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from finetune.heads.head import Floats, Head
from pretrain.training.models import tag_names
from pretrain.training.subwords import IGNORED

FORBIDDEN = -1e4  # not -inf, whose gradient is NaN


class CRF(nn.Module):
    """Scores tag sequences by emissions and by transitions between neighbouring tags.

    Masked positions must be at the end of a sequence, and no sequence may be empty.

    Source: Lafferty et al. 2001; as used for tagging by Lample et al. 2016, section 2.2.
    """

    keeps_float32 = True  # sums of 16 bits lose small terms

    def __init__(self, num_tags: int) -> None:
        """Initialises the transitions with small random values.

        Args:
            num_tags: number of tags.
        """
        super().__init__()
        self.start_transitions = nn.Parameter(torch.empty(num_tags).uniform_(-0.1, 0.1))
        self.end_transitions = nn.Parameter(torch.empty(num_tags).uniform_(-0.1, 0.1))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags).uniform_(-0.1, 0.1))

    def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None) -> Tensor:
        """Log likelihood of each tag sequence, shape (batch,).

        Args:
            emissions: scores (batch, length, tags).
            tags: tag ids (batch, length); masked ones are ignored.
            mask: whether there is a tag (batch, length); None for all positions.

        Raises:
            ValueError: the shapes differ, or a sequence is empty.
        """
        mask = self._checked(emissions, mask)
        if tags.shape != mask.shape:
            raise ValueError(f"tags {tuple(tags.shape)} for emissions {tuple(emissions.shape)}")
        return self._score(emissions, tags.where(mask, 0), mask) - self._partition(emissions, mask)

    def _checked(self, emissions: Tensor, mask: Tensor | None) -> Tensor:
        if emissions.dim() != 3 or emissions.shape[2] != len(self.transitions):
            raise ValueError(
                f"emissions {tuple(emissions.shape)}: not (batch, length, {len(self.transitions)})"
            )
        if mask is None:
            return emissions.new_ones(emissions.shape[:2], dtype=torch.bool)
        mask = mask.bool()
        if mask.shape != emissions.shape[:2]:
            raise ValueError(f"mask {tuple(mask.shape)} for emissions {tuple(emissions.shape)}")
        if not mask[:, 0].all() or (mask[:, 1:] & ~mask[:, :-1]).any():
            raise ValueError(
                "mask: true for at least the first position, and false at the end only"
            )
        return mask

    def _score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Unnormalised score of the tag sequences, (batch,)."""
        at_tags = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
        steps = self.transitions[tags[:, :-1], tags[:, 1:]]
        last = tags.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
        inner = (at_tags * mask).sum(1) + (steps * mask[:, 1:]).sum(1)
        return inner + self.start_transitions[tags[:, 0]] + self.end_transitions[last]

    def _partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Logarithm of the sum over all tag sequences, (batch,)."""
        alpha = self.start_transitions + emissions[:, 0]
        for place in range(1, emissions.shape[1]):
            following = (alpha.unsqueeze(2) + self.transitions).logsumexp(1) + emissions[:, place]
            # A sequence that has ended keeps its sum.
            alpha = following.where(mask[:, place].unsqueeze(1), alpha)
        return (alpha + self.end_transitions).logsumexp(1)

    @torch.no_grad()
    def decode(self, emissions: Tensor, mask: Tensor | None = None) -> list[list[int]]:
        """A best tag sequence of each row, without masked positions.

        Args:
            emissions: scores (batch, length, tags).
            mask: whether there is a tag (batch, length); None for all positions.

        Raises:
            ValueError: the shapes differ, or a sequence is empty.
        """
        mask = self._checked(emissions, mask)
        best = self.start_transitions + emissions[:, 0]
        origins: list[Tensor] = []
        # Behind the end of a sequence each tag is its own origin, so the path back stays on it.
        stay = torch.arange(emissions.shape[2], device=emissions.device).expand_as(best)
        for place in range(1, emissions.shape[1]):
            scores, origin = (best.unsqueeze(2) + self.transitions).max(1)
            valid = mask[:, place].unsqueeze(1)
            best = (scores + emissions[:, place]).where(valid, best)
            origins.append(origin.where(valid, stay))
        tag = (best + self.end_transitions).argmax(1)
        path = [tag]
        for origin in reversed(origins):
            tag = origin.gather(1, tag.unsqueeze(1)).squeeze(1)
            path.append(tag)
        rows = torch.stack(path[::-1], dim=1).tolist()
        lengths = mask.sum(1).tolist()
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]

    def marginals(self, emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """Probability of each tag at each position (batch, length, tags); 0 at masked positions.

        It is the gradient of the logarithm of the partition function by the emissions, in double
        precision, clamped to [0, 1].

        Args:
            emissions: scores (batch, length, tags).
            mask: whether there is a tag (batch, length); None for all positions.

        Raises:
            ValueError: the shapes differ, or a sequence is empty.
        """
        mask = self._checked(emissions, mask)
        with torch.enable_grad():
            scores = emissions.detach().double().requires_grad_()
            (gradient,) = torch.autograd.grad(self._partition(scores, mask).sum(), scores)
        return gradient.clamp(0, 1).to(emissions.dtype)


def tag_crf(names: Sequence[str]) -> CRF:
    """A CRF that forbids an I- tag without a B- or I- of its type before it."""
    crf = CRF(len(names))
    with torch.no_grad():
        for place, name in enumerate(names):
            if name.startswith("I"):
                crf.start_transitions[place] = FORBIDDEN
                allowed = [names.index(f"B{name[1:]}"), place]
                stray = [row for row in range(len(names)) if row not in allowed]
                crf.transitions[stray, place] = FORBIDDEN
    return crf


class CrfHead(Head):
    """Tags the words of a text together, by a CRF over the scores of their first sub-words.

    The CRF is a part of the model, `model.crf`, and is trained and saved with it. transformers
    itself loads the checkpoint without the CRF.
    """

    name = "crf"
    parts = ("crf",)

    def __init__(self, model: PreTrainedModel) -> None:
        """Takes a model that has a CRF."""
        super().__init__(model)
        crf: Any = model.get_submodule("crf")
        self._crf: CRF = crf

    @classmethod
    def restore(cls, model: PreTrainedModel) -> None:
        """Adds a CRF to a model; it forbids an I- tag without a B- or I- of its type before it."""
        model.add_module("crf", tag_crf(tag_names(model)))
        model.config.tag_head = cls.name

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
        return at_first_subwords(self._crf.decode(emissions, mask), gold)

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


def has_words(labels: Tensor) -> Tensor:
    """Whether a row has a first sub-word; others, such as U+200B alone, are empty sequences.

    Args:
        labels: label ids (batch, length), `IGNORED` except at first sub-words.
    """
    return labels.ne(IGNORED).any(1)


def packed(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Moves first sub-words together; rows without one are left out.

    Args:
        logits: scores (batch, length, tags).
        labels: label ids (batch, length), `IGNORED` except at first sub-words.

    Returns:
        Emissions (rows, words, tags), tags and mask (rows, words).
    """
    first, full = labels.ne(IGNORED), has_words(labels)
    logits, labels, first = logits[full], labels[full], first[full]
    # A stable sort keeps the order of the words; booleans cannot be sorted on all devices.
    order = (~first).to(torch.uint8).argsort(dim=1, stable=True)[:, : int(first.sum(1).max())]
    mask = first.gather(1, order)
    emissions = logits.gather(1, order.unsqueeze(2).expand(-1, -1, logits.shape[2]))
    return emissions, labels.gather(1, order), mask


def at_first_subwords(paths: Sequence[Sequence[int]], labels: Tensor) -> Tensor:
    """Puts the tags of words at their first sub-words (batch, length); undoes `packed`.

    Args:
        paths: tags of the words of each row that has some.
        labels: label ids (batch, length), `IGNORED` except at first sub-words.
    """
    tags = torch.zeros_like(labels)
    flat = [tag for path in paths for tag in path]
    tags[labels.ne(IGNORED)] = torch.tensor(flat, device=labels.device, dtype=labels.dtype)
    return tags
