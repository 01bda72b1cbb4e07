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

from nerbert.errors import UserError
from nerbert.text.tags import LabelSet, tags_to_spans
from ontology.categories import ENTITY
from pretrain.training.models import longest_input

NAME = "open"
"""Value of `config.tag_head` of such a checkpoint."""
TAGS = 3
"""Number of tags without types: O, B and I."""

Floats = npt.NDArray[np.float32]
LABELS = LabelSet((ENTITY,))
"""Labels of mentions without types."""

SIZE = 256
"""Size of the vectors that are compared."""
_FITS = 0.75  # smallest probability of a type against none that counts as clear
_RIVALS = 6
"""Types that a mention may have. On CrossNER's dev splits of science and music, with 200 classes of
the ontology beside the types of the set, F1 is 4.9 and 5.6 points higher than with all of them, and
without these the same."""
_BATCH = 256  # names that are encoded together
_KEPT = 1000  # names whose vectors are kept


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
    """Vectors of names in words, shape (names, size).

    Raises:
        UserError: a name has more sub-words than the encoder takes.
    """
    head: Any = model.get_submodule("classifier")
    batch = tokenizer(
        list(names), padding=True, return_tensors="pt", return_special_tokens_mask=True
    ).to(model.device)
    if batch["input_ids"].shape[1] > longest_input(model):
        longest = max(names, key=len)[:40]
        raise UserError(f"the type {longest!r}... has more than {longest_input(model)} sub-words")
    inner = (1 - batch.pop("special_tokens_mask")).unsqueeze(-1)
    states = model.base_model(**batch).last_hidden_state
    means = (states * inner).sum(1) / inner.sum(1).clamp(min=1)
    return functional.normalize(head.name(means), dim=-1)


def best_path(chances: Floats) -> list[int]:
    """The most probable tags of the words of a text, in which an I follows a B or an I.

    Args:
        chances: probabilities of O, B and I, shape (words, 3).
    """
    best = [0.0, -np.inf, -np.inf]
    before: list[tuple[int, int, int]] = []
    for outside, begins, goes_on in np.log(np.maximum(chances, 1e-9)).tolist():
        last = max(range(TAGS), key=best.__getitem__)
        inner = 1 if best[1] >= best[2] else 2
        before.append((last, last, inner))
        best = [best[last] + outside, best[last] + begins, best[inner] + goes_on]
    path = [max(range(TAGS), key=best.__getitem__)]
    for follows in reversed(before[1:]):
        path.append(follows[path[-1]])
    return path[::-1][: len(chances)]


def _chances(means: Tensor) -> Tensor:
    """Probabilities of types, and of none of them, by their scores.

    Types far behind have none: 200 of them would make the best one improbable together.
    """
    rivals = means[:-1].topk(min(_RIVALS, len(means) - 1)).indices
    chances = torch.zeros_like(means)
    among = torch.cat([rivals, torch.tensor([len(means) - 1])])
    chances[among] = means[among].softmax(-1)
    return chances


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
        cached: dict[str, Tensor] | None = None,
    ) -> Types:
        """Encodes the names of types, in words.

        Args:
            model: model with an open head.
            tokenizer: its tokenizer.
            names: the names.
            keeps_others: whether mentions of none of the types are kept.
            cached: vectors of names that are encoded already, at most `_KEPT`; new ones are added.

        Raises:
            UserError: a name has more sub-words than the encoder takes.
        """
        cached = {} if cached is None else cached
        # A copy: other threads add names, too, and remove the oldest.
        vectors = {name: vector for name in names if (vector := cached.get(name)) is not None}
        new = [name for name in dict.fromkeys(names) if name not in vectors]
        was_training = model.training
        if was_training:
            model.eval()  # type: ignore[no-untyped-call]
        for first in range(0, len(new), _BATCH):
            batch = new[first : first + _BATCH]
            encoded = name_vectors(model, tokenizer, batch).float().cpu()
            vectors.update(zip(batch, encoded, strict=True))
        if was_training:
            model.train()
        cached.update({name: vectors[name] for name in new})
        for name in list(cached)[: max(0, len(cached) - _KEPT)]:
            cached.pop(name, None)
        head: Any = model.get_submodule("classifier")
        none, scale = (part.detach().float().cpu() for part in (head.none, head.scale))
        return cls(torch.stack([vectors[name] for name in names]), none, scale, keeps_others)

    def decode(self, logits: Floats) -> tuple[list[int], list[float]]:
        """Tag of each word, and its probability.

        Args:
            logits: scores and vectors, shape (words, 3 + size).
        """
        parts, kinds = self._scores(logits)
        tags = [0] * len(logits)
        scores: list[float] = parts[:, 0].tolist()
        spans = tags_to_spans([LABELS.tags[tag] for tag in best_path(parts.numpy())])
        for first, end, _ in spans:
            chances = _chances(kinds[first:end].mean(0))
            kind = int(chances.argmax())
            if kind < self._types or self._keeps_others:
                tags[first:end] = [2 * kind + 1] + [2 * kind + 2] * (end - first - 1)
                scores[first:end] = (chances[kind] * (1 - parts[first:end, 0])).tolist()
        return tags, scores

    def fitting(self, logits: Floats, first: int, end: int) -> dict[int, float]:
        """Types that fit a mention clearly better than none, and the probability of each by itself.

        Args:
            logits: scores and vectors of the words of a sentence, shape (words, 3 + size).
            first: first word of the mention.
            end: one after its last word.
        """
        parts, kinds = self._scores(logits[first:end])
        means = kinds.mean(0)
        fits = (means[: self._types] - means[-1]).sigmoid()
        chances = (fits * (1 - parts[0, 0])).tolist()
        return {kind: chances[kind] for kind in fits.ge(_FITS).nonzero().flatten().tolist()}

    def probabilities(self, logits: Floats) -> Floats:
        """Probabilities of the tags of each word (words, 1 + 2 * types)."""
        parts, scores = self._scores(logits)
        kinds = scores.softmax(-1)[:, : self._types]
        joint = kinds[:, :, None] * parts[:, None, 1:]
        chances: Floats = torch.cat([parts[:, :1], joint.flatten(1)], 1).numpy()
        return chances

    def _scores(self, logits: Floats) -> tuple[Tensor, Tensor]:
        """Probabilities of O, B and I, and scores of the types and of none, of each word."""
        words = torch.from_numpy(logits)
        return words[:, :TAGS].softmax(-1), scaled(words[:, TAGS:], *self._head)
