"""The entity tagger: an encoder with a linear layer over all tags, and its Trainer."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
)

from ontology.labels import LabelSet
from pipeline.errors import UserError
from pretrain.batches import WINDOW, LengthBatches
from pretrain.config import BadLossError
from pretrain.data import IGNORED, PIECES, UNLINKED, PieceFeatures
from pretrain.throughput import Throughput

_NEED_PREFIX_SPACE = {"bloom", "deberta", "gpt2", "longformer", "roberta"}
"""Models whose tokenizer parts words at spaces: without one before each, words given apart melt."""


Lenders = Callable[[str, Sequence[str]], list[str]]
"""Types, among those of a head, whose rows a type takes over; none where it starts afresh."""


def load_tokenizer(base_model: str) -> PreTrainedTokenizerFast:
    """The fast tokenizer of a base model.

    Raises:
        UserError: there is no such model, or it has no fast tokenizer.
    """
    try:
        config = AutoConfig.from_pretrained(base_model)
        prefix = {"add_prefix_space": True} if config.model_type in _NEED_PREFIX_SPACE else {}
        tokenizer: Any = AutoTokenizer.from_pretrained(base_model, use_fast=True, **prefix)
    except (OSError, ValueError) as error:
        raise _no_model(base_model, error) from error
    if not tokenizer.is_fast or tokenizer.pad_token_id is None:
        raise UserError(
            f"--base-model {base_model}: no fast tokenizer with a padding token; use an encoder "
            "such as bert-base-cased"
        )
    fast: PreTrainedTokenizerFast = tokenizer
    return fast


def load_model(
    base_model: str, labels: LabelSet, max_subwords: int, lenders: Lenders | None = None
) -> PreTrainedModel:
    """An encoder with a fresh head over the tags in place of its own.

    Args:
        base_model: name on the hub, or folder.
        labels: of the head.
        max_subwords: that the encoder must take at once.
        lenders: which types of the base model's own head lend their rows to a type of ours, and
            start it at their mean.

    Raises:
        UserError: there is no such model, transformers knows no tagging head for it, or it takes
            fewer sub-words at once.
    """
    names = dict(enumerate(labels.tags))
    try:
        model: PreTrainedModel = AutoModelForTokenClassification.from_pretrained(
            base_model, num_labels=len(names), id2label=names,
            label2id={name: index for index, name in names.items()},
            ignore_mismatched_sizes=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise _no_model(base_model, error) from error
    if hasattr(model.config, "tag_head"):  # a CRF, or span heads, that stay behind
        model.config.tag_head = "linear"
    longest = getattr(model.config, "max_position_embeddings", max_subwords)
    if longest < max_subwords:
        raise UserError(f"--max-subwords {max_subwords}: {base_model} takes {longest} or fewer")
    if lenders is not None:
        _renew_head(model)
        _borrow_rows(model, load_tagger(base_model), labels, lenders)
    elif _lends_head(base_model, len(names)):
        _renew_head(model)
    return model


def _lends_head(base_model: str, n_tags: int) -> bool:
    """Whether the base model's own tagging head is as large as ours, and was loaded for it."""
    config = AutoConfig.from_pretrained(base_model)
    is_tagger = any("TokenClassification" in name for name in config.architectures or ())
    return is_tagger and bool(config.num_labels == n_tags)


def load_tagger(folder: str) -> PreTrainedModel:
    """An encoder with the tagging head that it was saved with.

    Raises:
        UserError: there is no such model.
    """
    try:
        model: PreTrainedModel = AutoModelForTokenClassification.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise _no_model(folder, error) from error
    return model


def load_encoder(base_model: str) -> PreTrainedModel:
    """An encoder without a head.

    Raises:
        UserError: there is no such model.
    """
    try:
        model: PreTrainedModel = AutoModel.from_pretrained(base_model)
    except (OSError, ValueError) as error:
        raise _no_model(base_model, error) from error
    return model


def tag_names(model: PreTrainedModel) -> list[str]:
    """Tags of a tagger by label id."""
    names: Any = model.config.id2label
    return [names[index] for index in range(len(names))]


@torch.no_grad()
def _renew_head(model: PreTrainedModel) -> None:
    """Draws the head anew."""
    head = _head(model)
    nn.init.normal_(head.weight, std=getattr(model.config, "initializer_range", 0.02))
    nn.init.zeros_(head.bias)


@torch.no_grad()
def _borrow_rows(
    model: PreTrainedModel, other: PreTrainedModel, labels: LabelSet, lenders: Lenders
) -> None:
    """Takes over rows of another head: that of O, and means of those of the lending types."""
    head, lent = _head(model), _head(other)
    known = {name: index for index, name in enumerate(tag_names(other))}
    types = [name[2:] for name in known if name.startswith("B-")]
    wanted = {"O": ["O"]} | {
        f"{prefix}-{name}": [f"{prefix}-{lender}" for lender in lenders(name, types)]
        for name in labels.categories for prefix in "BI"
    }  # fmt: skip
    for index, name in enumerate(tag_names(model)):
        if rows := [known[lender] for lender in wanted[name] if lender in known]:
            head.weight[index] = lent.weight[rows].mean(0)
            head.bias[index] = lent.bias[rows].mean()


