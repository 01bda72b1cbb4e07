"""Adds the heads over the states of words to a model, and adds them again to a loaded one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from finetune.heads.sequence import MODULE, types_of
from finetune.settings import FitSettings
from finetune.words.bilstm import BiLstm
from finetune.words.cdlm import Cdlm
from finetune.words.coach import Coach
from finetune.words.multicell import MultiCell
from finetune.words.words import description
from nerbert.errors import UserError
from pretrain.training.models import tag_names

KINDS: dict[str, Callable[..., nn.Module]] = {"coach": Coach, "cdlm": Cdlm, "multicell": MultiCell}
"""Name of a head, also in `config.tag_head` -> its class."""

_ONLY_WORDS = ("coach", "cdlm")


def add(
    model: PreTrainedModel, settings: FitSettings, tokenizer: Any, domains: Sequence[Sequence[str]]
) -> None:
    """Replaces the linear layer of a model by a new head; its sizes are kept in the config.

    Args:
        model: encoder with a linear layer, or words with their vectors.
        settings: settings with the sizes.
        tokenizer: tokenizer of the model.
        domains: types of the target and of the source.

    Raises:
        UserError: the head needs the words' vectors, and this is another model.
    """
    kind = settings.head
    if kind in _ONLY_WORDS and not (isinstance(model, BiLstm) and not model.config.layers):
        raise UserError(f"--head {kind}: it is for the model `words`")
    if kind == "coach" and settings.word_encoder:
        raise UserError("--word-encoder: coach describes types by words alone; leave it out")
    sizes: dict[str, Any] = {"hidden": settings.word_hidden, "dropout": settings.word_dropout}
    if kind == "coach":
        lengths = [len(description(name)) for name in types_of(tag_names(model))]
        sizes |= {
            "lengths": lengths,
            "layers": settings.word_layers,
            "state_dropout": settings.state_dropout,
            "template_weight": settings.template_weight,
            "template_steps": settings.template_steps,
        }
    else:
        sizes["domains"] = [list(types) for types in domains]
        sizes["target_weight"] = settings.target_weight
    if kind == "cdlm":
        words: Any = model
        is_seen: Tensor = words.vectors.seen
        sizes |= {"words": int(is_seen.sum()), "rows": len(is_seen)}
    model.config.tag_head, model.config.tag_head_sizes = kind, sizes
    restore(model)
    head: Any = model.get_submodule(MODULE)
    if kind == "cdlm":
        head.places[is_seen] = torch.arange(sizes["words"])
    if kind == "coach":
        head.descriptions.copy_(_described(model, tokenizer))


def restore(model: PreTrainedModel) -> None:
    """Adds the head that the config of a model describes, with new weights."""
    config: Any = model.config
    make = KINDS[config.tag_head]
    module = make(config.hidden_size, tag_names(model), **config.tag_head_sizes)
    model.classifier = nn.Identity()
    model.add_module(MODULE, module)


@torch.no_grad()
def _described(model: Any, tokenizer: Any) -> Tensor:
    """Vectors of the words of all descriptions, one after the other (words, size)."""
    words = [word for name in types_of(tag_names(model)) for word in description(name)]
    encodings = tokenizer([[word] for word in words], is_split_into_words=True).encodings
    rows = pad_sequence([torch.tensor(entry.ids) for entry in encodings], batch_first=True)
    training = model.training
    vectors: Tensor = model.eval().vectors(rows)
    model.train(training)
    return vectors
