"""Fine-tunes a model with transformers' Trainer, whole or by LoRA."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import TrainerCallback, TrainingArguments
from transformers.integrations.integration_utils import (
    INTEGRATION_TO_CALLBACK,
    get_available_reporting_integrations,
)

from finetune.heads.head import Head
from finetune.settings import FitSettings
from finetune.tagger.lora import lora
from finetune.tagger.stopping import Stopping
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet
from pretrain.training.checkpoints import last_whole, resume
from pretrain.training.features import UNLINKED, Collator, PieceFeatures
from pretrain.training.pieces import count_subwords
from pretrain.training.scores import EntityScores
from pretrain.training.trainer import TaggingTrainer

COMMON_ARGUMENTS: dict[str, Any] = {
    "label_names": ["labels", UNLINKED],
    "remove_unused_columns": False,
    "logging_strategy": "epoch",
    "logging_nan_inf_filter": False,
    "disable_tqdm": True,
    "report_to": "none",
    "dataloader_pin_memory": False,
}
"""Arguments of the Trainer for all fine-tuning."""


@dataclass(frozen=True)
class Work:
    """How a training is watched and continued.

    Attributes:
        folder: folder for checkpoints, from which the same training continues; None for none.
        callbacks: callbacks of the Trainer.
        events: folder for TensorBoard's events; None for none.
        device: where it computes: "auto" for a GPU if there is one, or "cpu".
        report_to: tools that get its logs, of `check_reports`.
    """

    folder: str | None = None
    callbacks: Sequence[TrainerCallback] = ()
    events: str | None = None
    device: str = "auto"
    report_to: Sequence[str] = ()


_ALONE = Work()


def trained(
    head: Head,
    labels: LabelSet,
    settings: FitSettings,
    splits: Mapping[str, PieceFeatures],
    optimizer: Any = None,
    work: Work = _ALONE,
    kinds: Sequence[int] = (),
) -> TaggingTrainer:
    """Trains a model; with a dev split, the best weights are loaded at the end, if asked for.

    Args:
        head: head of the model that is trained.
        labels: labels of the head.
        settings: settings of the fine-tuning.
        splits: "train", and "dev" if there are dev sentences.
        optimizer: optimiser to continue with; a new one if None.
        work: how the training is watched and continued.
        kinds: domain of each train sentence.

    Returns:
        The Trainer, with its logs and the model.
    """
    model: Any = head.model
    train = splits["train"]
    trainer_class, pieces, trainer_arguments = head.trainer(train, settings, kinds)
    dev = splits.get("dev")
    if dev and settings.scoring != "crossner":  # which reads all texts as one, in their order
        dev = dev.by_length()
    chooses = "dev" in splits and settings.keep == "best"
    stopping = [Stopping(settings.patience, first=settings.stop_after)] if chooses else []
    layers = lora(model, head.modules, settings.lora_rank, settings.lora_alpha)
    pad = int(train.tokenizer.pad_token_id or 0)
    with _folder(work) as folder, _prepared(model, train, settings), layers:
        trainer = trainer_class(
            model=model,
            args=_arguments(settings, folder, splits, work, pieces),
            batch_size=settings.batch_size,
            window=1,  # sorting over several steps would make small sets less random
            loss=head.loss,
            train_dataset=train,
            eval_dataset=dev,
            processing_class=train.tokenizer,
            data_collator=Collator(pad, attend=settings.attend_padding),
            compute_metrics=EntityScores(labels.tags, joined=settings.scoring == "crossner"),
            preprocess_logits_for_metrics=head.best,
            optimizers=(optimizer or _with_two_rates(model, head.modules, settings), None),
            callbacks=[*stopping, *work.callbacks],
            **trainer_arguments,
        )
        # The checkpoints are not needed afterwards: the Trainer loads the best weights at the end.
        checkpoint = last_whole(Path(folder)) if work.folder else None
        resume(trainer, str(checkpoint) if checkpoint else None)
    model.requires_grad_(True)
    return trainer


def _prepared(
    model: Any, train: PieceFeatures, settings: FitSettings
) -> AbstractContextManager[Any]:
    """What a model without pre-training does around its training; see `ModelEntry`."""
    # The state of an optimiser that goes on belongs to the model as it was.
    if settings.carry_optimizer or not hasattr(model, "while_training"):
        return nullcontext()
    prepared: AbstractContextManager[Any] = model.while_training(train)
    return prepared


def _with_two_rates(
    model: Any, modules: Collection[str], settings: FitSettings
) -> torch.optim.Optimizer | None:
    """The Trainer's optimiser with a rate for the head; None if all weights have the same one."""
    if settings.head_learning_rate is None:
        return None
    encoder: list[torch.nn.Parameter] = []
    head: list[torch.nn.Parameter] = []
    for name, weight in model.named_parameters():
        (head if name.partition(".")[0] in modules else encoder).append(weight)
    if not settings.learning_rate:
        for weight in encoder:
            weight.requires_grad_(False)
    groups: list[dict[str, Any]] = [
        {"params": encoder},
        {"params": head, "lr": settings.head_learning_rate},
    ]
    return torch.optim.AdamW(
        groups, lr=settings.learning_rate, weight_decay=settings.weight_decay, eps=1e-8
    )


