"""A named-entity tagger in the style of scikit-learn."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finetune.data.sets import Data, DataSets
from finetune.data.views import UNIFIED, LabelMap, View, nearest
from finetune.heads.windows import Forward, LinearHead
from finetune.scoring.calibration import AS_THEY_ARE, Calibration
from finetune.scoring.metrics import seqeval_scores
from finetune.settings import FitSettings
from finetune.tagger.decoding import calibration_in
from finetune.tagger.onnx import LINEAR, exported
from finetune.tagger.onnx import NAMES as BACKENDS
from finetune.tagger.predicting import Predictor, loaded
from finetune.tagger.shipped import folder_of
from nerbert.commands.process import quiet_libraries
from nerbert.commands.values import build_from_python
from nerbert.errors import UserError
from nerbert.text.schemes import ModelTags, TagError
from nerbert.text.tags import LabelSet, tags_to_spans

if TYPE_CHECKING:  # these load torch, which a tagger by ONNX Runtime does not need
    from finetune.tagger.fitting import Work
    from pretrain.training.models import HeadInitMap


class Tagger(Predictor):
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
        if settings is not None and options:
            raise UserError(f"{next(iter(options))} =: give it in `settings`, or no `settings`")
        super().__init__(os.fspath(base), settings or build_from_python(FitSettings, options))
        self._head_init_map = head_init_map or (nearest if self.settings.carry_head else None)
        self.history: list[dict[str, float]] = []

    def __repr__(self) -> str:
        """Base and types, such as `Tagger('ner-bert', 9 types)`."""
        types = f"{len(self.types)} types" if self._words else "not trained"
        return f"Tagger({self.base!r}, {types})"

    def fit(
        self,
        data: Data,
        dev: Data | None = None,
        before: Data | None = None,
        work: Work | None = None,
        keep_types: bool = False,
        kinds: Sequence[int] | None = None,
        more_types: Sequence[str] = (),
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
            kinds: domain of each train sentence, of `finetune.heads.head`; None if all are of
                the target.
            more_types: types that the head has, too; no sentence needs to have them.

        Raises:
            UserError: the data cannot be read, or the encoder cannot be loaded.
        """
        # A tagger that only predicts needs none of this.
        from transformers import set_seed

        from finetune.heads.head import head_class
        from finetune.tagger.fitting import Work, features_of, trained
        from finetune.tagger.models import fresh_model
        from finetune.tagger.train_rows import train_rows
        from pretrain.training.models import longest_input

        quiet_libraries()
        settings = self.settings
        rows = train_rows(data, dev, before, keep_types, kinds, settings)
        labels = LabelSet(tuple(sorted({*more_types, *rows.types[0], *rows.types[1]})))
        set_seed(settings.seed)
        words = [*rows.before, *rows.train]
        tokenizer, model = fresh_model(self.base, settings, words, labels, self._head_init_map)
        head = head_class(settings.head).add(model, settings, tokenizer, labels, rows.types)
        limit = settings.max_subwords or longest_input(model)

        optimizer: Any = None
        if splits := features_of({"train": rows.before}, labels, tokenizer, limit):
            source = replace(settings, epochs=settings.source_epochs, least_steps=0)
            done: Any = trained(head, labels, source, splits, kinds=rows.before_kinds)
            optimizer = done.optimizer.optimizer if settings.carry_optimizer else None
        splits = features_of({"train": rows.train, "dev": rows.dev}, labels, tokenizer, limit)
        watched = work or Work()
        trainer = trained(head, labels, settings, splits, optimizer, watched, rows.kinds)
        self.history = [*trainer.state.log_history]
        vars(model.config).pop("mention_scores", None)  # those of the base are of other types
        self._set(trainer.model, tokenizer)
        return self

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
        scores, is_right = self.mention_scores(rows)
        gold = sum(len(tags_to_spans(row.tags)) for row in rows)
        calibration = Calibration.fitted(scores, is_right, gold)
        self.model.config.mention_scores = asdict(calibration)
        self._use(calibration)

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
            folder: folder, name on the hub, or of a shipped one, such as `open-en`.
            settings: settings of the tagger.
            device: where it computes, such as "cpu"; "auto" for a GPU if there is one.
            half: whether it computes with 16 bits (float16 on a GPU, bfloat16 on a CPU).
            backend: "torch"; "onnx" or "int8" for the files of `nerbert export`; "auto" for onnx
                on a CPU if it is there, else torch.

        Raises:
            UserError: there is no such checkpoint, device or file, or its labels are no tags.
        """
        folder = folder_of(os.fspath(folder))
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
        if onnx is None or not onnx.facts.without_torch or tagger.settings.attend_padding:
            # Files of open heads give more scores than torch's head decodes.
            tagger._load(device, half, None if onnx and onnx.facts.numbers else onnx)
            return tagger
        calibration = calibration_in(onnx.facts, folder)
        if onnx.facts.head == LINEAR:
            tags = ModelTags.of(onnx.facts.tags, onnx.facts.tagging_scheme)
            tagger._decoder = tagger._of_tags(tags, LinearHead(), calibration)
        else:
            tagger._head = onnx.open_head()
            tagger._use_trained_types(calibration)
        tagger._words = onnx.word_tagger(tagger.settings.max_subwords)
        tagger._find_splitter()
        return tagger

    def _load(self, device: str, half: bool, forward: Forward | None) -> None:
        """Loads the model, and moves it to a device."""
        # These load torch.
        from pretrain.training.models import device_of, model_tags, place

        where = device_of(device)
        model, tokenizer = loaded(self.base)
        try:
            model_tags(model)
        except TagError as error:
            raise UserError(f"its labels are no tags ({error}); fine-tune it", self.base) from None
        place(model, where, half)
        self._set(model, tokenizer, forward)


def _may_have_gpu() -> bool:
    """Whether there may be a GPU, so that only torch can tell."""
    devices = ("nvidia0", "nvidiactl", "dxg", "kfd")  # of CUDA, of WSL, of ROCm
    return sys.platform != "linux" or any(Path("/dev", name).exists() for name in devices)
