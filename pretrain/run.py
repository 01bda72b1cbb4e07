"""One pre-training, from checked settings to a checkpoint with its card."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import Subset
from transformers import (
    PreTrainedTokenizerFast,
    PrinterCallback,
    TrainingArguments,
    set_seed,
)

from ontology.labels import LabelSet
from pipeline.errors import UserError
from pretrain import arguments, checkpoints, data, tagging, tiny
from pretrain.card import model_card
from pretrain.config import TINY, PretrainSettings
from pretrain.corpus import Corpus, view
from pretrain.evaluation import EntityScores, best_label
from pretrain.loglines import LogLines
from pretrain.pieces import PieceCounts, measured

_LOGGER = logging.getLogger("nerbert")


def run(settings: PretrainSettings, rest: Sequence[str]) -> str:
    """Trains, or goes on where the last run with these settings stopped.

    Args:
        settings: checked.
        rest: flags of TrainingArguments.

    Returns:
        What was made, in lines for people.

    Raises:
        UserError: corpus, base model, flags or output do not fit.
        BadLossError: the loss is not a finite number.
    """
    corpus = Corpus.open(settings.corpus, settings.mask_unlinked)
    labels, new_labels = view(corpus.labels, settings.categories)
    data.quiet_libraries()
    args, settings = arguments.training_arguments(settings, rest)
    output = checkpoints.Output(Path(settings.output), settings, args, corpus.fingerprint)
    checkpoint = output.checkpoint(labels.tags)
    if args.process_index == 0:
        output.begin(categories=len(labels.categories))
    set_seed(args.seed)
    with args.main_process_first(desc="corpus"):
        renew = checkpoint is None and args.process_index == 0
        inputs = _inputs(settings, corpus, new_labels, renew)
    set_seed(args.seed)  # the head is the same whether the tiny model was made now or before
    trainer = _trainer(settings, args, inputs, labels)
    _LOGGER.info("%s", _plan_line(trainer, settings, inputs.counts, checkpoint))
    start = time.monotonic()
    trainer.train(resume_from_checkpoint=checkpoint)
    elapsed_s = time.monotonic() - start
    scores = {key.removeprefix("eval_"): value for key, value in trainer.evaluate().items()}
    kept = ("precision", "recall", "f1", "f1_unlinked_ignored")
    results = {
        "validation": {key: round(scores[key], 6) for key in kept},
        "validation_pieces": len(trainer.eval_dataset),  # type: ignore[arg-type]
        "steps": trainer.state.global_step, "epochs": round(trainer.state.epoch or 0, 4),
        "train": inputs.counts.to_json(), "train_s": round(elapsed_s, 1),
        **trainer.throughput.totals(),
    }  # fmt: skip
    trainer.save_model(settings.output, _internal_call=True)  # without a push: the card comes first
    if trainer.is_world_process_zero():
        record = output.finish(results)
        trainer.card = model_card(record, corpus.folder)
        trainer.create_model_card()
    if args.push_to_hub:
        trainer.push_to_hub()
    tagging.end_together(trainer)
    return _summary(settings, results)


@dataclass(frozen=True)
class _Inputs:
    """What the Trainer is fed with.

    Attributes:
        base: name or folder of the base model.
        tokenizer: its.
        train: pieces; `validation` likewise.
        counts: what became of the train sentences.
    """

    base: str
    tokenizer: PreTrainedTokenizerFast
    train: data.PieceFeatures
    validation: data.PieceFeatures
    counts: PieceCounts


def _inputs(settings: PretrainSettings, corpus: Corpus, new_labels: Any, renew: bool) -> _Inputs:
    """Both splits, measured with the base model's tokenizer; for `tiny` that model is made.

    Args:
        settings: of the run.
        corpus: that is read.
        new_labels: label id of the view for each of the corpus, shape (old tags,).
        renew: whether a tiny model that a failed run left is made anew.
    """
    rows = {
        split: data.load(corpus, split, examples, settings.cache_dir)
        for split, examples in (("train", settings.train_examples), ("validation", 0))
    }
    base = settings.base_model
    if base == TINY:
        base = str(Path(settings.output) / "base")
        if renew or not (Path(base) / "model.safetensors").is_file():
            tiny.build(rows["train"], Path(base))
    tokenizer = tagging.load_tokenizer(base)
    pieces = {
        split: measured(rows[split], tokenizer, settings.max_subwords, len(corpus.labels.tags),
                        str(corpus.folder / split), arguments.processes())
        for split in rows
    }  # fmt: skip
    if not all(len(found) for found in pieces.values()):
        raise UserError(
            f"{corpus.folder}: no sentence fits into --max-subwords {settings.max_subwords}"
        )
    train = data.PieceFeatures(
        rows["train"], pieces["train"], tokenizer, new_labels, settings.mask_unlinked
    )
    validation = data.PieceFeatures(rows["validation"], pieces["validation"], tokenizer, new_labels)
    counts = PieceCounts.of(rows["train"], pieces["train"])
    return _Inputs(base, tokenizer, train, validation, counts)


def _trainer(
    settings: PretrainSettings, args: TrainingArguments, inputs: _Inputs, labels: LabelSet
) -> tagging.TaggingTrainer:
    """The Trainer over both splits."""
    arguments.spread(args, settings.batch_size, len(inputs.train))
    trainer = tagging.TaggingTrainer(
        model=tagging.load_model(inputs.base, labels, settings.max_subwords), args=args,
        batch_size=settings.batch_size,
        data_collator=data.Collator(int(inputs.tokenizer.pad_token_id or 0)),
        train_dataset=inputs.train,
        eval_dataset=_sample(inputs.validation, settings.validation_examples),
        processing_class=inputs.tokenizer, callbacks=[LogLines()],
        compute_metrics=EntityScores(labels.tags), preprocess_logits_for_metrics=best_label,
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    return trainer


def _sample(pieces: data.PieceFeatures, size: int) -> Subset[data.Feature]:
    """`size` pieces, the same in every run, the longest first."""
    chosen = np.random.default_rng(0).permutation(len(pieces))[:size]
    order = np.argsort(-pieces.lengths[chosen], kind="stable")
    return Subset(pieces, chosen[order].tolist())


def _plan_line(
    trainer: tagging.TaggingTrainer, settings: PretrainSettings, counts: PieceCounts,
    checkpoint: str | None,
) -> str:  # fmt: skip
    args = trainer.args
    where = f"going on from {checkpoint}" if checkpoint else "from the start"
    return (
        f"{counts.sentences:,} sentences, {counts.pieces:,} pieces ({counts.split:,} sentences "
        f"split, {counts.words_left_out} words left out), {counts.subwords:,} sub-words; "
        f"{trainer.model.num_labels} tags; steps of {settings.batch_size} on "  # type: ignore
        f"{args.world_size} x {args.device.type} x {args.gradient_accumulation_steps}; {where}"
    )


def _summary(settings: PretrainSettings, results: dict[str, Any]) -> str:
    scores = results["validation"]
    return "\n".join((
        f"steps       {results['steps']:,} of {settings.batch_size} pieces, {results['epochs']:g} "
        f"epochs, {results['train_s']:,} s",
        f"sub-words   {results['subwords_per_s']:,} a second, padding {results['padding']:.1%}",
        f"validation  F1 {scores['f1']:.4f} (seqeval strict, IOB2), precision "
        f"{scores['precision']:.4f}, recall {scores['recall']:.4f}",
        f"            F1 {scores['f1_unlinked_ignored']:.4f} without predictions on names that no "
        "link marks",
        f"checkpoint  {settings.output}",
    ))  # fmt: skip
