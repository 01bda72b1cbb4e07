"""A named-entity tagger in the style of scikit-learn."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import (
    EarlyStoppingCallback,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    PrinterCallback,
    TrainingArguments,
    set_seed,
)

from finetune import bilstm
from finetune.config import FitSettings
from finetune.conll import Sentence
from finetune.entities import Entity
from finetune.heads import CrfHead, LinearHead, head_of, load_head
from finetune.labelmaps import nearest
from finetune.metrics import strict_scores
from finetune.prediction import WordTagger
from finetune.sets import Data, sentences
from finetune.words import word_spans
from ontology.labels import LabelSet, tags_to_spans
from pipeline.errors import UserError
from pretrain import tagging
from pretrain.data import UNLINKED, Collator, PieceFeatures
from pretrain.evaluation import EntityScores
from pretrain.pieces import measured


def words_of(text: str) -> list[str]:
    """The words of a text as `Tagger.predict` takes them."""
    return [text[start:end] for start, end in word_spans(text)]


class Tagger:
    """An encoder with a tagging head: `fit`, `predict`, `score`, `save`, `load`."""

    def __init__(
        self,
        base: str,
        settings: FitSettings | None = None,
        lenders: tagging.Lenders | None = None,
    ) -> None:
        """Names the encoder; nothing is loaded yet.

        Args:
            base: name on the hub, or folder, of an encoder or a pre-trained tagger.
            settings: of the fine-tuning.
            lenders: types of the base's own head that lend their rows to a type; by default those
                that are `nearest` where the settings say so, else none.
        """
        self.base = base
        self.settings = settings or FitSettings()
        self._lenders = lenders or (nearest if self.settings.carry_head else None)
        self._words: WordTagger | None = None
        self._tags: list[str] = []
        self.history: list[dict[str, float]] = []

    def fit(self, data: Data, dev: Data | None = None, before: Data | None = None) -> Tagger:
        """Fine-tunes a fresh head and the encoder; the best epoch on `dev` counts.

        Args:
            data: train sentences: a set's name, a file, a folder, sentences, or a list of these.
            dev: likewise; the sets' own dev split if None and they have one. Without any, the last
                epoch counts.
            before: sentences that are learnt first, for `source_epochs`, with the same head and the
                optimiser's state carried on, as CrossNER's released code does.

        Raises:
            UserError: the data cannot be read, or the encoder cannot be loaded.
        """
        train, held = sentences(data, "train"), sentences(dev if dev is not None else data, "dev",
                                                          needed=dev is not None)  # fmt: skip
        held = sorted(held, key=lambda row: len(row.tokens))  # batches of the dev set pad less
        first = sentences(before, "train") if before is not None else []
        types = sorted({t[2:] for s in (*first, *train, *held) for t in s.tags if t != "O"})
        labels = LabelSet(tuple(types))
        settings = self.settings
        set_seed(settings.seed)
        tokenizer, model = self._fresh([*first, *train], labels)
        head = CrfHead.add(model) if settings.head == "crf" else LinearHead()

        def pieces(rows: Sequence[Sentence], name: str) -> PieceFeatures:
            return features(rows, labels, tokenizer, settings.max_subwords, name)

        optimizer: Any = None
        if first:
            source = replace(settings, epochs=settings.source_epochs, least_steps=0)
            done = _trained(model, head, labels, source, {"train": pieces(first, "source")})
            optimizer = done.optimizer.optimizer  # type: ignore[union-attr]  # accelerate's wrapper
        splits = {name: pieces(rows, name)
                  for name, rows in (("train", train), ("dev", held)) if rows}  # fmt: skip
        trainer = _trained(model, head, labels, settings, splits, optimizer)
        self.history = list(trainer.state.log_history)
        self._set(trainer.model, tokenizer)
        return self

    def _fresh(
        self, train: Sequence[Sentence], labels: LabelSet
    ) -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
        """Tokenizer and model with a new head."""
        settings = self.settings
        if self.base == bilstm.NAME:
            return bilstm.build(train, labels, settings.vectors)
        model = tagging.load_model(self.base, labels, settings.max_subwords, self._lenders)
        return tagging.load_tokenizer(self.base), model

    def _set(self, model: Any, tokenizer: Any) -> None:
        self._tags = tagging.tag_names(model)
        self._model, self._tokenizer = model, tokenizer
        self._words = WordTagger(model, tokenizer, self.settings.max_subwords)
        self._head = head_of(model)

    def tag(self, texts: Sequence[Sequence[str]]) -> list[list[str]]:
        """Tags of the words of each text.

        Raises:
            RuntimeError: the tagger is neither fitted nor loaded.
        """
        return [tags for tags, _ in self._tagged(texts)]

    def _tagged(self, texts: Sequence[Sequence[str]]) -> list[tuple[list[str], list[float]]]:
        """Tags of the words of each text, and their probabilities."""
        if self._words is None:
            raise RuntimeError("the tagger has learnt nothing: call fit, or Tagger.load")
        decoded = (self._head.decode(rows) for rows in self._words.logits(texts))
        return [([self._tags[index] for index in best], scores) for best, scores in decoded]

    def predict(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Mentions in each text, of any length, in order."""
        spans = [word_spans(text) for text in texts]
        words = [[text[start:end] for start, end in found]
                 for text, found in zip(texts, spans, strict=True)]  # fmt: skip
        return [
            _entities(text, found, *tagged)
            for text, found, tagged in zip(texts, spans, self._tagged(words), strict=True)
        ]

    def score(self, data: Data) -> float:
        """Strict F1 (seqeval, IOB2) on the sentences, of a set's test split."""
        rows = sentences(data, "test")
        found = self.tag([row.tokens for row in rows])
        return strict_scores([row.tags for row in rows], found).f1

    def save(self, folder: str) -> None:
        """Writes an ordinary Hugging Face checkpoint."""
        if self._words is None:
            raise RuntimeError("the tagger has learnt nothing: call fit first")
        self._model.save_pretrained(folder)
        self._tokenizer.save_pretrained(folder)

    @classmethod
    def load(cls, folder: str, settings: FitSettings | None = None) -> Tagger:
        """A tagger from a checkpoint with a tagging head.

        Raises:
            UserError: there is no such checkpoint, or its tags are not O, B- and I-.
        """
        tagger = cls(folder, settings)
        model, tokenizer = tagging.load_tagger(folder), tagging.load_tokenizer(folder)
        first, *others = tagging.tag_names(model)
        if first != "O" or not all(name[:2] in ("B-", "I-") for name in others):
            raise UserError(f"{folder}: its labels are not O, B-, I-; fine-tune it first")
        load_head(model, folder)
        tagger._set(model, tokenizer)
        return tagger