def _head(model: PreTrainedModel) -> nn.Linear:
    head = model.get_submodule("classifier")
    assert isinstance(head, nn.Linear)
    return head


def _no_model(base_model: str, error: Exception) -> UserError:
    path = Path(base_model)
    is_path = path.is_absolute() or path.exists() or len(path.parts) > 2
    reason = "no such folder" if is_path and not path.exists() else str(error).split("\n", 1)[0]
    return UserError(
        f"--base-model {base_model}: {reason.rstrip('.')}; give a model of the hub, a folder with "
        "config.json, weights and tokenizer, or `tiny`"
    )


def token_loss(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
    """Cross entropy, summed over labelled sub-words and divided by those of the optimiser step.

    Args:
        outputs: with `logits` (batch, length, tags).
        labels: label ids (batch, length), `IGNORED` where nothing is taught.
        num_items_in_batch: labelled sub-words of the step over devices and accumulated batches;
            those of this batch if None.
    """
    logits = outputs.logits.float()
    total = functional.cross_entropy(
        logits.view(-1, logits.shape[-1]), labels.view(-1), ignore_index=IGNORED, reduction="sum"
    )
    items = labels.ne(IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
    return total / torch.as_tensor(items, device=total.device).clamp(min=1)


class _Loader(DataLoader[Any]):
    """A loader whose batches depend on the epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Called by the Trainer."""
        self.batch_sampler.set_epoch(epoch)  # type: ignore[union-attr]


def _leave_ctrl_c(_: int) -> None:
    """A loader's worker leaves Ctrl-C to the main process, which ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class TaggingTrainer(Trainer):
    """transformers' Trainer with our batches, a check of the loss, and rates in its logs."""

    def __init__(
        self, model: PreTrainedModel, batch_size: int, window: int = WINDOW,
        loss: Callable[..., torch.Tensor] = token_loss, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Takes what the Trainer takes, by name, and what `LengthBatches` does.

        Args:
            model: that is trained.
            batch_size: pieces of an optimiser step.
            window: optimiser steps whose pieces are sorted by length together.
            loss: of outputs, labels and labelled sub-words of the step, as `token_loss`.
            kwargs: of the Trainer.
        """
        super().__init__(model=model, compute_loss_func=loss, **kwargs)
        self.model_accepts_loss_kwargs = False  # the loss is ours, not the model's
        self._batch_size, self._window = batch_size, window
        self.throughput = Throughput(model, self.args.device, self.args.world_size)
        self.card = ""

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Batches of `LengthBatches` for this device; the sub-words are made in the workers."""
        args = self.args
        assert isinstance(self.train_dataset, PieceFeatures)
        sampler = LengthBatches(
            self.train_dataset.lengths, self._batch_size, args.gradient_accumulation_steps,
            args.world_size, args.process_index, args.seed, self._window,
        )  # fmt: skip
        workers = args.dataloader_num_workers
        pin = args.dataloader_pin_memory and args.device.type == "cuda"
        return _Loader(
            self.train_dataset, batch_sampler=sampler, collate_fn=self.data_collator,
            num_workers=workers, pin_memory=pin, worker_init_fn=_leave_ctrl_c,
            prefetch_factor=args.dataloader_prefetch_factor if workers else None,
        )  # fmt: skip

    def training_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """One batch forward and backward.

        Raises:
            BadLossError: the loss is not a finite number.
        """
        self.throughput.add(inputs["attention_mask"])
        pieces = inputs[PIECES].tolist()
        loss: torch.Tensor = super().training_step(model, inputs, *args, **kwargs)
        if not torch.isfinite(loss):
            assert isinstance(self.train_dataset, PieceFeatures)
            ids = ", ".join(self.train_dataset.example_ids(pieces))
            raise BadLossError(
                f"loss is {loss.item()} in step {self.state.global_step + 1}; lower "
                f"--learning-rate or look at the examples of the batch: {ids}"
            )
        return loss

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Loss of a batch; what the model does not take is left out."""
        inputs = {key: value for key, value in inputs.items() if key not in (PIECES, UNLINKED)}
        return super().compute_loss(model, inputs, *args, **kwargs)

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Adds rates to the logs of training steps."""
        if "loss" in logs:
            logs = {**logs, **self.throughput.log()}
        super().log(logs, *args, **kwargs)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Writes our card where transformers would write its own, before a push to the hub."""
        if self.card:
            (Path(str(self.args.output_dir)) / "README.md").write_text(self.card, encoding="utf-8")

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Scores the model; the time it takes is not the training's."""
        scores: dict[str, float] = super().evaluate(*args, **kwargs)
        self.throughput.start()
        return scores


def end_together(trainer: Trainer) -> None:
    """Waits for the other processes of a run.

    One that ends while another still talks to it takes that one down.
    """
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()
