"""Trainers for domains, and for the separate steps of Coach."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pretrain.training.features import PIECES, PieceFeatures
from pretrain.training.trainer import TaggingTrainer


class DomainTrainer(TaggingTrainer):
    """A Trainer that tells the loss the domains of the sentences."""

    train_dataset: PieceFeatures

    def __init__(self, kinds: npt.NDArray[np.int64], **kwargs: Any) -> None:
        """Takes the domain of each train piece, and the arguments of `TaggingTrainer`."""
        super().__init__(**kwargs)
        self._kinds = torch.from_numpy(kinds)
        self._loss: Any = self.compute_loss_func

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Loss of a batch; dev sentences are of the target."""
        kinds = self._kinds[inputs[PIECES].cpu()] if model.training else None
        self.compute_loss_func = partial(self._loss, kinds=kinds)
        return super().compute_loss(model, inputs, *args, **kwargs)


class SeparateTrainer(DomainTrainer):
    """A Trainer of `Coach`: a step for the mentions of a batch, then one for the types of a text.

    Source: `src/coach/trainer.py` of github.com/zliucr/CrossNER. There the states of the words are
    those of before the first step; here the model reads each text again.
    """

    def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Runs all steps but the last one's update, which the Trainer does; returns their loss."""
        optimizer: Any = self.optimizer
        head: Any = self.accelerator.unwrap_model(model).get_submodule("words_head")
        labels = inputs["labels"]
        mentions = ((labels > 0) & (labels % 2 == 1)).sum(1).tolist()
        head.part = "mentions"
        loss = super().training_step(model, dict(inputs), len(labels))
        head.part = "types"
        for row, count in enumerate(mentions):
            if count:
                optimizer.step()
                model.zero_grad()
                text = {name: values[row : row + 1] for name, values in inputs.items()}
                loss = loss + super().training_step(model, text, count)
        head.part = "both"
        return loss
