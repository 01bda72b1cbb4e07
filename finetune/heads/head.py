"""The shape of a tagging head: how it is put on a model, trained, loaded, and decoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from torch import Tensor
from transformers import PreTrainedModel

from finetune.parts import heads
from finetune.settings import FitSettings
from nerbert.seams import load
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet
from pretrain.training.models import HeadInitMap, load_model, tag_names

if TYPE_CHECKING:  # these load datasets and the Trainer, which predictions do not need
    from pretrain.training.features import PieceFeatures
    from pretrain.training.trainer import TaggingTrainer

TARGET, SOURCE = 0, 1
"""Domains of a sentence. Predictions are made for the target."""

TEXT = 2
"""Added to the domain of a sentence whose words have no labels."""

Floats = npt.NDArray[np.float32]
Self = TypeVar("Self", bound="Head")


class Head:
    """The head of a model. This class is what most heads share; `LinearHead` is the smallest one.

    The config of the model has its name as `tag_head`.
    """

    name: ClassVar[str]
    """Its name in the table of heads."""

    parts: ClassVar[tuple[str, ...]] = ()
    """Modules of the model that transformers cannot load; `restore` adds them. The weights of the
    first one are then read from the checkpoint."""

    are_states: ClassVar[bool] = False
    """Whether the model gives states of its words instead of scores of tags."""

    keeps_domains: ClassVar[bool] = False
    """Whether one head is trained on the source and then on the target."""

    takes_types: ClassVar[bool] = False
    """Whether it finds any types, by their names: it has `with_types` and `trained_types` then."""

    def __init__(self, model: PreTrainedModel) -> None:
        """Takes a model that has this head."""
        self.model = model

    @classmethod
    def new_model(
        cls, base: str, settings: FitSettings, labels: LabelSet, head_init_map: HeadInitMap | None
    ) -> PreTrainedModel:
        """Loads an encoder that is to get this head; see `load_model`."""
        return load_model(base, labels, settings.max_subwords, head_init_map)

    @classmethod
    def add(
        cls: type[Self],
        model: PreTrainedModel,
        settings: FitSettings,
        tokenizer: Any,
        labels: LabelSet,
        domains: Sequence[Sequence[str]],
    ) -> Self:
        """Adds the head, with new weights, to a model that is to be fine-tuned.

        Args:
            model: model of `new_model`.
            settings: settings of the fine-tuning.
            tokenizer: tokenizer of the model.
            labels: labels of the head.
            domains: types of the target and of the source.

        Raises:
            UserError: the head does not fit the model.
        """
        cls.restore(model)
        return cls(model)

    @classmethod
    def restore(cls, model: PreTrainedModel) -> None:
        """Adds the `parts` that the config describes to a loaded model, with new weights."""

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules of the model that are the head."""
        return ("classifier", *self.parts)

    @property
    def n_scores(self) -> int:
        """Number of scores of each word."""
        return len(tag_names(self.model))

    def loss(self, outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        """Loss of a batch; see `pretrain.training.subwords.token_loss`."""
        raise NotImplementedError

    def best(self, logits: Tensor, labels: Any) -> Tensor:
        """Label ids at first sub-words (batch, length)."""
        raise NotImplementedError

    def decode(self, logits: Floats) -> tuple[list[int], list[float]]:
        """Tag of each word of a text, and its probability.

        Args:
            logits: scores (words, `n_scores`).
        """
        raise NotImplementedError

    def probabilities(self, logits: Floats) -> Floats:
        """Probabilities of the tags of each word (words, tags)."""
        raise NotImplementedError

    @classmethod
    def train_rows(
        cls, rows: Sequence[Sentence], kinds: Sequence[int], settings: FitSettings
    ) -> tuple[list[Sentence], list[int]]:
        """The sentences that are trained on, and their domains: those that are given, and more.

        Args:
            rows: train sentences.
            kinds: domain of each.
            settings: settings of the fine-tuning.
        """
        return list(rows), list(kinds)

    def trainer(
        self, train: PieceFeatures, settings: FitSettings, kinds: Sequence[int]
    ) -> tuple[type[TaggingTrainer], int, dict[str, Any]]:
        """The class of the Trainer, the number of pieces of an epoch, and further arguments.

        Args:
            train: pieces of the train sentences.
            settings: settings of the fine-tuning.
            kinds: domain of each train sentence.
        """
        # Predictions do not need it.
        from pretrain.training.trainer import TaggingTrainer

        return TaggingTrainer, len(train), {}


def head_class(name: Any) -> type[Head]:
    """The class of a head; that of the linear one if the name is of none."""
    return load(heads()[name if name in heads() else "linear"].head)  # type: ignore[no-any-return]


def head_of(model: PreTrainedModel) -> Head:
    """The head of a model."""
    return head_class(getattr(model.config, "tag_head", "linear"))(model)
