"""Heads over the states of all words of a text: what they get, and how they are trained and used.

The model gives the states of its words instead of scores of tags; the head is a part of the model,
`model.words_head`, and is saved with it. transformers itself loads the checkpoint without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from finetune.heads.crf import FORBIDDEN, at_first_subwords, has_words, packed, tag_crf
from finetune.heads.head import SOURCE, TARGET, TEXT, Floats, Head
from finetune.papers.words.options import WordOptions, word_options
from finetune.papers.words.trainers import DomainTrainer
from finetune.papers.words.words import WordVectors
from finetune.settings import FitSettings
from nerbert.errors import UserError
from nerbert.text.tags import LabelSet
from pretrain.training.features import PieceFeatures
from pretrain.training.models import tag_names
from pretrain.training.trainer import TaggingTrainer, epoch_size

MODULE = "words_head"
"""Name of the head in the model."""


@dataclass(frozen=True)
class Words:
    """A batch of texts, whose words were moved together.

    Attributes:
        states: states of the words (texts, words, size).
        mask: whether there is a word (texts, words).
        tags: tag ids (texts, words).
        kinds: domain of each text, plus `TEXT` if it has no labels (texts,).
        rows: rows of the words among the words' vectors (texts, words); None for an encoder.
    """

    states: Tensor
    mask: Tensor
    tags: Tensor
    kinds: Tensor
    rows: Tensor | None = None

    def where(self, kind: int) -> Words | None:
        """The texts of a kind; None if there are none."""
        selection = self.kinds == kind
        if not selection.any():
            return None
        longest = int(self.mask[selection].sum(1).max())
        rows = None if self.rows is None else self.rows[selection, :longest]
        return Words(
            self.states[selection, :longest],
            self.mask[selection, :longest],
            self.tags[selection, :longest],
            self.kinds[selection],
            rows,
        )


class DomainTags(nn.Module):
    """Scores of the tags of a domain by a linear layer and a CRF, one of both for each domain."""

    allowed: Tensor

    def __init__(
        self,
        size: int,
        names: Sequence[str],
        domains: Sequence[Sequence[str]],
        target_weight: float = 1.0,
    ) -> None:
        """Initialises the weights at random.

        Args:
            size: size of the states.
            names: all tags; O is the first.
            domains: types of each domain.
            target_weight: weight of the loss of the target.
        """
        super().__init__()
        self._weights = {TARGET: target_weight}
        self.layers = nn.ModuleList(nn.Linear(size, len(names)) for _ in domains)
        self.crfs = nn.ModuleList(tag_crf(names) for _ in domains)
        allowed = [[name == "O" or name[2:] in types for name in names] for types in domains]
        self.register_buffer("allowed", torch.tensor(allowed), persistent=False)

    def emissions(self, states: Tensor, domain: int) -> Tensor:
        """Scores of the tags (texts, words, tags)."""
        scores: Tensor = self.layers[domain](states)
        return scores.masked_fill(~self.allowed[domain], FORBIDDEN)

    def forward(self, states: Tensor, tags: Tensor, mask: Tensor, domain: int) -> Tensor:
        """Negative log likelihood of the tags of all texts, times the weight of the domain."""
        loss: Tensor = -self.crfs[domain](self.emissions(states, domain), tags, mask).sum()
        return self._weights.get(domain, 1.0) * loss

    def best(self, states: Tensor, mask: Tensor) -> tuple[list[list[int]], Tensor]:
        """Best tags of the words of each text, and marginals of all tags (texts, words, tags)."""
        crf: Any = self.crfs[TARGET]
        emissions = self.emissions(states, TARGET)
        return crf.decode(emissions, mask), crf.marginals(emissions, mask)


def types_of(names: Sequence[str]) -> list[str]:
    """Types of the tags O, B-x, I-x, B-y, I-y ..., in order."""
    return [name[2:] for name in names[1::2]]


class StateHead(Head):
    """Trains and uses the module of a model over the states of its words."""

    parts = (MODULE, "classifier")
    are_states = True
    keeps_domains = True
    module: ClassVar[Callable[..., nn.Module]]
    """Class of the module."""

    def __init__(self, model: PreTrainedModel) -> None:
        """Takes a model that has such a module."""
        super().__init__(model)
        module: Any = model.get_submodule(MODULE)
        self._module = module

    @classmethod
    def add(
        cls,
        model: PreTrainedModel,
        settings: FitSettings,
        tokenizer: Any,
        labels: LabelSet,
        domains: Sequence[Sequence[str]],
    ) -> StateHead:
        """Replaces the linear layer of a model; the sizes are kept in its config."""
        options = word_options(settings)
        sizes = {"hidden": options.word_hidden, "dropout": options.word_dropout}
        sizes |= cls.sizes(model, options, domains)
        model.config.tag_head, model.config.tag_head_sizes = cls.name, sizes
        cls.restore(model)
        cls.fill(model, tokenizer)
        return cls(model)

    @classmethod
    def restore(cls, model: PreTrainedModel) -> None:
        """Adds the head that the config of a model describes, with new weights."""
        config: Any = model.config
        module = cls.module(config.hidden_size, tag_names(model), **config.tag_head_sizes)
        model.classifier = nn.Identity()
        model.add_module(MODULE, module)

    @classmethod
    def sizes(
        cls, model: PreTrainedModel, options: WordOptions, domains: Sequence[Sequence[str]]
    ) -> dict[str, Any]:
        """Arguments of the module beside `hidden` and `dropout`.

        Args:
            model: encoder with a linear layer, or words with their vectors.
            options: the options of these heads.
            domains: types of the target and of the source.

        Raises:
            UserError: the head needs the words' vectors, and this is another model.
        """
        return {
            "domains": [list(types) for types in domains],
            "target_weight": options.target_weight,
        }

    @classmethod
    def fill(cls, model: PreTrainedModel, tokenizer: Any) -> None:
        """Fills the buffers of a new module."""

    @classmethod
    def check_words(cls, model: Any) -> None:
        """Raises a UserError unless the model is the words' vectors alone."""
        if not (
            isinstance(getattr(model, "vectors", None), WordVectors) and not model.config.layers
        ):
            raise UserError(f"--head {cls.name}: it is for the model `words`")

    @property
    def n_scores(self) -> int:
        return int(self.model.config.hidden_size)

    def trainer(
        self, train: PieceFeatures, settings: FitSettings, kinds: Sequence[int]
    ) -> tuple[type[TaggingTrainer], int, dict[str, Any]]:
        of_pieces = np.asarray(kinds, np.int64)[train.rows]
        groups = epochs_of(of_pieces)
        return DomainTrainer, epoch_size(groups), {"kinds": of_pieces, "groups": groups}

    def loss(
        self,
        outputs: Any,
        labels: Tensor,
        num_items_in_batch: Any = None,
        kinds: Tensor | None = None,
    ) -> Tensor:
        """Loss of a batch, divided by the labelled sub-words of the step.

        Args:
            outputs: output of the model, with the states as `logits` (batch, length, size).
            labels: label ids (batch, length), `IGNORED` except at first sub-words.
            num_items_in_batch: number of labelled sub-words of the step.
            kinds: domain of each text, plus `TEXT` if it has no labels; None if all are targets.
        """
        states, tags, mask = packed(outputs.logits.float(), labels)
        full = has_words(labels)
        kinds = torch.zeros(len(labels), dtype=torch.long) if kinds is None else kinds
        rows = getattr(outputs, "words", None)
        if rows is not None:
            rows = packed(rows.unsqueeze(2), labels)[0].squeeze(2)
        total = self._module(Words(states, mask, tags, kinds.to(full.device)[full], rows))
        items = mask.sum() if num_items_in_batch is None else num_items_in_batch
        loss: Tensor = total / torch.as_tensor(items, device=total.device).clamp(min=1)
        return loss

    def best(self, logits: Tensor, labels: Any) -> Tensor:
        """Label ids at first sub-words (batch, length)."""
        gold = labels[0] if isinstance(labels, tuple | list) else labels
        states, _, mask = packed(logits.float(), gold)
        return at_first_subwords(self._module.tag(states, mask)[0], gold)

    @torch.no_grad()
    def _tagged(self, logits: Floats) -> tuple[list[int], Tensor, Any]:
        """Tags and probabilities of the words that have states, and which these are."""
        has_state = ~np.isnan(logits).any(1)
        if not has_state.any():
            return [], torch.empty(0), has_state
        self._module.eval()
        states = torch.from_numpy(logits[has_state]).unsqueeze(0).to(self.model.device)
        mask = states.new_ones(states.shape[:2], dtype=torch.bool)
        (tags,), chances = self._module.tag(states, mask)
        return tags, chances[0].float().cpu(), has_state

    def decode(self, logits: Floats) -> tuple[list[int], list[float]]:
        """Tag of each word, and its probability.

        Args:
            logits: states (words, size); NaN for words without sub-words, which are O.
        """
        tags, chances, has_state = self._tagged(logits)
        best_ids, scores = np.zeros(len(logits), int), np.ones(len(logits))
        if tags:
            best_ids[has_state] = tags
            scores[has_state] = chances[range(len(tags)), tags].numpy()
        return best_ids.tolist(), scores.tolist()

    def probabilities(self, logits: Floats) -> Floats:
        """Probabilities of the tags of each word (words, tags)."""
        _, chances, has_state = self._tagged(logits)
        rows = np.zeros((len(logits), self._module.tags), np.float32)
        rows[:, 0] = 1
        if has_state.any():
            rows[has_state] = chances.numpy()
        return rows


def epochs_of(kinds: npt.NDArray[np.int64]) -> list[tuple[npt.NDArray[np.int64], int]]:
    """Groups of pieces for `LengthBatches`: all with labels, and as many of the text of a domain.

    Args:
        kinds: domain of each piece.
    """
    places = np.arange(len(kinds))
    groups = [(places[kinds < TEXT], int((kinds < TEXT).sum()))]
    for domain in (TARGET, SOURCE):
        text = places[kinds == domain + TEXT]
        groups.append((text, min(len(text), int((kinds == domain).sum()))))
    return groups
