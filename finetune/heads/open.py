"""The open head in fine-tuning: the types of a set, by their names in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel

from finetune.data.views import in_words
from finetune.heads.head import Head
from finetune.heads.loading import load_with_head
from finetune.heads.open_onnx import MIN_SCORE, checked_types
from finetune.settings import FitSettings
from nerbert.errors import UserError
from nerbert.text.tags import LabelSet
from ontology.classes import spaced
from pretrain.tagging import open_head
from pretrain.tagging.open_loss import OpenLoss
from pretrain.tagging.open_types import LABELS, SIZE, TAGS, Floats, Types
from pretrain.training.letter_cases import tell_cases
from pretrain.training.models import HeadInitMap, check_length, load_model
from pretrain.training.tokenizer import load_config


class OpenHead(Head):
    """Finds mentions, and compares them with the names of types; see `pretrain.tagging.open_head`.

    Its types are decoded by what `with_types` returns.
    """

    name = open_head.NAME
    parts = ("classifier",)
    takes_types = True
    min_score = MIN_SCORE
    restore = staticmethod(open_head.add_open_head)

    def __init__(self, model: PreTrainedModel, loss: OpenLoss | None = None) -> None:
        """Takes a model with an open head, and its loss if it is trained."""
        super().__init__(model)
        self._loss = loss
        self._vectors: dict[str, Floats] = {}  # of names of types

    @classmethod
    def new_model(
        cls, base: str, settings: FitSettings, labels: LabelSet, head_init_map: HeadInitMap | None
    ) -> PreTrainedModel:
        """Loads a model with its own open head, or an encoder with a new one."""
        if getattr(load_config(base), "tag_head", None) == cls.name:
            model = load_with_head(base)
            if settings.max_subwords is not None:
                check_length(model, base, settings.max_subwords)
            return model
        model = load_model(base, LABELS, settings.max_subwords)
        cls.restore(model)
        return model

    @classmethod
    def add(
        cls,
        model: PreTrainedModel,
        settings: FitSettings,
        tokenizer: Any,
        labels: LabelSet,
        domains: Sequence[Sequence[str]],
    ) -> OpenHead:
        tell_cases(model, tokenizer)
        model.config.open_types = words = _with_all_else(labels.categories)
        return cls(model, OpenLoss(model, tokenizer, list(words.values())))

    @property
    def n_scores(self) -> int:
        return TAGS + SIZE

    def loss(self, outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        assert self._loss is not None
        return self._loss.loss(outputs, labels, num_items_in_batch)

    def best(self, logits: Tensor, labels: Any) -> Tensor:
        assert self._loss is not None
        return self._loss.best(logits, labels)

    def with_types(self, tokenizer: Any, names: Sequence[str], keeps_others: bool = False) -> Types:
        """What decodes the scores for some types.

        Args:
            tokenizer: tokenizer of the model.
            names: their names, in words.
            keeps_others: whether mentions of none of the types are kept, as of a further type.
        """
        return open_head.types_of(self.model, tokenizer, names, keeps_others, self._vectors)

    def trained_types(self, where: str) -> dict[str, str | None]:
        """The types that it was trained on -> in words, None for the type of all else.

        Args:
            where: folder of the checkpoint, for errors.

        Raises:
            UserError: those in the configuration of the model, or its `open_person_cost`, have
                another form.
        """
        cost = getattr(self.model.config, "open_person_cost", 0.0)
        if not (isinstance(cost, int | float) and 0 <= cost < inf):
            raise UserError(f"open_person_cost {cost!r} in its config.json is no cost", where)
        return checked_types(getattr(self.model.config, "open_types", None), where)


def _with_all_else(types: Sequence[str]) -> dict[str, str | None]:
    """Types of a set -> in words, None for the one of all else (misc).

    "misc" is no name that says what a mention is, so its mentions are learnt as those of none of
    the other types: with five sentences of AI (CrossNER) F1 is 2.3 points higher, see
    docs/pretraining.md.
    """
    words = in_words(types)
    all_else = [name for name in types if name not in words]
    is_one = len(all_else) == 1 and bool(words)
    return {name: words.get(name, None if is_one else spaced(name)) for name in types}
