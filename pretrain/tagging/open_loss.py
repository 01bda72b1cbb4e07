"""How an open head is trained: mentions, and their types among candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from ontology.categories import ENTITY
from ontology.classes import ClassTree, spaced
from pretrain.tagging.open_head import TAGS, Types, name_vectors
from pretrain.training.subwords import IGNORED

_CHAIN = 0.45
"""Probability of each class of a chain to be a candidate."""
_KEPT = 0.9
"""Probability of a gold class to be a candidate: without it, none of the others is right."""
_OTHERS = 8
"""Candidates at random, at most; half as many more stand beside a gold class in the ontology."""


class OpenLoss:
    """The loss of an open head; all types are candidates."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        names: Sequence[str | None],
    ) -> None:
        """Takes the types.

        Args:
            model: model with an open head.
            tokenizer: its tokenizer.
            names: name of each type in words, by number; None for mentions of unknown type.
        """
        self._model, self._tokenizer = model, tokenizer
        self.names = [name for name in names if name is not None]
        self._is_typed = torch.tensor([name is not None for name in names])
        self._order = sorted(range(len(names)), key=lambda number: names[number] is None)
        self._types: Types | None = None

    def loss(self, outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        """The loss of a batch; see `pretrain.training.subwords.token_loss`.

        Args:
            outputs: output of the model, with `logits` (batch, length, 3 + size).
            labels: label ids (batch, length), `IGNORED` for sub-words without one.
            num_items_in_batch: number of labelled sub-words of the step.
        """
        self._types = None
        logits = outputs.logits.float()
        is_labelled = labels.ne(IGNORED)
        tags = torch.where(labels > 0, 2 - labels % 2, labels)
        total = functional.cross_entropy(
            logits[..., :TAGS].reshape(-1, TAGS),
            tags.view(-1),
            ignore_index=IGNORED,
            reduction="sum",
        )
        n_labelled = is_labelled.sum().clamp(min=1)
        items = n_labelled if num_items_in_batch is None else num_items_in_batch
        # Devices wait for the gradients of all weights, also if a batch has no typed mention.
        head: Any = self._model.get_submodule("classifier")
        total = total + 0.0 * torch.stack([weight.sum() for weight in head.parameters()]).sum()
        number = (labels - 1).div(2, rounding_mode="floor").clamp(min=0)
        typed = (labels > 0) & self._is_typed.to(labels.device)[number]
        if typed.any():
            kinds = self._kinds(logits[..., TAGS:][typed], number[typed])
            total = (
                total + kinds * n_labelled
            )  # as much as the tags, however few mentions there are
        return total / torch.as_tensor(items, device=total.device).clamp(min=1)

    def _kinds(self, vectors: Tensor, numbers: Tensor) -> Tensor:
        """Mean loss of the types of some sub-words."""
        gold, place = torch.unique(numbers, return_inverse=True)
        names, targets = self.candidates(gold.tolist())
        type_vectors = name_vectors(self._model, self._tokenizer, names)
        head: Any = self._model.get_submodule("classifier")
        return functional.cross_entropy(
            head.scores(vectors, type_vectors), targets.to(vectors.device)[place]
        )

    def candidates(self, gold: Sequence[int]) -> tuple[list[str], Tensor]:
        """Candidates for the types of a batch.

        Args:
            gold: the types, by number.

        Returns:
            The names of the candidates; for each type the number of the right one, or the number
            after the last one for none, shape (gold,).
        """
        return self.names, torch.tensor([self._order.index(number) for number in gold])

    @torch.no_grad()
    def best(self, logits: Tensor, labels: Any) -> Tensor:
        """Label ids at first sub-words (batch, length)."""
        gold = labels[0] if isinstance(labels, tuple | list) else labels
        if self._types is None:
            has_untyped = len(self.names) < len(self._order)
            self._types = Types.of(self._model, self._tokenizer, self.names, has_untyped)
        tags = torch.zeros_like(gold)
        for row, first in enumerate(gold.ne(IGNORED)):
            best_tags, _ = self._types.decode(logits[row][first].float().cpu().numpy())
            ids = [tag and 2 * self._order[(tag - 1) // 2] + 2 - tag % 2 for tag in best_tags]
            tags[row, first] = torch.tensor(ids, dtype=gold.dtype, device=gold.device)
        return tags


class ChainLoss(OpenLoss):
    """The loss of an open head on a corpus of links, with candidates that are drawn."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        categories: Sequence[str],
        tree: ClassTree,
        chains: float,
    ) -> None:
        """Prepares the candidates.

        Args:
            model: model with an open head.
            tokenizer: its tokenizer.
            categories: categories of the corpus, by number.
            tree: the classes.
            chains: share of the batches whose candidates are classes of whole chains; in the
                others they are the gold classes.
        """
        words = [None if name == ENTITY else spaced(name) for name in categories]
        super().__init__(model, tokenizer, words)
        self._chains = chains
        lines = [[] if name == ENTITY else [name, *tree.ancestors(name)] for name in categories]
        self._classes = sorted({name for line in lines for name in line})
        place = {name: number for number, name in enumerate(self._classes)}
        # The deepest class first: it is the right one.
        self._lines = [
            [place[name] for name in sorted(line, key=lambda name: (-tree.depth(name), name))]
            for line in lines
        ]
        parents = [set(tree.parents(name)) for name in self._classes]
        self._siblings = [
            [
                n
                for n, other_parents in enumerate(parents)
                if other_parents & parents_of_class and n != number
            ]
            for number, parents_of_class in enumerate(parents)
        ]
        self._own = [place.get(name, -1) for name in categories]

    def candidates(self, gold: Sequence[int]) -> tuple[list[str], Tensor]:
        """Draws candidates; the right one is the deepest class of the chain among them."""
        class_numbers: set[int] = set()
        by_chain = float(torch.rand(())) < self._chains
        for category in gold:
            line = self._lines[category] if by_chain else [self._own[category]]
            chance = _CHAIN if by_chain else _KEPT
            class_numbers.update(n for n in line if float(torch.rand(())) < chance)
        beside = [n for category in gold for n in self._siblings[self._own[category]]]
        for source, count in ((beside, _OTHERS // 2), (range(len(self._classes)), _OTHERS)):
            picks = torch.randint(len(source), (count,)) if len(source) else ()
            class_numbers.update(source[int(n)] for n in picks)
        chosen_ones = sorted(class_numbers)
        place = {n: row for row, n in enumerate(chosen_ones)}
        right = [
            next((place[n] for n in self._lines[category] if n in place), len(place))
            for category in gold
        ]
        return [spaced(self._classes[n]) for n in chosen_ones], torch.tensor(right)