def _entities(text: str, spans: Sequence[tuple[int, int]], tags: Sequence[str],
              scores: Sequence[float]) -> list[Entity]:  # fmt: skip
    return [
        Entity(spans[first][0], spans[end - 1][1], name, mean(scores[first:end]),
               text[spans[first][0] : spans[end - 1][1]])
        for first, end, name in tags_to_spans(tags)
    ]  # fmt: skip


def _trained(
    model: Any, head: Any, labels: LabelSet, settings: FitSettings,
    splits: Mapping[str, PieceFeatures], optimizer: Any = None,
) -> tagging.TaggingTrainer:  # fmt: skip
    """A Trainer that has done its work, with the best model on the dev split if there is one.

    Args:
        model: with its head.
        head: of `finetune.heads`.
        labels: of the head.
        settings: of the fine-tuning.
        splits: "train", and "dev" if there is one.
        optimizer: that goes on; a new one if None.
    """
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = splits["train"].tokenizer
        trainer = tagging.TaggingTrainer(
            model=model, args=_arguments(settings, folder, splits),
            batch_size=settings.batch_size, window=1, loss=head.loss,
            train_dataset=splits["train"], eval_dataset=splits.get("dev"),
            processing_class=tokenizer, data_collator=Collator(int(tokenizer.pad_token_id or 0)),
            compute_metrics=EntityScores(labels.tags),
            preprocess_logits_for_metrics=head.best, optimizers=(optimizer, None),
            callbacks=[EarlyStoppingCallback(settings.patience)] if "dev" in splits else [],
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return trainer


def features(rows: Sequence[Sentence], labels: LabelSet, tokenizer: Any, max_subwords: int,
              where: str) -> PieceFeatures:  # fmt: skip
    """Sentences as the Trainer takes them."""
    position = {tag: index for index, tag in enumerate(labels.tags)}
    table = Dataset.from_dict({
        "id": [str(number) for number in range(len(rows))],
        "tokens": [row.tokens for row in rows],
        "ner_tags": [[position[tag] for tag in row.tags] for row in rows],
    })  # fmt: skip
    pieces = measured(table, tokenizer, max_subwords, len(labels.tags), where)
    return PieceFeatures(table, pieces, tokenizer, np.arange(len(labels.tags)))


def _arguments(
    settings: FitSettings, folder: str, splits: Mapping[str, PieceFeatures]
) -> TrainingArguments:
    has_dev = "dev" in splits
    when = "steps" if has_dev else "no"
    epoch_steps = -(-len(splits["train"]) // settings.batch_size)
    between = max(epoch_steps, settings.eval_steps)
    return TrainingArguments(
        output_dir=folder, seed=settings.seed, learning_rate=settings.learning_rate,
        max_steps=max(settings.epochs * epoch_steps, settings.least_steps),
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup_steps, lr_scheduler_type=settings.schedule,
        per_device_train_batch_size=settings.batch_size, per_device_eval_batch_size=64,
        eval_strategy=when, eval_steps=between, save_strategy=when, save_steps=between,
        save_total_limit=1, bf16=settings.bf16,
        use_cpu=settings.bf16 and not torch.cuda.is_available(),
        load_best_model_at_end=has_dev, metric_for_best_model="f1", greater_is_better=True,
        label_names=["labels", UNLINKED], batch_eval_metrics=True, remove_unused_columns=False,
        logging_strategy="epoch", logging_nan_inf_filter=False, disable_tqdm=True,
        report_to="none", dataloader_pin_memory=False, save_only_model=True,
    )  # fmt: skip
