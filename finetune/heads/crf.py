"""A linear-chain conditional random field over tag scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class CRF(nn.Module):
    """Scores tag sequences by emissions and by transitions between neighbouring tags.

    Masked positions must be at the end of a sequence, and no sequence may be empty.

    Source: Lafferty et al. 2001; as used for tagging by Lample et al. 2016, section 2.2.
    """

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
