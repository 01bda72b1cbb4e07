"""The open head: it finds mentions of any type, and compares them with the names of types.

Sub-words and names ("political party") are encoded by the same encoder, and compared by the cosine
of their vectors. A corpus of links teaches it: each mention has a class, and the classes above it
in the ontology are names for it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from pretrain.tagging.open_types import (
    SIZE,
    TAGS,
    Floats,
    Numbers,
    Types,
    check_names,
    encoded_names,
)
from pretrain.training.models import longest_input

NAME = "open"
"""Value of `config.tag_head` of such a checkpoint."""
_EVIDENCE = 0.1
"""What the evidence of a type is worth before training; see `OpenHead.tag_scores`."""


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
        self.evidence = nn.Parameter(torch.tensor([_EVIDENCE]))

    def forward(self, hidden: Tensor) -> Tensor:
        """Scores and vectors (..., 3 + size)."""
        vectors = functional.normalize(self.word(hidden), dim=-1)
        return torch.cat([super().forward(hidden), vectors], -1)

    def scores(self, vectors: Tensor, names: Tensor) -> Tensor:
        """Scores of types, and of none of them.

        Args:
            vectors: vectors of sub-words (..., size).
            names: vectors of names (types, size).

        Returns:
            Shape (..., types + 1).
        """
        cosines = vectors @ names.T
        none = self.none.expand(*cosines.shape[:-1], 1)
        return torch.cat([cosines, none], -1) * self.scale.exp()

    def tag_scores(self, tags: Tensor, types: Tensor) -> Tensor:
        """Scores of O, B and I (..., 3): what has a type that is looked for is rather a mention.

        Args:
            tags: their scores by the first layer (..., 3).
            types: scores of types, and of none of them (..., types + 1).
        """
        evidence = types[..., :-1].max(-1).values - types[..., -1]
        outside = tags[..., :1] - self.evidence * evidence[..., None]
        return torch.cat([outside, tags[..., 1:]], -1)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *arguments: Any
    ) -> None:
        """Loads weights, also those of heads that did not weigh the evidence yet."""
        state_dict.setdefault(f"{prefix}evidence", torch.zeros(1))
        super()._load_from_state_dict(state_dict, prefix, *arguments)


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
    """Vectors of names in words, shape (names, size).

    Raises:
        UserError: a name has more sub-words than the encoder takes.
    """
    head: Any = model.get_submodule("classifier")
    batch = tokenizer(
        list(names), padding=True, return_tensors="pt", return_special_tokens_mask=True
    ).to(model.device)
    check_names(names, batch["input_ids"].shape[1], longest_input(model))
    inner = (1 - batch.pop("special_tokens_mask")).unsqueeze(-1)
    states = model.base_model(**batch).last_hidden_state
    means = (states * inner).sum(1) / inner.sum(1).clamp(min=1)
    return functional.normalize(head.name(means), dim=-1)


@torch.no_grad()
def types_of(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    names: Sequence[str],
    keeps_others: bool = False,
    cached: dict[str, Floats] | None = None,
) -> Types:
    """What tags words with some types.

    Args:
        model: model with an open head.
        tokenizer: its tokenizer.
        names: names of the types, in words.
        keeps_others: whether mentions of none of the types are kept.
        cached: vectors of names; see `encoded_names`.

    Raises:
        UserError: a name has more sub-words than the encoder takes.
    """

    def encode(new_names: Sequence[str]) -> Floats:
        vectors: Floats = name_vectors(model, tokenizer, new_names).float().cpu().numpy()
        return vectors

    was_training = model.training
    if was_training:
        model.eval()  # type: ignore[no-untyped-call]
    vectors = encoded_names(encode, names, {} if cached is None else cached)
    if was_training:
        model.train()
    return Types(names, vectors, numbers_of(model), keeps_others)


def numbers_of(model: PreTrainedModel) -> Numbers:
    """The numbers of the head of a model."""
    head: Any = model.get_submodule("classifier")
    learnt = ("none", "scale", "evidence")
    none, scale, evidence = (float(getattr(head, name).detach()) for name in learnt)
    return Numbers(none, scale, evidence, person_cost(model))


def person_cost(model: PreTrainedModel) -> float:
    """What "person" loses beside a kind of persons; 0 in checkpoints that were made before."""
    return float(getattr(model.config, "open_person_cost", 0.0))
