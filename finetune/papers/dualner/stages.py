"""Runs the two stages of DualNER; a stopped stage is continued."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, TrainingArguments, set_seed

from finetune.papers.dualner.data import DualData
from finetune.papers.dualner.settings import NO_TEACHER, DualSettings, Method
from finetune.papers.dualner.training import Best, DualTrainer
from finetune.tagger.fitting import COMMON_ARGUMENTS, features
from nerbert.text.columns import Sentence
from pretrain.training.checkpoints import last_whole, resume
from pretrain.training.features import Collator, PieceFeatures
from pretrain.training.logs import FitProgress

_LOGGER = logging.getLogger("nerbert")
_LEAST_TIMES = 3  # a training has at least so many times the steps of its warm-up


def pieces_of(
    data: DualData, tokenizer: Any, settings: DualSettings, second: bool
) -> PieceFeatures:
    """Makes the pieces of labelled sentences, and in the second stage of unlabelled ones (as O)."""
    rows = list(data.labelled)
    if second:
        rows += [Sentence(list(words), ["O"] * len(words)) for _, words in data.unlabelled]
    return features(rows, data.labels, tokenizer, settings.max_subwords, "train")


def run_stage(
    folder: Path,
    model: PreTrainedModel,
    tokenizer: Any,
    method: Method,
    data: DualData,
    settings: DualSettings,
    seed: int,
    best: Best | None,
    name: str = "",
) -> tuple[Best, list[dict[str, Any]]]:
    """Trains a stage, or continues where it stopped.

    Args:
        folder: folder of its checkpoints.
        model: the model, which has the best weights at the end.
        tokenizer: tokenizer of the model.
        method: the method.
        data: sentences.
        settings: settings of the training.
        seed: seed of dropout and order.
        best: weights and score of the model in the second stage; None in the first stage.
        name: name of the training, for its progress.

    Returns:
        The best weights, and the Trainer's log.
    """
    second = best is not None
    all_pieces = pieces_of(data, tokenizer, settings, second)
    # Without a teacher the second stage has as many steps, of labelled sentences.
    is_alone = second and method.pseudo == NO_TEACHER
    pieces = pieces_of(data, tokenizer, settings, False) if is_alone else all_pieces
    size = settings.second_batch_size if second else settings.batch_size
    steps = -(-len(all_pieces) // size) * settings.epochs
    args = _arguments(folder, settings, min(size, len(pieces)), steps, seed)
    last = last_whole(folder)
    set_seed(seed)
    trainer = DualTrainer(
        model,
        method,
        data,
        Best.load(last) if last else best or Best.of(model),
        settings,
        second,
        args=args,
        train_dataset=pieces,
        eval_dataset=pieces,  # required by the Trainer; `evaluate` uses the dev sets instead
        batch_size=size,
        window=1,  # sorting over several steps would put sentences of one length into a step
        processing_class=tokenizer,
        data_collator=Collator(int(tokenizer.pad_token_id or 0)),
        callbacks=[FitProgress(name)],
    )
    resume(trainer, str(last) if last else None)
    history = _evaluations(trainer)
    model.load_state_dict(trainer.best.state)
    return trainer.best, history


def _warmup(settings: DualSettings, steps: int) -> int:
    """Steps of the warm-up: a tenth of a training that is too short for those of the settings."""
    if settings.warmup_steps * _LEAST_TIMES <= steps:
        return settings.warmup_steps
    shorter = steps // 10
    _LOGGER.info(
        "warm-up shortened to %d of %d steps (%d would exceed a third)",
        shorter,
        steps,
        settings.warmup_steps,
    )
    return shorter


def _evaluations(trainer: DualTrainer) -> list[dict[str, Any]]:
    """The logs of all evaluations; the last step is evaluated if it has not been."""
    steps = [line["step"] for line in trainer.state.log_history if "eval_f1" in line]
    if not steps or steps[-1] != trainer.state.global_step:
        trainer.evaluate()
    return [line for line in trainer.state.log_history if "eval_f1" in line]


def _arguments(
    folder: Path, settings: DualSettings, size: int, steps: int, seed: int
) -> TrainingArguments:
    """Arguments of the Trainer for some steps of `size` pieces."""
    between = min(settings.eval_steps, steps)
    device = min(settings.device_batch_size, size)
    args = TrainingArguments(
        output_dir=str(folder),
        seed=seed,
        learning_rate=settings.learning_rate,
        max_steps=steps,
        weight_decay=0.0,
        warmup_steps=_warmup(settings, steps),
        lr_scheduler_type="linear",
        per_device_train_batch_size=device,
        eval_strategy="steps",
        eval_steps=between,
        save_strategy="steps",
        save_steps=between,
        save_total_limit=2,
        bf16=settings.bf16,
        use_cpu=settings.bf16 and not torch.cuda.is_available(),
        **COMMON_ARGUMENTS,
    )
    share = -(-size // args.world_size)
    args.gradient_accumulation_steps = -(-share // device)
    return args
