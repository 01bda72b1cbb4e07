"""Trains only the vectors of words and n-grams that the train sentences have.

A given file has many more: GloVe and CharNGram together have a million. The others get no gradient,
so that Adam without weight decay never changes them; but it would compute on all of them in each
step, and keep their gradient and both of its means.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from finetune.papers.words.words import WordVectors, spelled
from pretrain.training.features import PieceFeatures

_BATCH = 100  # sentences that are looked at together; a word of many characters pads all others


class _Partly(nn.Module):
    """An embedding some rows of which are trained; the others are as given."""

    places: Tensor

    def __init__(self, table: nn.Embedding, trained: Tensor) -> None:
        """Takes an embedding, and whether each of its rows is trained (rows,)."""
        super().__init__()
        self.table = table.requires_grad_(False)
        self.weight = nn.Parameter(table.weight[trained].clone())
        places = torch.where(trained, trained.cumsum(0) - 1, -1)
        self.register_buffer("places", places, persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        places = self.places[rows]
        own_vectors = functional.embedding(places.clamp(min=0), self.weight)
        return torch.where(places.unsqueeze(-1) >= 0, own_vectors, self.table(rows))

    @torch.no_grad()
    def merged(self) -> nn.Embedding:
        """The embedding with the trained rows."""
        self.table.weight[self.places >= 0] = self.weight
        return self.table.requires_grad_(True)


@contextmanager
def only_seen(model: Any, train: PieceFeatures) -> Iterator[None]:
    """Within the block, only the vectors that train sentences use are weights of a model.

    Args:
        model: any model; one without vectors of words stays as it is.
        train: train sentences, by the tokenizer of the model.
    """
    vectors: Any = getattr(model, "vectors", None)
    if not isinstance(vectors, WordVectors):
        yield
        return
    trained: dict[str, Tensor] = {}
    device = vectors.digests.device  # a GPU, after a training on the source
    for start in range(0, len(train), _BATCH):
        pieces = train.__getitems__(range(start, min(start + _BATCH, len(train))))
        ids = torch.from_numpy(np.concatenate([piece.input_ids for piece in pieces])).to(device)
        words = spelled(ids, torch.ones_like(ids), ids.eq(model.config.boundary_id))
        for name, rows in vectors.used(words).items():
            count = getattr(vectors, name).num_embeddings
            none = torch.zeros(count, dtype=torch.bool, device=device)
            trained.setdefault(name, none)[rows] = True
    for name, is_seen in trained.items():
        setattr(vectors, name, _Partly(getattr(vectors, name), is_seen))
    yield
    for name in trained:
        setattr(vectors, name, getattr(vectors, name).merged())
