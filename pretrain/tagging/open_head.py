"""The open head: it finds mentions of any type, and compares them with the names of types.

Sub-words and names ("political party") are encoded by the same encoder, and compared by the cosine
of their vectors. A corpus of links teaches it: each mention has a class, and the classes above it
in the ontology are names for it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from nerbert.text.tags import tags_to_spans
from ontology.categories import ENTITY
from ontology.classes import ClassTree, spaced
from pretrain.training.subwords import IGNORED

NAME = "open"
"""Value of `config.tag_head` of such a checkpoint."""
TAGS = 3
"""Number of tags without types: O, B and I."""

Floats = npt.NDArray[np.float32]
_TAGS = ("O", f"B-{ENTITY}", f"I-{ENTITY}")

SIZE = 256
"""Size of the vectors that are compared."""
_CHAIN = 0.45
"""Probability of each class of a chain to be a candidate."""
_KEPT = 0.9
"""Probability of a gold class to be a candidate: without it, none of the others is right."""
_OTHERS = 8
"""Candidates at random, at most; half as many more stand beside a gold class in the ontology."""


class OpenHead(nn.Linear):
    """Scores of O, B and I, followed by a vector that is compared with those of names.

    The weights of the first layer have the names of transformers' tagging head, so transformers
    loads the checkpoint as a tagger of mentions without types.
    """

    def __init__(self, hidden_size: int, std: float = 0.02) -> None:
        """Initialises the weights at random."""
        super().__init__(hidden_size, TAGS)
        self.word, self.name = (nn.Linear(hidden_size, SIZE) for _ in range(2))
        nn.init.normal_(self.weight, std=std)
        # Words are near their names from the start, as far as the encoder knows them.
        nn.init.orthogonal_(self.word.weight)
        with torch.no_grad():
            self.name.weight.copy_(self.word.weight)
        for layer in (self, self.word, self.name):
            nn.init.zeros_(layer.bias)
        self.scale = nn.Parameter(torch.tensor([2.3]))  # logarithm
        self.none = nn.Parameter(torch.tensor([0.0]))

    def forward(self, hidden: Tensor) -> Tensor:
        """Scores and vectors (..., 3 + size)."""
        vectors = functional.normalize(self.word(hidden), dim=-1)
        return torch.cat([super().forward(hidden), vectors], -1)

    def scores(self, vectors: Tensor, names: Tensor) -> Tensor:
        """Scores of types, and of none of them.

        Args:
            vectors: vectors of sub-words (words, size).
            names: vectors of names (types, size).

        Returns:
            Shape (words, types + 1).
        """
        return scaled(vectors, names, self.none, self.scale)


def scaled(vectors: Tensor, names: Tensor, none: Tensor, scale: Tensor) -> Tensor:
    """Scores by the vectors and the two numbers of an open head; see `OpenHead.scores`."""
    cosines = vectors @ names.T
    return torch.cat([cosines, none.expand(len(vectors), 1)], -1) * scale.exp()


def add_open_head(model: PreTrainedModel) -> None:
    """Replaces the head of a tagger with three tags by an open head."""
    std = getattr(model.config, "initializer_range", 0.02)
    model.classifier = OpenHead(model.config.hidden_size, std)
    model.config.tag_head = NAME


def is_open(model: Any) -> bool:
    """Whether a model has an open head."""
    return isinstance(getattr(model, "classifier", None), OpenHead)


def name_vectors(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, names: Sequence[str]
) -> Tensor:
    """Vectors of names in words, shape (names, size)."""
    head: Any = model.get_submodule("classifier")
    batch = tokenizer(
        list(names), padding=True, return_tensors="pt", return_special_tokens_mask=True
    ).to(model.device)
    inner = (1 - batch.pop("special_tokens_mask")).unsqueeze(-1)
    states = model.base_model(**batch).last_hidden_state
    means = (states * inner).sum(1) / inner.sum(1).clamp(min=1)
    return functional.normalize(head.name(means), dim=-1)


class OpenLoss:
    """The loss of an open head: mentions, and their types among candidates of each batch."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        categories: Sequence[str],
        tree: ClassTree,
        chains: float,
    ) -> None:
        """Prepares the names.

        Args:
            model: model with an open head.
            tokenizer: its tokenizer.
            categories: categories of the corpus, by number.
            tree: the classes.
            chains: share of the batches whose candidates are classes of whole chains; in the
                others they are the gold classes.
        """
        self._model, self._tokenizer, self._chains = model, tokenizer, chains
        lines = [[] if name == ENTITY else [name, *tree.ancestors(name)] for name in categories]
        self._names = sorted({name for line in lines for name in line})
        place = {name: number for number, name in enumerate(self._names)}
        # The deepest class first: it is the right one.
        self._lines = [
            [place[name] for name in sorted(line, key=lambda name: (-tree.depth(name), name))]
            for line in lines
        ]
        parents = [set(tree.parents(name)) for name in self._names]
        self._siblings = [
            [n for n, others in enumerate(parents) if others & mine and n != number]
            for number, mine in enumerate(parents)
        ]
        self._own = [place.get(name, -1) for name in categories]
        self._is_typed = torch.tensor([name != ENTITY for name in categories])
        self.types = [spaced(name) for name in categories if name != ENTITY]
        self._begins = [
            2 * number + 1 for number, name in enumerate(categories) if name != ENTITY
        ] + [2 * number + 1 for number, name in enumerate(categories) if name == ENTITY]
        self._decoder: Types | None = None

    def __call__(self, outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        """The loss of a batch; see `pretrain.training.subwords.token_loss`.

        Args:
            outputs: output of the model, with `logits` (batch, length, 3 + size).
            labels: label ids of the corpus (batch, length), `IGNORED` for sub-words without one.
            num_items_in_batch: number of labelled sub-words of the step.
        """
        self._decoder = None
        logits = outputs.logits.float()
        is_labelled = labels.ne(IGNORED)
        tags = torch.where(labels > 0, 2 - labels % 2, labels)
        total = functional.cross_entropy(
            logits[..., :TAGS].reshape(-1, TAGS),
            tags.view(-1),
            ignore_index=IGNORED,
            reduction="sum",
        )
        own = is_labelled.sum().clamp(min=1)
        items = own if num_items_in_batch is None else num_items_in_batch
        # Devices wait for the gradients of all weights, also if a batch has no typed mention.
        head: Any = self._model.get_submodule("classifier")
        total = total + 0.0 * torch.stack([weight.sum() for weight in head.parameters()]).sum()
        category = (labels - 1).div(2, rounding_mode="floor").clamp(min=0)
        typed = (labels > 0) & self._is_typed.to(labels.device)[category]
        if typed.any():
            kinds = self._kinds(logits[..., TAGS:][typed], category[typed])
            total = total + kinds * own  # as much as the tags, however few mentions there are
        return total / torch.as_tensor(items, device=total.device).clamp(min=1)

    def _kinds(self, vectors: Tensor, categories: Tensor) -> Tensor:
        """Mean loss of the types of some sub-words."""
        gold, number = torch.unique(categories, return_inverse=True)
        candidates, targets = self._draw(gold.tolist())
        names = [spaced(self._names[n]) for n in candidates]
        found = name_vectors(self._model, self._tokenizer, names)
        head: Any = self._model.get_submodule("classifier")
        return functional.cross_entropy(
            head.scores(vectors, found), targets.to(vectors.device)[number]
        )

    def _draw(self, gold: Sequence[int]) -> tuple[list[int], Tensor]:
        """Draws candidates.

        Args:
            gold: categories of the batch.

        Returns:
            The candidates; for each category the number of the right one, the deepest class of its
            chain among them, or the number after the last one for none, shape (gold,).
        """
        drawn: set[int] = set()
        by_chain = float(torch.rand(())) < self._chains
        for category in gold:
            line = self._lines[category] if by_chain else [self._own[category]]
            chance = _CHAIN if by_chain else _KEPT
            drawn.update(n for n in line if float(torch.rand(())) < chance)
        beside = [n for category in gold for n in self._siblings[self._own[category]]]
        for source, count in ((beside, _OTHERS // 2), (range(len(self._names)), _OTHERS)):
            chosen = torch.randint(len(source), (count,)) if len(source) else ()
            drawn.update(source[int(n)] for n in chosen)
        candidates = sorted(drawn)
        place = {n: row for row, n in enumerate(candidates)}
        none = len(candidates)
        right = [
            next((place[n] for n in self._lines[category] if n in place), none) for category in gold
        ]
        return candidates, torch.tensor(right)

    @torch.no_grad()
    def best(self, logits: Tensor, labels: Any) -> Tensor:
        """Label ids at first sub-words (batch, length), with the corpus's categories as types."""
        gold = labels[0] if isinstance(labels, tuple | list) else labels
        if self._decoder is None:
            self._decoder = Types.of(self._model, self._tokenizer, self.types, keeps_others=True)
        tags = torch.zeros_like(gold)
        for row, first in enumerate(gold.ne(IGNORED)):
            found, _ = self._decoder.decode(logits[row][first].float().cpu().numpy())
            ids = [tag and self._begins[(tag - 1) // 2] + (tag - 1) % 2 for tag in found]
            tags[row, first] = torch.tensor(ids, dtype=gold.dtype, device=gold.device)
        return tags


class Types:
    """Tags words by the scores of an open head, with some types."""

    def __init__(
        self, names: Tensor, none: Tensor, scale: Tensor, keeps_others: bool = False
    ) -> None:
        """Takes the vectors of the types' names.

        Args:
            names: vectors of the names, shape (types, size).
            none: cosine of what is of none of the types, shape (1,).
            scale: logarithm of the factor of the cosines, shape (1,).
            keeps_others: whether mentions of none of the types are kept, as of a further type.
        """
        self._head = names, none, scale
        self._types, self._keeps_others = len(names), keeps_others

    @classmethod
    @torch.no_grad()
    def of(
        cls,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        names: Sequence[str],
        keeps_others: bool = False,
    ) -> Types:
        """Encodes the names of types, in words."""
        was_training = model.training
        model.eval()  # type: ignore[no-untyped-call]
        vectors = name_vectors(model, tokenizer, names)
        model.train(was_training)
        head: Any = model.get_submodule("classifier")
        none, scale = (part.detach().float().cpu() for part in (head.none, head.scale))
        return cls(vectors.float().cpu(), none, scale, keeps_others)

    def decode(self, logits: Floats) -> tuple[list[int], list[float]]:
        """Tag of each word, and its probability.

        Args:
            logits: scores and vectors, shape (words, 3 + size).
        """
        parts, kinds = self._scores(logits)
        tags = [0] * len(logits)
        scores: list[float] = parts[:, 0].tolist()
        spans = tags_to_spans([_TAGS[tag] for tag in parts.argmax(-1).tolist()])
        for first, end, _ in spans:
            chances = kinds[first:end].mean(0).softmax(-1)
            kind = int(chances.argmax())
            if kind < self._types or self._keeps_others:
                tags[first:end] = [2 * kind + 1] + [2 * kind + 2] * (end - first - 1)
                scores[first:end] = (chances[kind] * (1 - parts[first:end, 0])).tolist()
        return tags, scores

    def probabilities(self, logits: Floats) -> Floats:
        """Probabilities of the tags of each word (words, 1 + 2 * types)."""
        parts, scores = self._scores(logits)
        kinds = scores.softmax(-1)[:, : self._types]
        both = kinds[:, :, None] * parts[:, None, 1:]
        chances: Floats = torch.cat([parts[:, :1], both.flatten(1)], 1).numpy()
        return chances

    def _scores(self, logits: Floats) -> tuple[Tensor, Tensor]:
        """Probabilities of O, B and I, and scores of the types and of none, of each word."""
        words = torch.from_numpy(logits)
        return words[:, :TAGS].softmax(-1), scaled(words[:, TAGS:], *self._head)