@contextmanager
def _folder(work: Work) -> Iterator[str]:
    """The folder for checkpoints; without one of the user's, it is deleted after the block."""
    if work.folder is not None:
        yield work.folder
        return
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def features(
    rows: Sequence[Sentence], labels: LabelSet, tokenizer: Any, max_subwords: int, where: str
) -> PieceFeatures:
    """Makes the features of sentences for the Trainer."""
    position = {tag: index for index, tag in enumerate(labels.tags)}
    table = Dataset.from_dict(
        {
            "id": [str(number) for number in range(len(rows))],
            "tokens": [row.tokens for row in rows],
            "ner_tags": [[position[tag] for tag in row.tags] for row in rows],
        }
    )
    pieces = count_subwords(table, tokenizer, max_subwords, len(labels.tags), where)
    return PieceFeatures(table, pieces, tokenizer, np.arange(len(labels.tags)))


def features_of(
    rows_of_splits: Mapping[str, Sequence[Sentence]], labels: LabelSet, tokenizer: Any, limit: int
) -> dict[str, PieceFeatures]:
    """Makes the features of all splits that have sentences, by their names."""
    return {
        split: features(rows, labels, tokenizer, limit, split)
        for split, rows in rows_of_splits.items()
        if rows
    }


def _arguments(
    settings: FitSettings, folder: str, splits: Mapping[str, PieceFeatures], work: Work, pieces: int
) -> TrainingArguments:
    """Arguments of the Trainer for epochs of some pieces."""
    has_dev = "dev" in splits
    continues = work.folder is not None
    epoch_steps = -(-pieces // settings.batch_size)
    max_steps = max(settings.epochs * epoch_steps, settings.least_steps)
    # transformers 5.0 does not evaluate at the end by itself.
    between = min(max(epoch_steps, settings.eval_steps), max_steps)
    return TrainingArguments(
        output_dir=folder,
        seed=settings.seed,
        learning_rate=settings.learning_rate,
        max_steps=max_steps,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup_steps,
        lr_scheduler_type=settings.schedule,
        per_device_train_batch_size=max(1, settings.batch_size // settings.accumulation),
        gradient_accumulation_steps=settings.accumulation,
        max_grad_norm=settings.max_grad_norm,
        per_device_eval_batch_size=settings.batch_size if settings.attend_padding else 64,
        eval_strategy="steps" if has_dev else "no",
        eval_steps=between,
        save_strategy="steps" if has_dev or continues else "no",
        save_steps=between,
        save_total_limit=1,
        bf16=settings.bf16,
        fp16=settings.fp16,
        # transformers refuses bf16 without a GPU, unless the CPU is asked for.
        use_cpu=work.device == "cpu" or (settings.bf16 and not torch.cuda.is_available()),
        load_best_model_at_end=has_dev and settings.keep == "best",
        metric_for_best_model="f1",
        greater_is_better=True,
        batch_eval_metrics=True,
        save_only_model=not continues,
        restore_callback_states_from_checkpoint=continues,  # of early stopping
        **{**COMMON_ARGUMENTS, **_reports(work)},
    )


def _reports(work: Work) -> dict[str, Any]:
    if not work.report_to:
        return {}
    if work.events is not None:  # transformers 5 has no argument for it
        os.environ["TENSORBOARD_LOGGING_DIR"] = work.events
    return {"report_to": list(work.report_to)}


def check_reports(names: Sequence[str]) -> None:
    """Checks that tools that get logs are known and installed.

    Raises:
        UserError: one is not.
    """
    installed = get_available_reporting_integrations()  # type: ignore[no-untyped-call]
    for name in names:
        if name not in INTEGRATION_TO_CALLBACK:
            raise UserError(f"transformers knows {', '.join(INTEGRATION_TO_CALLBACK)}", name)
        if name not in installed:
            raise UserError("it is not installed here; install it with pip", name)
