"""A named-entity tagger in the style of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast, set_seed

from finetune.data.sets import Data, DataSets, are_named_sets
from finetune.data.views import UNIFIED, LabelMap, View, nearest
from finetune.entities import Entity
from finetune.evaluation.metrics import strict_scores
from finetune.fitting import Work, features, trained
from finetune.models import bilstm
from finetune.models.heads import CrfHead, LinearHead, head_of, load_head
from finetune.settings import FitSettings
from finetune.windows import WordTagger
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet, tags_to_spans
from nerbert.text.words import word_spans
from pretrain.models import (
    HeadInitMap,
    device_of,
    load_model,
    load_tagger,
    load_tokenizer,
    tag_names,
)
from pretrain.tagging.features import PieceFeatures


class Tagger:
    """An encoder with a tagging head: `fit`, `predict`, `score`, `save`, `load`."""

    def __init__(
        self,
        base: str,
        settings: FitSettings | None = None,
        head_init_map: HeadInitMap | None = None,
    ) -> None:
        """Describes a tagger; nothing is loaded yet.

        Args:
            base: encoder or pre-trained tagger: name on the hub, or folder.
            settings: settings of the fine-tuning.
            head_init_map: chooses the types of the base's own head whose rows initialise the row
                of a new type. By default `nearest` if the settings carry the head, else none.
        """
        self.base = base
        self.settings = settings or FitSettings()
        self._head_init_map = head_init_map or (nearest if self.settings.carry_head else None)
        self._words: WordTagger | None = None
        self._tags: list[str] = []
        self.history: list[dict[str, float]] = []

    def fit(
        self,
        data: Data,
        dev: Data | None = None,
        before: Data | None = None,
        work: Work | None = None,
        keep_types: bool = False,
    ) -> Tagger:
        """Fine-tunes the encoder and a new head; keeps the weights with the best dev F1.

        Args:
            data: train sentences: name of a set, a file, a folder, sentences, or a list of these.
            dev: dev sentences, likewise; if None, the dev split of `data`. Without dev sentences,
                the last weights are kept.
            before: sentences to train on before, for `source_epochs`. Head and state of the
                optimiser are kept, as in CrossNER's released code.
            work: how the training is watched and continued.
            keep_types: whether types keep their names also if `data` are several sets; else
                `LOC`, `Location` and `location` become one type.

        Raises:
            UserError: the data cannot be read, or the encoder cannot be loaded.
        """
        sets = DataSets(view=_view(keep_types, data, before))
        train = sets.sentences(data, "train")
        held = sets.sentences(data if dev is None else dev, "dev", needed=dev is not None)
        # Sorted by length, so that batches of the dev set need less padding.
        held = sorted(held, key=lambda row: len(row.tokens))
        first = sets.sentences(before, "train") if before is not None else []
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
            done = trained(model, head, labels, source, {"train": pieces(first, "source")})
            optimizer = done.optimizer.optimizer  # type: ignore[union-attr]  # accelerate's wrapper
        splits = {
            name: pieces(rows, name) for name, rows in (("train", train), ("dev", held)) if rows
        }
        trainer = trained(model, head, labels, settings, splits, optimizer, work or Work())
        self.history = list(trainer.state.log_history)
        self._set(trainer.model, tokenizer)
        return self

    def _fresh(
        self, train: Sequence[Sentence], labels: LabelSet
    ) -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
        """Loads the tokenizer, and the model with a new head."""
        settings = self.settings
        if self.base == bilstm.NAME:
            return bilstm.build(train, labels, settings.vectors)
        model = load_model(self.base, labels, settings.max_subwords, self._head_init_map)
        return load_tokenizer(self.base), model

    def _set(self, model: Any, tokenizer: Any) -> None:
        self._tags = tag_names(model)
        self._model, self._tokenizer = model, tokenizer
        self._words = WordTagger(model, tokenizer, self.settings.max_subwords)
        self._head = head_of(model)

    @property
    def tags(self) -> list[str]:
        """The tags that the tagger has, by label id."""
        return list(self._tags)

    def tag(self, texts: Sequence[Sequence[str]]) -> list[list[str]]:
        """Tags the words of each text.

        Raises:
            RuntimeError: the tagger is neither fitted nor loaded.
        """
        return [tags for tags, _ in self._tagged(texts)]

    def _tagged(self, texts: Sequence[Sequence[str]]) -> list[tuple[list[str], list[float]]]:
        """Tags the words of each text; also returns the probabilities of the tags."""
        if self._words is None:
            raise RuntimeError("the tagger is not trained: call fit, or Tagger.load")
        decoded = (self._head.decode(rows) for rows in self._words.logits(texts))
        return [([self._tags[index] for index in best], scores) for best, scores in decoded]

    def predict(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Finds the mentions in each text, in order. Texts may have any length."""
        spans = [word_spans(text) for text in texts]
        words = [
            [text[start:end] for start, end in found]
            for text, found in zip(texts, spans, strict=True)
        ]
        return [
            _entities(text, found, *tagged)
            for text, found, tagged in zip(texts, spans, self._tagged(words), strict=True)
        ]

    def score(self, data: Data) -> float:
        """Strict F1 (seqeval, IOB2) on sentences, or on the test split of a set.

        Types count by their unified names: `LOC` and `location` are one type.
        """
        rows = DataSets(view=View(UNIFIED)).sentences(data, "test")
        names = LabelMap.load(UNIFIED)
        found = [names.tags(tags) for tags in self.tag([row.tokens for row in rows])]
        return strict_scores([row.tags for row in rows], found).f1

    def save(self, folder: str) -> None:
        """Writes an ordinary Hugging Face checkpoint."""
        if self._words is None:
            raise RuntimeError("the tagger is not trained: call fit first")
        self._model.save_pretrained(folder)
        self._tokenizer.save_pretrained(folder)

    @classmethod
    def load(
        cls,
        folder: str,
        settings: FitSettings | None = None,
        device: str = "auto",
        half: bool = False,
    ) -> Tagger:
        """Loads a tagger from a checkpoint with a tagging head.

        Args:
            folder: folder, or name on the hub.
            settings: settings of the tagger.
            device: where it computes, such as "cpu"; "auto" for a GPU if there is one.
            half: whether it computes with 16 bits (float16 on a GPU, bfloat16 on a CPU).

        Raises:
            UserError: there is no such checkpoint or device, or its tags are not O, B- and I-.
        """
        place = device_of(device)
        tagger = cls(folder, settings)
        model, tokenizer = load_tagger(folder), load_tokenizer(folder)
        first, *others = tag_names(model)
        if first != "O" or not all(name[:2] in ("B-", "I-") for name in others):
            raise UserError(f"{folder}: its labels are not O, B-, I-; fine-tune it first")
        load_head(model, folder)
        _place(model, place, half)
        tagger._set(model, tokenizer)
        return tagger


def _view(keep_types: bool, *data: Data | None) -> View:
    """The view of data for training: types of several sets have unified names."""
    several = not keep_types and any(are_named_sets(one) for one in data if one is not None)
    return View(UNIFIED) if several else View()


def _place(model: PreTrainedModel, device: torch.device, half: bool) -> None:
    """Moves a model to a device, with weights of 16 bits if asked for; a CRF keeps 32."""
    model.to(device)  # type: ignore[arg-type]
    if half:
        model.to(torch.bfloat16 if device.type == "cpu" else torch.float16)  # type: ignore[arg-type]
        if hasattr(model, "crf"):
            model.get_submodule("crf").float()


def _entities(
    text: str, spans: Sequence[tuple[int, int]], tags: Sequence[str], scores: Sequence[float]
) -> list[Entity]:
    return [
        Entity(
            spans[first][0],
            spans[end - 1][1],
            name,
            mean(scores[first:end]),
            text[spans[first][0] : spans[end - 1][1]],
        )
        for first, end, name in tags_to_spans(tags)
    ]
