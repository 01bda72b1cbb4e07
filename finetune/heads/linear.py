"""The linear head: it tags each word by itself."""

from __future__ import annotations

from finetune.heads import windows
from finetune.heads.head import Head
from pretrain.training.scores import best_label
from pretrain.training.subwords import token_loss


class LinearHead(windows.LinearHead, Head):
    """Transformers' own head: a linear layer, and a softmax."""

    name = "linear"
    loss = staticmethod(token_loss)
    best = staticmethod(best_label)
