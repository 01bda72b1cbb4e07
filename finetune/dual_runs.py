"""The models of a DualNER experiment, each made once, or gone on with where it stopped."""

from __future__ import annotations

import json
import logging
import shutil
import time
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PreTrainedModel, set_seed

from finetune import dual_data
from finetune.dual_config import VARIANTS, DualSettings
from finetune.dual_data import DualData
from finetune.dual_training import Best, run_stage, scores_by_language
from finetune.heads import load_head
from finetune.labelmaps import View
from finetune.runs import map_text, model_fingerprint, write_json
from finetune.scoring import versions
from finetune.span_head import add_heads
from pipeline.errors import UserError
from pretrain import tagging, tiny
from pretrain.config import TINY
from pretrain.data import quiet_libraries

RESULT = "result.json"
_LOGGER = logging.getLogger("nerbert")

Result = dict[str, Any]


class School:
    """Where models of one experiment are taught and kept."""

    def __init__(
        self, output: Path, source: str, targets: tuple[str, ...], texts: tuple[str, ...],
        settings: DualSettings, view: View,
    ) -> None:  # fmt: skip
        """Reads the data once, so that what is missing is told at once.

        Args:
            output: folder of the models.
            source: labelled set.
            targets: sets of the other languages.
            texts: `dual_data.read` has them.
            settings: of the training.
            view: how the sets are read.

        Raises:
            UserError: data is missing, or does not fit.
        """
        quiet_libraries()
        self._output, self._settings, self._view = output, settings, view
        self._names = source, targets, texts
        self._read: dict[tuple[float, int], DualData] = {}
        self._data(1.0, 0)

    def _data(self, share: float, seed: int) -> DualData:
        key = (share, seed if share < 1 else 0)
        if key not in self._read:
            source, targets, texts = self._names
            self._read[key] = dual_data.read(source, targets, texts, self._settings, self._view,
                                             *key)  # fmt: skip
        return self._read[key]

    @cached_property
    def _key(self) -> str:
        """Digest of everything that decides the results, but variant, share and seed."""
        content = [
            self._settings.to_json(), model_fingerprint(self._settings.base_model), self._names,
            map_text(self._view), self._view.lowercase, dual_data.fingerprint(*self._names),
        ]  # fmt: skip
        return blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()

    def folder(self, variant: str, share: float, seed: int) -> Path:
        """Where a model is kept."""
        part = "" if share == 1 else f"-{share:g}"
        return self._output / f"seed-{seed}{part}" / variant

    def result(self, variant: str, share: float, seed: int) -> Result:
        """A model's scores; it is made, or gone on with, if they are not there.

        Raises:
            UserError: the folder holds a model of other settings or data.
        """
        folder = self.folder(variant, share, seed)
        begun, done = folder / "begun.json", folder / RESULT
        if begun.is_file() and json.loads(begun.read_text(encoding="utf-8"))["key"] != self._key:
            raise UserError(f"{folder}: made with other settings or data; give another --output")
        if not done.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            write_json(begun, {"key": self._key, "settings": self._settings.to_json()})
            start = time.monotonic()
            found = self._make(variant, share, seed, folder)
            seconds = round(time.monotonic() - start, 1)
            write_json(done, {"variant": variant, "share": share, "seed": seed, **found,
                              "seconds": seconds, "versions": versions()})  # fmt: skip
            for path in folder.glob("checkpoint-*"):
                shutil.rmtree(path)
            _LOGGER.info("%s", f"{variant}, {share:.0%} of the labels, seed {seed}: mean F1 "
                               f"{found['mean_f1']:.4f} in {seconds:.0f} s")  # fmt: skip
        result: Result = json.loads(done.read_text(encoding="utf-8"))
        return result

    def _make(self, name: str, share: float, seed: int, folder: Path) -> Result:
        variant, data, settings = VARIANTS[name], self._data(share, seed), self._settings
        best = None
        if variant.pseudo:
            if not variant.target:
                data = _without_target(data)
            first = self.result("multitask", share, seed)
            teacher = str(self.folder("multitask", share, seed))
            model, tokenizer = tagging.load_tagger(teacher), tagging.load_tokenizer(teacher)
            load_head(model, teacher)
            best = Best.of(model, first["dev"]["mean_f1"])
        else:
            model, tokenizer = self._fresh(data, seed, spans="span" in variant.gold)
        best, history = run_stage(folder, model, tokenizer, variant, data, settings, seed, best)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        scores = scores_by_language(model, tokenizer, data.test, settings.max_subwords)
        f1 = [score.f1 for score in scores.values()]
        return {
            "languages": list(data.languages), "labelled": len(data.labelled),
            "unlabelled": len(data.unlabelled) if variant.pseudo else 0,
            "mean_f1": sum(f1) / len(f1),
            "test": {language: score.to_json() for language, score in scores.items()},
            "dev": {"mean_f1": best.f1, "best_after": best.steps, "history": history},
        }  # fmt: skip

    def _fresh(self, data: DualData, seed: int, spans: bool) -> tuple[PreTrainedModel, Any]:
        """The base model with new heads."""
        base = self._settings.base_model
        if base == TINY:
            base = str(self._output / "base")
            if not (Path(base) / "model.safetensors").is_file():
                set_seed(0)
                whole = self._data(1.0, 0)
                words = [row.tokens for row in whole.labelled]
                words += [list(row) for _, row in whole.unlabelled]
                tiny.build(Dataset.from_dict({"tokens": words}), Path(base))
        set_seed(seed)
        model = tagging.load_model(base, data.labels, self._settings.max_subwords)
        if spans:
            add_heads(model)
        return model, tagging.load_tokenizer(base)


def _without_target(data: DualData) -> DualData:
    unlabelled = [row for row in data.unlabelled if row[0] == 0]
    return DualData(data.languages, data.labelled, unlabelled, data.dev, data.test)
