"""A named-entity tagger in the style of scikit-learn."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from finetune.data.sets import Data, DataSets
from finetune.data.views import UNIFIED, LabelMap, View, nearest
from finetune.heads.windows import BATCH, Floats, Forward, LinearHead, WordTagger
from finetune.scoring.calibration import AS_THEY_ARE, Calibration
from finetune.scoring.metrics import seqeval_scores
from finetune.settings import NAMES, FitSettings
from finetune.tagger.entities import Entities, Prediction, Text, entities_of
from finetune.tagger.onnx import LINEAR, exported
from finetune.tagger.onnx import NAMES as BACKENDS
from finetune.tagger.texts import TextSplitter, beside, checked_texts
from nerbert.commands.options import build_from_python
from nerbert.commands.process import quiet_libraries
from nerbert.errors import UserError
from nerbert.text.columns import Sentence
from nerbert.text.tags import LabelSet, tags_to_spans
from nerbert.text.tokens import Span
from ontology.classes import spaced

if TYPE_CHECKING:  # these load torch, which a tagger by ONNX Runtime does not need
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from finetune.tagger.fitting import Work
    from finetune.tagger.models import Head
    from pretrain.tagging.open_head import Types
    from pretrain.training.features import PieceFeatures
    from pretrain.training.models import HeadInitMap


OPEN_MIN_SCORE = 0.35
"""Smallest score of a mention that an open head finds; see docs/pretraining.md."""


class Tagger:
    """An encoder with a tagging head: `fit`, `predict`, `score`, `save`, `load`."""

    def __init__(
        self,
        base: str | os.PathLike[str],
        settings: FitSettings | None = None,
        head_init_map: HeadInitMap | None = None,
        **options: Any,
    ) -> None:
        """Describes a tagger; nothing is loaded yet.

        Args:
            base: encoder or pre-trained tagger: name on the hub, or folder.
            settings: settings of the fine-tuning.
            options: fields of `FitSettings`, such as `learning_rate`, instead of `settings`.
            head_init_map: chooses the types of the base's own head whose rows initialise the row
                of a new type. By default `nearest` if the settings carry the head, else none.

        Raises:
            UserError: an option is unknown, or has a wrong value.
        """
        self.base = os.fspath(base)
        if settings is not None and options:
            raise UserError(f"{next(iter(options))} =: give it in `settings`, or no `settings`")
        self.settings = settings or build_from_python(FitSettings, options)
        self._head_init_map = head_init_map or (nearest if self.settings.carry_head else None)
        self._words: WordTagger | None = None
        self._tags: list[str] = []
        self._head: LinearHead | Head | Types = LinearHead()
        self._names: dict[str, Tensor] = {}  # vectors of types' names, if the head is open
        self._model: PreTrainedModel | None = None
        self._tokenizer: PreTrainedTokenizerFast | None = None
        self.splitter = TextSplitter()
        self.calibration = AS_THEY_ARE
        self.min_score = 0.0
        self.history: list[dict[str, float]] = []

    def __repr__(self) -> str:
        """Base and types, such as `Tagger('ner-bert', 9 types)`."""
        known = f"{len(self.types)} types" if self._words else "not trained"
        return f"Tagger({self.base!r}, {known})"

    def fit(
        self,
        data: Data,
        dev: Data | None = None,
        before: Data | None = None,
        work: Work | None = None,
        keep_types: bool = False,
        kinds: Sequence[int] | None = None,
    ) -> Tagger:
        """Fine-tunes the encoder and a new head; keeps the weights with the best dev F1.

        Args:
            data: train sentences: name of a set, a file, a folder, sentences, or a list of these.
            dev: dev sentences, likewise; if None, the dev split of `data`. Without dev sentences,
                the last weights are kept.
            before: sentences of the source to train on before, for `source_epochs`. The head is
                kept; with `carry_optimizer` also the optimiser, as in CrossNER's released code.
            work: how the training is watched and continued.
            keep_types: whether types keep their names also if `data` are several sets; else
                `LOC`, `Location` and `location` become one type.
            kinds: domain of each train sentence, of `finetune.heads.sequence`; None if all are of
                the target.

        Raises:
            UserError: the data cannot be read, or the encoder cannot be loaded.
        """
        # A tagger that only predicts needs none of this.
        from transformers import set_seed

        from finetune.tagger.fitting import Work, features, trained
        from finetune.tagger.models import add_head, fresh_model
        from finetune.tagger.train_rows import train_rows
        from pretrain.training.models import longest_input

        quiet_libraries()
        settings = self.settings
        rows = train_rows(data, dev, before, keep_types, kinds, settings)
        labels = LabelSet(tuple(sorted({name for types in rows.types for name in types})))
        set_seed(settings.seed)
        tokenizer, model = fresh_model(
            self.base, settings, [*rows.before, *rows.train], labels, self._head_init_map
        )
        head = add_head(model, settings, tokenizer, labels, rows.types)
        limit = settings.max_subwords or longest_input(model)

        def pieces(some: Sequence[Sentence], name: str) -> dict[str, PieceFeatures]:
            return {name: features(some, labels, tokenizer, limit, name)} if some else {}

        optimizer: Any = None
        if rows.before:
            source = replace(settings, epochs=settings.source_epochs, least_steps=0)
            splits = pieces(rows.before, "train")
            done = trained(model, head, labels, source, splits, kinds=rows.before_kinds)
            if settings.carry_optimizer:
                optimizer = done.optimizer.optimizer  # type: ignore[union-attr]  # of accelerate
        splits = {**pieces(rows.train, "train"), **pieces(rows.dev, "dev")}
        trainer = trained(
            model, head, labels, settings, splits, optimizer, work or Work(), rows.kinds
        )
        self.history = list(trainer.state.log_history)
        vars(model.config).pop("mention_scores", None)  # those of the base are of other types
        self._set(trainer.model, tokenizer)
        return self

    def _set(self, model: Any, tokenizer: Any, forward: Forward | None = None) -> None:
        # These load torch.
        from finetune.tagger.models import head_of, word_tagger
        from pretrain.training.models import longest_input, tag_names

        self._model, self._tokenizer, self._names = model, tokenizer, {}
        if self.is_open:
            self.use_types(model.config.open_types)
        else:
            self._tags, self._head = tag_names(model), head_of(model)
        limit = self.settings.max_subwords or longest_input(model)
        attend = self.settings.attend_padding
        batch_size = self.settings.batch_size if attend else BATCH
        self._words = word_tagger(
            model, tokenizer, limit, batch_size, forward=forward, attend=attend
        )
        self._find_splitter()
        self._use(Calibration(**(getattr(model.config, "mention_scores", None) or {})))

    @property
    def is_open(self) -> bool:
        """Whether it takes any types, by their names."""
        if self._model is None:
            return False
        # It loads torch.
        from pretrain.tagging.open_head import is_open

        return is_open(self._model)

    def use_types(self, types: Sequence[str] | Mapping[str, str]) -> None:
        """Finds mentions of these types from now on; for open heads.

        `min_score` becomes `OPEN_MIN_SCORE`; set it to 0 for all that is found.

        Args:
            types: names in words, such as "political party"; or name of each type -> in words.

        Raises:
            UserError: the tagger has another head, or there is no type.
        """
        # It loads torch.
        from pretrain.tagging.open_head import Types

        if not self.is_open:
            raise UserError(
                f"--types: {self.base} has its own types; give a model of nerbert pretrain --head "
                "open"
            )
        if not types or len(set(types)) < len(types):
            raise UserError("--types: give at least one type, and none twice")
        words = list(types.values() if isinstance(types, Mapping) else map(spaced, types))
        self._head = Types.of(self.model, self.tokenizer, words, known=self._names)
        self._tags = LabelSet(tuple(types)).tags
        self._use(Calibration(min_score=OPEN_MIN_SCORE))

    def _find_splitter(self) -> None:
        if self.base not in NAMES:
            self.splitter = TextSplitter.beside(self.base)

    @property
    def model(self) -> PreTrainedModel:
        """The model of transformers; it is loaded now if ONNX Runtime computes in its place."""
        return self._pair()[0]

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The tokenizer of transformers; see `model`."""
        return self._pair()[1]

    def _pair(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        if self._model is None and self._words is not None:
            self._model, self._tokenizer = _loaded(self.base)
        if self._model is None or self._tokenizer is None:
            raise RuntimeError("the tagger is not trained: call fit, or Tagger.load")
        return self._model, self._tokenizer

    @property
    def tags(self) -> list[str]:
        """The tags that the tagger has, by label id."""
        return list(self._tags)

    @property
    def types(self) -> list[str]:
        """The types that the tagger has, or looks for."""
        return list(dict.fromkeys(tag[2:] for tag in self._tags if tag != "O"))

    def tag(self, texts: Sequence[Sequence[str]]) -> list[list[str]]:
        """Tags the words of each text; with `context` in the settings, texts are neighbours.

        These are the best tags; those of an open head are of mentions of at least `min_score`.

        Raises:
            RuntimeError: the tagger is neither fitted nor loaded.
        """
        if self.is_open:
            return [list(one.tags) for one in self.predictions(texts)]
        return [
            [self._tags[index] for index in self._head.decode(logits)[0]]
            for logits in self._logits([texts])
        ]

    def _logits(self, groups: Iterable[Sequence[Sequence[str]]]) -> list[Floats]:
        """Scores of the words of sentences, which are given in groups of neighbours."""
        if self._words is None:
            raise RuntimeError("the tagger is not trained: call fit, or Tagger.load")
        rows = [row for group in groups for row in beside(group, self.settings.context)]
        logits = self._words.logits([words for words, _ in rows])
        return [scores[own] for scores, (_, own) in zip(logits, rows, strict=True)]

    @overload
    def predict(  # type: ignore[overload-overlap]  # a string is a list of strings, too
        self, texts: str, split: bool = True, types: Sequence[str] = ()
    ) -> Entities: ...

    @overload
    def predict(
        self, texts: Iterable[Text], split: bool = True, types: Sequence[str] = ()
    ) -> list[Entities]: ...

    def predict(
        self, texts: str | Iterable[Text], split: bool = True, types: Sequence[str] = ()
    ) -> Entities | list[Entities]:
        """Finds the mentions in each text, in order; of a single text, its mentions.

        Mentions with a score below `min_score` are left out. It is 0, or what `calibrate` found; of
        open heads `OPEN_MIN_SCORE`.

        Args:
            texts: texts of any length, whose mentions have offsets in characters; or lists of
                tokens, each one a sentence, whose mentions have offsets in tokens.
            split: whether texts are parted into sentences, each of which is tagged by itself.
            types: if the head is open, the types that are looked for in these texts; otherwise
                those of `use_types`.

        Raises:
            UserError: a text is something else.
        """
        before = self._head, self._tags, self.calibration, self.min_score
        if types:
            self.use_types(types)
        try:
            entities = [one.entities for one in self.predictions(texts, split)]
        finally:
            self._head, self._tags, self.calibration, self.min_score = before
        return entities[0] if isinstance(texts, str) else entities

    def predictions(
        self, texts: str | Iterable[Text], split: bool = True, probabilities: bool = False
    ) -> list[Prediction]:
        """Words, tags and mentions of each text; see `predict`.

        Args:
            texts: texts, or lists of tokens.
            split: whether texts are parted into sentences.
            probabilities: whether the probabilities of all tags are kept.
        """
        texts = checked_texts(texts)
        spans = [
            self.splitter.words(text, split)
            if isinstance(text, str)
            else [[(place, place + 1) for place in range(len(text))]]
            for text in texts
        ]
        groups = [
            [
                [text[first:end] if isinstance(text, str) else text[first] for first, end in words]
                for words in sentences
            ]
            for text, sentences in zip(texts, spans, strict=True)
        ]
        words = [sentence for group in groups for sentence in group]
        # Lists of tokens are neighbours, as the sentences of a text are.
        alone = all(isinstance(text, str) for text in texts)
        tagged = zip(words, self._logits(groups if alone else [words]), strict=True)
        return [
            self._prediction(text, sentences, [next(tagged) for _ in sentences], probabilities)
            for text, sentences in zip(texts, spans, strict=True)
        ]

    def _prediction(
        self,
        text: str | Sequence[str],
        spans: Sequence[Sequence[Span]],
        sentences: Sequence[tuple[list[str], Floats]],
        probabilities: bool,
    ) -> Prediction:
        """Puts the sentences of a text together: places of words, words, and scores of tags."""
        decoded = [self._head.decode(logits) for _, logits in sentences]
        places = [span for sentence in spans for span in sentence]
        tags = [self._tags[index] for best, _ in decoded for index in best]
        scores = [score for _, chances in decoded for score in chances]
        rows = None
        if probabilities:
            per_sentence = [self._head.probabilities(logits) for _, logits in sentences]
            rows = np.concatenate([np.empty((0, len(self._tags)), np.float32), *per_sentence])
        words = [word for words, _ in sentences for word in words]
        entities = entities_of(places, tags, scores, text, self.calibration)
        return Prediction(words, places, tags, scores, entities, rows).at_least(self.min_score)

    def score(self, data: Data) -> float:
        """Strict F1 (seqeval, IOB2) on sentences, or on the test split of a set.

        Types count by their unified names: `LOC` and `location` are one type.
        """
        rows = DataSets(view=View(UNIFIED)).sentences(data, "test")
        names = LabelMap.load(UNIFIED)
        predicted = [names.tags(tags) for tags in self.tag([row.tokens for row in rows])]
        return seqeval_scores([row.tags for row in rows], predicted)[0].f1

    def calibrate(self, data: Data) -> None:
        """Makes scores of mentions the probability that they are right, and finds the smallest one.

        `min_score` becomes the one of the best F1. `save` keeps both in the configuration.

        Args:
            data: sentences that the tagger was not trained on; the dev split of a set.
        """
        self._use(AS_THEY_ARE)
        rows = DataSets().sentences(data, "dev")
        scores, is_right = self.judged(rows)
        gold = sum(len(tags_to_spans(row.tags)) for row in rows)
        found = Calibration.fitted(scores, is_right, gold)
        self.model.config.mention_scores = asdict(found)
        self._use(found)

    def judged(self, rows: Sequence[Sentence]) -> tuple[list[float], list[bool]]:
        """Score of each mention of at least `min_score` in sentences, and whether it is right."""
        scores, is_right = [], []
        predicted = self.predictions([row.tokens for row in rows])
        for row, one in zip(rows, predicted, strict=True):
            gold = set(tags_to_spans(row.tags))
            scores += [entity.score for entity in one.entities]
            is_right += [(one.start, one.end, one.type) in gold for one in one.entities]
        return scores, is_right

    def _use(self, calibration: Calibration) -> None:
        self.calibration, self.min_score = calibration, calibration.min_score

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes an ordinary Hugging Face checkpoint."""
        if self._words is None:
            raise RuntimeError("the tagger is not trained: call fit first")
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        self.splitter.save(folder)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        settings: FitSettings | None = None,
        device: str = "auto",
        half: bool = False,
        backend: str = "auto",
    ) -> Tagger:
        """Loads a tagger from a checkpoint with a tagging head.

        Args:
            folder: folder, or name on the hub.
            settings: settings of the tagger.
            device: where it computes, such as "cpu"; "auto" for a GPU if there is one.
            half: whether it computes with 16 bits (float16 on a GPU, bfloat16 on a CPU).
            backend: "torch"; "onnx" or "int8" for the files of `nerbert export`; "auto" for onnx
                on a CPU if it is there, else torch.

        Raises:
            UserError: there is no such checkpoint, device or file, or its tags are not O, B-, I-.
        """
        folder = os.fspath(folder)
        tagger = cls(folder, settings)
        if backend not in ("auto", "torch", *BACKENDS):
            raise UserError(f"--backend {backend}: give auto, torch, {' or '.join(BACKENDS)}")
        on_cpu = device == "cpu" or (device == "auto" and not _may_have_gpu())
        if not on_cpu:
            # Only torch can tell.
            from pretrain.training.models import device_of

            on_cpu = device_of(device).type == "cpu"
        if backend in BACKENDS and (half or not on_cpu):
            raise UserError(f"--backend {backend}: computes on the CPU, and without --half")
        onnx = exported(folder, backend) if backend != "torch" and on_cpu and not half else None
        if onnx is None or onnx.facts.head != LINEAR or tagger.settings.attend_padding:
            tagger._load(device, half, onnx)
        else:
            tagger._tags = onnx.facts.tags
            tagger._words = onnx.word_tagger(tagger.settings.max_subwords)
            tagger._find_splitter()
            tagger._use(Calibration(**onnx.facts.mention_scores or {}))
        return tagger

    def _load(self, device: str, half: bool, forward: Forward | None) -> None:
        """Loads the model, and moves it to a device."""
        # These load torch.
        from pretrain.training.models import device_of, place, tag_names

        where = device_of(device)
        model, tokenizer = _loaded(self.base)
        first, *others = tag_names(model)
        if first != "O" or not all(name[:2] in ("B-", "I-") for name in others):
            raise UserError(f"{self.base}: its labels are not O, B-, I-; fine-tune it first")
        place(model, where, half)
        self._set(model, tokenizer, forward)


def _loaded(folder: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Loads model and tokenizer of a checkpoint."""
    # These load torch.
    from finetune.tagger.models import load_with_head
    from pretrain.training.checkpoints import check_vocabulary
    from pretrain.training.tokenizer import load_tokenizer

    quiet_libraries()
    model, tokenizer = load_with_head(folder), load_tokenizer(folder)
    check_vocabulary(model, tokenizer, folder)
    return model, tokenizer


def _may_have_gpu() -> bool:
    """Whether there may be a GPU, so that only torch can tell."""
    devices = ("nvidia0", "nvidiactl", "dxg", "kfd")  # of CUDA, of WSL, of ROCm
    return sys.platform != "linux" or any(Path("/dev", name).exists() for name in devices)
