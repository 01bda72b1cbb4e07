"""Runs a domain-adaptive pre-training, from settings to a checkpoint with a model card."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

from nerbert.commands.process import is_first, only_run, quiet_libraries
from nerbert.errors import UserError
from nerbert.reports import filled
from nerbert.storage.places import Place
from nerbert.text.corpus import report_of
from pretrain.mlm import blocks
from pretrain.mlm.model import FiniteLoss, Masker, MlmTrainer, load_masked_lm
from pretrain.settings import TINY, DaptSettings
from pretrain.training.arguments import processes, space_scores
from pretrain.training.checkpoints import check_vocabulary
from pretrain.training.logs import progress
from pretrain.training.session import TrainingRun
from pretrain.training.tokenizer import load_tokenizer

_LOGGER = logging.getLogger("nerbert")
_KIND = {"prediction_loss_only": True, "label_names": ["labels"]}


def run_all(settings: DaptSettings, training_flags: Sequence[str]) -> None:
    """Trains a model for each share of the corpus, and prints a summary of each."""
    for run_settings in settings.runs():
        with only_run(run_settings.output):
            summary = run(run_settings, training_flags)
        if is_first():
            print(summary)


def run(settings: DaptSettings, training_flags: Sequence[str]) -> str:
    """Trains a model, or continues where an earlier run stopped.

    Args:
        settings: checked settings.
        training_flags: flags of TrainingArguments.

    Returns:
        A summary for users.

    Raises:
        UserError: corpus, base model, flags or output folder are unsuitable.
        BadLossError: the loss is NaN or infinite.
    """
    quiet_libraries()
    corpus = blocks.load(settings.corpus, settings.cache_dir)
    rows = blocks.rows_of(corpus, settings.level, settings.corpus)
    digest = blocks.fingerprint(settings.corpus)
    training = TrainingRun(settings, training_flags, _KIND, digest, domain=_domain(settings.corpus))
    with training.args.main_process_first(desc="corpus"):
        base = training.base_model(lambda: corpus)
        tokenizer = load_tokenizer(base)
        _check_mask(base, tokenizer)
        ids = blocks.subwords(corpus, tokenizer, processes())
    pieces, held_out = (blocks.Blocks(ids, part, tokenizer, settings.max_subwords) for part in rows)
    pieces.take(settings.share)
    # Set again, so that a new head does not depend on whether the tiny model was made now.
    set_seed(training.args.seed)
    new_head = settings.new_head or settings.base_model == TINY
    model = load_masked_lm(base, settings.max_subwords, new_head)
    check_vocabulary(model, tokenizer, base)
    trainer = _trainer(settings, training.args, model, tokenizer, pieces, held_out)
    _LOGGER.info("%s", _plan_line(settings, rows, len(pieces), training.checkpoint))
    before = _before(training.folder, trainer, training.checkpoint)
    done = training.train(trainer)
    results = {
        "perplexity_before": round(before, 4),
        "perplexity": round(_perplexity(trainer), 4),
        "sentences": len(rows[0]),
        "held_out": len(rows[1]),
        "blocks": len(pieces),
        "subwords": pieces.subwords,
        **done,
    }
    trainer.finish(lambda: _card(training.finish(results)))
    training.seal(trainer.made)
    return _summary(settings, results | training.measured)


def _plan_line(
    settings: DaptSettings, rows: tuple[blocks.Ints, blocks.Ints], size: int, checkpoint: str | None
) -> str:
    return (
        f"{len(rows[0]):,} sentences of level {settings.level}, {size:,} blocks of at most "
        f"{settings.max_subwords} sub-words, {len(rows[1]):,} sentences held out; continuing from "
        f"{checkpoint or 'the start'}"
    )


def _summary(settings: DaptSettings, results: dict[str, Any]) -> str:
    return (
        f"steps       {results['steps']:,} of {settings.batch_size} blocks, {results['epochs']:g} "
        f"epochs, {results['train_s']:,} s\n"
        f"perplexity  {results['perplexity_before']:,} before, {results['perplexity']:,} after, on "
        f"{results['held_out']:,} sentences held out\ncheckpoint  {settings.output}"
    )


def _domain(corpus: str) -> str:
    """Name of the corpus's domain, by its report."""
    report = report_of(corpus)
    return str(report["domain"]["name"]) if report else Path(corpus).name


def _check_mask(base: str, tokenizer: PreTrainedTokenizerFast) -> None:
    if tokenizer.mask_token_id is None:
        raise UserError("its tokenizer has no mask; use an encoder such as bert-base-cased", base)


def _trainer(
    settings: DaptSettings,
    args: TrainingArguments,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    train: blocks.Blocks,
    held_out: blocks.Blocks,
) -> MlmTrainer:
    """Makes the Trainer. The number of blocks per step does not depend on the number of devices."""
    share = -(-settings.batch_size // args.world_size)
    args.per_device_train_batch_size = min(args.per_device_train_batch_size, share)
    args.gradient_accumulation_steps = -(-share // args.per_device_train_batch_size)
    space_scores(args, len(train), len(held_out))
    trainer = MlmTrainer(
        model=model,
        args=args,
        train_dataset=train,
        eval_dataset=held_out,
        data_collator=Masker(tokenizer, settings.masking, settings.rate, args.seed),
        processing_class=tokenizer,
        callbacks=[progress(), FiniteLoss()],
    )
    return trainer


def _perplexity(trainer: Trainer) -> float:
    """Exponential of the mean loss on held-out sentences; the same sub-words are always masked."""
    return math.exp(min(trainer.evaluate()["eval_loss"], 100.0))


def _before(folder: Path, trainer: Trainer, checkpoint: str | None) -> float:
    """Perplexity of the base model; a continued run reads it from a file."""
    path = folder / "before.json"
    earlier = Place(path).read_json_or_none() if checkpoint is not None else None
    if isinstance(earlier, float):
        return earlier
    perplexity = _perplexity(trainer)
    if trainer.is_world_process_zero():
        Place(path).write_json(perplexity)
    return perplexity


def _card(record: dict[str, Any]) -> str:
    """Text of the model card."""
    settings, training, results = record["settings"], record["training"], record["results"]
    base = settings["base_model"]
    is_local = base == TINY or Path(base).exists()
    return filled(
        "pretrain.mlm",
        **{**settings, **results},
        name=record["name"],
        domain=record["domain"],
        base_model_line="" if is_local else f"\nbase_model: {base}",
        base=Path(base).name if is_local else base,
        rate_per_cent=f"{settings['rate']:.0%}",
        learning_rate=f"{training['learning_rate']:g}",
        scheduler=training["lr_scheduler_type"],
        optimizer=training["optim"],
        seed=training["seed"],
    )
