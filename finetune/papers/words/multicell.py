"""The multi-cell compositional LSTM: a cell for each entity type, and one composed of them.

Source: Jia and Zhang 2020, ACL, sections 3 and 4. Two places are not clear in the paper: the
attention of both directions is averaged as probabilities, and the losses have the weight 1. Its
released code (github.com/jiachenwestlake/Multi-Cell_LSTM) gives the tags of the target 1.0, 1.6 or
2.0, by the set, which `target_weight` sets.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from finetune.heads.head import SOURCE, TARGET
from finetune.papers.words.states import DomainTags, StateHead, Words, types_of


class Cells(nn.Module):
    """One direction of the LSTM."""

    def __init__(self, size: int, hidden: int, types: int, domains: int = 2) -> None:
        """Initialises the weights at random.

        Args:
            size: size of the words' states.
            hidden: size of a cell.
            types: number of entity types, with O.
            domains: number of domains, which have their own attention.
        """
        super().__init__()
        self.hidden, self.types = hidden, types
        self.typed_input = nn.Linear(size, types * 2 * hidden)
        self.typed_hidden = nn.Linear(hidden, types * 2 * hidden, bias=False)
        self.whole_input = nn.Linear(size, 3 * hidden)
        self.whole_hidden = nn.Linear(hidden, 3 * hidden, bias=False)
        self.query = nn.ModuleList(nn.Linear(hidden, 2 * hidden, False) for _ in range(domains))
        self.key = nn.ModuleList(nn.Linear(hidden, 2 * hidden, False) for _ in range(domains))
        self.weight = nn.Parameter(torch.empty(domains, 2 * hidden))
        bound = (2 * hidden) ** -0.5
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(
        self, states: Tensor, domain: int, has_type: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Runs over the words from left to right.

        Args:
            states: states of the words (texts, words, size).
            domain: domain of the texts.
            has_type: whether the domain has a type (types,).

        Returns:
            Hidden states (texts, words, hidden), cells of the types (texts, words, types, hidden),
            and their attention (texts, words, types).
        """
        typed = self.typed_input(states).unflatten(2, (self.types, 2 * self.hidden))
        whole_word = self.whole_input(states)
        cell = hidden = states.new_zeros(len(states), self.hidden)
        outputs = []
        for place in range(states.shape[1]):
            step = self.typed_hidden(hidden).unflatten(1, (self.types, 2 * self.hidden))
            gate, new = (typed[:, place] + step).chunk(2, -1)
            gate = gate.sigmoid()
            cells = gate * new.tanh() + (1 - gate) * cell.unsqueeze(1)
            enter, leave, centre = (whole_word[:, place] + self.whole_hidden(hidden)).chunk(3, -1)
            attention = self._attention(centre.tanh(), cells, domain, has_type)
            composed = (attention.unsqueeze(2) * cells).sum(1)
            cell = (1 - enter.sigmoid()) * cell + enter.sigmoid() * composed
            hidden = leave.sigmoid() * cell.tanh()
            outputs.append((hidden, cells, attention))
        hiddens, cells, attentions = (torch.stack(part, 1) for part in zip(*outputs, strict=True))
        return hiddens, cells, attentions

    def _attention(self, centre: Tensor, cells: Tensor, domain: int, has_type: Tensor) -> Tensor:
        """Additive attention of the composed cell to the cells of the types (texts, types)."""
        asked = self.query[domain](centre).unsqueeze(1) + self.key[domain](cells)
        scores = asked.tanh() @ self.weight[domain]
        chances: Tensor = scores.masked_fill(~has_type, float("-inf")).softmax(1)
        return chances


class MultiCell(nn.Module):
    """The LSTM in both directions, with the tags of each domain."""

    keeps_float32 = True
    has_type: Tensor

    def __init__(
        self,
        size: int,
        names: Sequence[str],
        domains: Sequence[Sequence[str]],
        hidden: int = 200,
        dropout: float = 0.5,
        target_weight: float = 1.0,
    ) -> None:
        """Initialises the weights at random.

        Args:
            size: size of the words' states.
            names: all tags; O is the first.
            domains: types of each domain.
            hidden: size of the hidden states, of both directions.
            dropout: share of numbers that are dropped before and after the LSTM.
            target_weight: weight of the tags of the target.
        """
        super().__init__()
        types = types_of(names)
        self.tags = len(names)
        self.dropout = nn.Dropout(dropout)
        self.forwards = Cells(size, hidden // 2, 1 + len(types))
        self.backwards = Cells(size, hidden // 2, 1 + len(types))
        self.domains = DomainTags(2 * (hidden // 2), names, domains, target_weight)
        self.type_weights = nn.Parameter(torch.empty(1 + len(types), 2 * (hidden // 2)))
        self.type_biases = nn.Parameter(torch.zeros(1 + len(types)))
        nn.init.xavier_uniform_(self.type_weights)
        type_rows = [[True, *(name in of_domain for name in types)] for of_domain in domains]
        self.register_buffer("has_type", torch.tensor(type_rows), persistent=False)

    def forward(self, words: Words) -> Tensor:
        """Sum of the losses of tags, of types by their cells, and of attention."""
        total = words.states.new_zeros(())
        for domain in (TARGET, SOURCE):
            if (part := words.where(domain)) is not None:
                hidden, by_cell, attention = self._read(part.states, part.mask, domain)
                total = total + self.domains(hidden, part.tags, part.mask, domain)
                types = ((part.tags + 1) // 2)[part.mask]
                total = total + functional.cross_entropy(by_cell[part.mask], types, reduction="sum")
                total = total + functional.nll_loss(
                    attention[part.mask].clamp(min=1e-30).log(), types, reduction="sum"
                )
        return total

    def _read(self, states: Tensor, mask: Tensor, domain: int) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states, scores of types by their cells, and mean attention, of all words."""
        states, has_type = self.dropout(states), self.has_type[domain]
        order = _reversed(mask)
        ahead = self.forwards(states, domain, has_type)
        back = self.backwards(_ordered(states, order), domain, has_type)
        hidden, cells, attention = zip(ahead, (_ordered(part, order) for part in back), strict=True)
        both_ways = self.dropout(torch.cat(cells, -1))
        scores = (both_ways * self.type_weights).sum(-1) + self.type_biases
        scores = scores.masked_fill(~has_type, float("-inf"))
        return self.dropout(torch.cat(hidden, -1)), scores, (attention[0] + attention[1]) / 2

    def tag(self, states: Tensor, mask: Tensor) -> tuple[list[list[int]], Tensor]:
        """Tags of the target, and probabilities of all tags (texts, words, tags)."""
        return self.domains.best(self._read(states, mask, TARGET)[0], mask)


def _reversed(mask: Tensor) -> Tensor:
    """Order of the words of each text from right to left; padding stays (texts, words)."""
    places = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)


def _ordered(values: Tensor, order: Tensor) -> Tensor:
    """Values of words (texts, words, ...) in another order (texts, words)."""
    places = order.reshape(*order.shape, *[1] * (values.dim() - 2)).expand_as(values)
    return values.gather(1, places)


class MultiCellHead(StateHead):
    """The multi-cell LSTM as the head of the words' vectors, or of an encoder."""

    name = "multicell"
    module = MultiCell
