"""Runs a pre-training by entity tagging, from settings to a checkpoint with a model card."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import Subset
from transformers import PreTrainedTokenizerFast, TrainingArguments, set_seed

from nerbert.commands.process import only_run, quiet_libraries
from nerbert.errors import UserError
from nerbert.reports import filled
from nerbert.storage.places import Place
from nerbert.text.corpus import SPLITS
from nerbert.text.sentences import SENTENCES
from nerbert.text.tags import LabelSet
from ontology.classes import ClassTree
from ontology.sources.nouns import names_by_class
from pretrain.settings import TINY, PretrainSettings
from pretrain.tagging.corpora import Corpora
from pretrain.tagging.open_head import NAME, add_open_head
from pretrain.tagging.open_loss import ChainLoss
from pretrain.tagging.open_teacher import Teacher
from pretrain.tagging.open_types import LABELS, PERSON_COST
from pretrain.training.arguments import TAGGING, processes, space_scores, spread
from pretrain.training.checkpoints import add_head, check_vocabulary
from pretrain.training.features import Collator, Feature, PieceFeatures
from pretrain.training.letter_cases import tell_cases
from pretrain.training.logs import progress
from pretrain.training.models import load_model
from pretrain.training.phrase_sets import PHRASES, PhraseSets
from pretrain.training.pieces import PieceCounts, count_subwords
from pretrain.training.scores import EntityScores, best_label
from pretrain.training.session import TrainingRun
from pretrain.training.subwords import token_loss
from pretrain.training.tokenizer import load_config, load_tokenizer
from pretrain.training.trainer import TaggingTrainer

_LOGGER = logging.getLogger("nerbert")


def run(settings: PretrainSettings, training_flags: Sequence[str] = ()) -> str:
    """Trains a tagger, or continues where an earlier run stopped.

    The output folder is locked against a second run.

    Args:
        settings: checked settings.
        training_flags: flags of TrainingArguments.

    Returns:
        A summary for users.

    Raises:
        UserError: corpus, base model, flags or output folder are unsuitable.
        BadLossError: the loss is NaN or infinite.
    """
    with only_run(settings.output):
        return _run(settings, training_flags)


def _run(settings: PretrainSettings, training_flags: Sequence[str]) -> str:
    corpora = Corpora(settings)
    if settings.mask_unlinked is None:
        settings = replace(settings, mask_unlinked=corpora.has_unlinked)
    labels = corpora.labels
    quiet_libraries()
    tags = LABELS.tags if settings.head == "open" else labels.tags
    training = TrainingRun(
        settings,
        training_flags,
        TAGGING,
        corpora.fingerprint,
        tags,
        categories=len(labels.categories),
    )
    settings = training.settings
    with training.args.main_process_first(desc="corpus"):
        inputs = _inputs(training, corpora)
    # Set again, so that the head does not depend on whether the tiny model was made now.
    set_seed(training.args.seed)
    trainer = _trainer(settings, training.args, inputs, labels)
    _LOGGER.info("%s", _plan_line(trainer, settings, inputs.counts, training.checkpoint))
    done = training.train(trainer)
    scores = {key.removeprefix("eval_"): value for key, value in trainer.evaluate().items()}
    score_names = ("precision", "recall", "f1", "f1_unlinked_ignored")
    results = {
        "validation": {key: round(scores[key], 6) for key in score_names},
        "validation_pieces": len(trainer.eval_dataset),  # type: ignore[arg-type]
        "steps": done.pop("steps"),
        "epochs": done.pop("epochs"),
        "train": inputs.counts.to_json(),
        **done,
        **trainer.throughput.totals(),
    }
    model = corpora.only and Place(corpora.only.folder / SENTENCES)
    sentences = [SENTENCES] if model and model.exists() else []
    if trainer.is_world_process_zero() and model and sentences:
        (settings.output / SENTENCES).write_bytes(model.read_bytes())
    keeps_best = bool(training.args.load_best_model_at_end)
    trainer.finish(lambda: model_card(training.finish(results), corpora, keeps_best))
    training.seal(
        [*trainer.made, *([SENTENCES] if Path(settings.output, SENTENCES).is_file() else [])]
    )
    return _summary(settings, results | training.measured)


@dataclass(frozen=True)
class _Inputs:
    """The inputs of the Trainer.

    Attributes:
        base: name or folder of the base model.
        tokenizer: tokenizer of the base model.
        train: train pieces.
        validation: validation pieces.
        counts: counts of the train sentences.
        phrase_sets: phrases of the mentions of the train pieces, for an open head.
        languages: codes of the wikis of the corpora.
    """

    base: str
    tokenizer: PreTrainedTokenizerFast
    train: PieceFeatures
    validation: PieceFeatures
    counts: PieceCounts
    phrase_sets: PhraseSets | None
    languages: Sequence[str]


def _inputs(training: TrainingRun[PretrainSettings], corpora: Corpora) -> _Inputs:
    """Reads both splits, and makes their pieces; makes the base model if it is `tiny`."""
    settings = training.settings
    rows = {split: corpora.rows(split) for split in SPLITS}
    base = training.base_model(lambda: rows["train"])
    tokenizer = load_tokenizer(base)
    pieces = {
        split: count_subwords(
            rows[split],
            tokenizer,
            settings.max_subwords,
            len(corpora.new_labels),
            f"{corpora}/{split}",
            processes(),
        )
        for split in rows
    }
    if not all(len(dataset) for dataset in pieces.values()):
        raise UserError(f"{corpora}: no sentence fits into --max-subwords {settings.max_subwords}")
    phrase_sets = None
    if settings.head == "open" and PHRASES in rows["train"].column_names:
        phrase_sets = PhraseSets(rows["train"], len(corpora.labels.categories))
    train = PieceFeatures(
        rows["train"],
        pieces["train"],
        tokenizer,
        corpora.new_labels,
        bool(settings.mask_unlinked),
        phrase_sets,
        tells_endings=settings.head == "open",
    )
    validation = PieceFeatures(
        rows["validation"], pieces["validation"], tokenizer, corpora.new_labels
    )
    counts = PieceCounts.of(rows["train"], pieces["train"])
    languages = corpora.facts("language")
    return _Inputs(base, tokenizer, train, validation, counts, phrase_sets, languages)


def _trainer(
    settings: PretrainSettings, args: TrainingArguments, inputs: _Inputs, labels: LabelSet
) -> TaggingTrainer:
    """The Trainer over both splits."""
    spread(args, settings.batch_size, len(inputs.train))
    scored = _sample(inputs.validation, settings.validation_examples)
    space_scores(args, len(inputs.train), len(scored))
    is_open = settings.head == "open"
    model = load_model(inputs.base, LABELS if is_open else labels, settings.max_subwords)
    check_vocabulary(model, inputs.tokenizer, inputs.base)
    loss, best, reads = token_loss, best_label, None
    if is_open:
        if getattr(load_config(inputs.base), "tag_head", None) == NAME:
            add_head(model, NAME, "classifier", add_open_head, inputs.base)
        else:
            add_open_head(model)
        tell_cases(model, inputs.tokenizer)
        sets = inputs.phrase_sets.sets if inputs.phrase_sets else [[]]
        tree, names = ClassTree.shipped(), names_by_class(inputs.languages)
        teacher = Teacher(settings.teacher, inputs.tokenizer, args) if settings.teacher else None
        reads = teacher.read if teacher else None
        head = ChainLoss(
            model, inputs.tokenizer, labels.categories, tree, settings.chains, sets, names, teacher
        )
        model.config.open_types = {name: name for name in head.names}
        model.config.open_phrases = head.phrases
        model.config.open_person_cost = PERSON_COST
        loss, best = head.loss, head.best
    return TaggingTrainer(
        model=model,
        args=args,
        batch_size=settings.batch_size,
        data_collator=Collator(int(inputs.tokenizer.pad_token_id or 0)),
        train_dataset=inputs.train,
        eval_dataset=scored,
        processing_class=inputs.tokenizer,
        callbacks=[progress()],
        loss=loss,
        reads=reads,
        compute_metrics=EntityScores(labels.tags),
        preprocess_logits_for_metrics=best,
    )


def _sample(pieces: PieceFeatures, size: int) -> Subset[Feature]:
    """Draws `size` pieces, the same in every run, and sorts them by length."""
    sample = np.random.default_rng(0).permutation(len(pieces))[:size]
    order = np.argsort(-pieces.lengths[sample], kind="stable")
    return Subset(pieces, sample[order].tolist())


def _plan_line(
    trainer: TaggingTrainer, settings: PretrainSettings, counts: PieceCounts, checkpoint: str | None
) -> str:
    args = trainer.args
    where = f"continuing from {checkpoint}" if checkpoint else "from the start"
    return (
        f"{counts.sentences:,} sentences, {counts.pieces:,} pieces ({counts.split:,} sentences "
        f"split, {counts.words_left_out} words left out), {counts.subwords:,} sub-words; "
        f"{trainer.model.num_labels} tags; steps of {settings.batch_size} on "  # type: ignore
        f"{args.world_size} x {args.device.type} x {args.gradient_accumulation_steps}; {where}"
    )


def _summary(settings: PretrainSettings, results: dict[str, Any]) -> str:
    scores = results["validation"]
    unlinked = scores["f1_unlinked_ignored"]
    return (
        f"steps       {results['steps']:,} of {settings.batch_size} pieces, "
        f"{results['epochs']:g} epochs, {results['train_s']:,} s\n"
        f"sub-words   {results['subwords_per_s']:,} a second, padding {results['padding']:.1%}\n"
        f"validation  F1 {scores['f1']:.4f} (seqeval strict, IOB2), precision "
        f"{scores['precision']:.4f}, recall {scores['recall']:.4f}\n"
        f"            F1 {unlinked:.4f} without predictions on names that no link marks\n"
        f"checkpoint  {settings.output}"
    )


def model_card(record: Mapping[str, Any], corpora: Corpora, keeps_best: bool) -> str:
    """Text of the card: `data/card.md`, filled in.

    Args:
        record: content of `pretrain.json` of a finished run.
        corpora: the corpora.
        keeps_best: whether the checkpoint with the best F1 is kept, not the last one.
    """
    settings, training, results = record["settings"], record["training"], record["results"]
    languages = corpora.facts("language") or ["und"]
    base = settings["base_model"]
    is_local = base == TINY or Path(base).exists()
    scores, teacher = results["validation"], settings["teacher"]
    return filled(
        "pretrain.tagging",
        name=record["name"],
        language=languages[0] if len(languages) == 1 else f"[{', '.join(languages)}]",
        head=filled("pretrain.tagging", "open.md") if settings["head"] == "open" else "",
        base_model_line="" if is_local else f"\nbase_model: {base}",
        base_model="A tiny BERT" if base == TINY else f"`{Path(base).name if is_local else base}`",
        dataset=corpora.description,
        n_categories=record["categories"],
        categories=settings["categories"],
        max_subwords=settings["max_subwords"],
        batch_size=settings["batch_size"],
        unlinked="ignored in the loss" if settings["mask_unlinked"] else "labelled O",
        teacher=f"\n| teacher | `{Path(teacher).name}`, beside the labels |" if teacher else "",
        kept="Best checkpoint by F1 on" if keeps_best else "Last checkpoint, on",
        **{
            key: f"{results['train'][key]:,}"
            for key in ("sentences", "pieces", "split", "words_left_out")
        },
        validation=f"{results['validation_pieces']:,}",
        steps=f"{results['steps']:,}",
        epochs=f"{results['epochs']:g}",
        subwords_per_s=f"{results['subwords_per_s']:,}",
        padding=f"{results['padding']:.1%}",
        optimizer=training["optim"],
        learning_rate=f"{training['learning_rate']:g}",
        scheduler=training["lr_scheduler_type"],
        seed=training["seed"],
        **{key: f"{value:.4f}" for key, value in scores.items()},
    )
