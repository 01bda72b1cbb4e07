"""The models of a DualNER experiment. Each is made once; a stopped training is continued."""

from __future__ import annotations

import json
import logging
import shutil
import time
from dataclasses import astuple, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PreTrainedModel, set_seed

from finetune.data.registry import expand
from finetune.data.sets import DataSets
from finetune.experiments.runs import model_fingerprint
from finetune.heads.loading import load_with_head
from finetune.papers.dualner import data as dual_data
from finetune.papers.dualner.data import DualData, Names
from finetune.papers.dualner.report import write_report
from finetune.papers.dualner.settings import METHODS, DualOptions, DualSettings
from finetune.papers.dualner.spans import SpanHead
from finetune.papers.dualner.stages import run_stage
from finetune.papers.dualner.training import Best, scores_by_language
from finetune.settings import seeds
from nerbert import __version__
from nerbert.commands.process import quiet_libraries
from nerbert.digests import short_key
from nerbert.errors import UserError
from nerbert.progress import Countdown
from nerbert.reports import TRAINING, versions
from nerbert.storage.places import Place
from nerbert.storage.records import seal, sealed
from pretrain.training import tiny
from pretrain.training.checkpoints import check_vocabulary
from pretrain.training.models import load_model
from pretrain.training.tokenizer import load_tokenizer

RESULT = "result.json"
_LOGGER = logging.getLogger("nerbert")

Result = dict[str, Any]


class Experiment:
    """The models of one experiment, and their folders."""

    def __init__(self, output: Path, names: Names, settings: DualSettings, sets: DataSets) -> None:
        """Reads the data once, so that errors are found before training.

        Args:
            output: folder of the models.
            names: sets and texts.
            settings: settings of the training.
            sets: the data sets.

        Raises:
            UserError: data is missing or unsuitable.
        """
        quiet_libraries()
        self._output, self._settings, self._sets = output, settings, sets
        self._names = names
        self.left = Countdown(0)
        self._read: dict[tuple[float, int], DualData] = {}
        self._data(1.0, 0)

    def _data(self, share: float, seed: int) -> DualData:
        key = (share, seed if share < 1 else 0)
        if key not in self._read:
            self._read[key] = dual_data.read(self._names, self._settings, self._sets, *key)
        return self._read[key]

    @cached_property
    def _key(self) -> str:
        """Digest of everything that decides the results, except method, share and seed."""
        content = [
            self._settings.to_json(),
            __version__,
            model_fingerprint(self._settings.base_model),
            astuple(self._names),
            self._sets.view.text,
            self._sets.view.lowercase,
            dual_data.fingerprint(self._names, self._sets),
        ]
        return short_key(json.dumps(content))

    def folder(self, method: str, share: float, seed: int) -> Path:
        """Folder of a model."""
        part = "" if share == 1 else f"-{share:g}"
        return self._output / f"seed-{seed}{part}" / method

    def result(self, method: str, share: float, seed: int) -> Result:
        """The scores of a model, which is made or continued if there are none yet.

        Raises:
            UserError: the folder holds a model with other settings or data.
        """
        folder = self.folder(method, share, seed)
        begun, done = folder / "begun.json", folder / RESULT
        earlier = Place(begun).read_json_or_none()
        if isinstance(earlier, dict) and earlier.get("key") != self._key:
            raise UserError(f"{folder}: made with other settings or data; give another --output")
        if (result := sealed(Place(done))) is None:
            folder.mkdir(parents=True, exist_ok=True)
            Place(begun).write_json({"key": self._key, "settings": self._settings.to_json()})
            start = time.monotonic()
            scores = self._make(method, share, seed, folder)
            seconds = round(time.monotonic() - start, 1)
            result = {
                "variant": method,
                "share": share,
                "seed": seed,
                **scores,
                "seconds": seconds,
                "versions": versions(*TRAINING, "numpy"),
            }
            outputs = [path.name for path in folder.iterdir() if path.is_file() and path != done]
            seal(Place(done), result, outputs)
            result = sealed(Place(done)) or {}
            for path in folder.glob("checkpoint-*"):
                shutil.rmtree(path)
            _LOGGER.info(
                "%s",
                f"{method}, {share:.0%} of the labels, seed {seed}: mean F1 "
                f"{scores['mean_f1']:.4f} in {seconds:.0f} s"
                + (f"; {remaining}" if (remaining := self.left()) else ""),
            )
        return result

    def _make(self, name: str, share: float, seed: int, folder: Path) -> Result:
        method, data, settings = METHODS[name], self._data(share, seed), self._settings
        best = None
        if method.pseudo:
            if not method.target:
                data = _without_target(data)
            first = self.result("multitask", share, seed)
            teacher = str(self.folder("multitask", share, seed))
            model, tokenizer = load_with_head(teacher), load_tokenizer(teacher)
            best = Best.of(model, first["dev"]["mean_f1"])
        else:
            model, tokenizer = self._fresh(data, seed, spans="span" in method.gold)
        title = f"{name}, {share:.0%} of the labels, seed {seed}"
        best, history = run_stage(
            folder, model, tokenizer, method, data, settings, seed, best, title
        )
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        scores = scores_by_language(model, tokenizer, data.test, settings.max_subwords, True)
        f1 = [score.f1 for score in scores.values()]
        return {
            "languages": list(data.languages),
            "labelled": len(data.labelled),
            "unlabelled": len(data.unlabelled) if method.pseudo in ("dual", "self") else 0,
            "tested": sum(map(len, data.test.values())),
            "mean_f1": sum(f1) / len(f1),
            "test": {language: score.to_json() for language, score in scores.items()},
            "dev": {"mean_f1": best.f1, "best_after": best.steps, "history": history},
        }

    def _fresh(self, data: DualData, seed: int, spans: bool) -> tuple[PreTrainedModel, Any]:
        """Loads the base model, with new heads."""
        set_seed(0)
        base = tiny.base_model(self._settings.base_model, self._output / "base", self._words)
        set_seed(seed)
        model = load_model(base, data.labels, self._settings.max_subwords)
        tokenizer = load_tokenizer(base)
        check_vocabulary(model, tokenizer, base)
        if spans:
            SpanHead.restore(model)
        return model, tokenizer

    def _words(self) -> Dataset:
        """The words of all sentences, for the vocabulary of a tiny model."""
        full_data = self._data(1.0, 0)
        words = [row.tokens for row in full_data.labelled]
        words += [list(row) for _, row in full_data.unlabelled]
        return Dataset.from_dict({"tokens": words})


def run_all(options: DualOptions, settings: DualSettings) -> str:
    """Trains the missing models and writes the report; returns its tables.

    Raises:
        UserError: data is missing or unsuitable, or the output folder has another experiment.
    """
    sets = DataSets.of_options(options, are_several=True)
    names = Names(options.source, _targets(options), options.target_text)
    experiment = Experiment(Path(options.output), names, settings, sets)
    plan = [
        (method, share, seed)
        for share in options.source_share
        for seed in seeds(options.seeds)
        for method in options.methods
    ]
    missing = [
        planned_run
        for planned_run in plan
        if sealed(Place(experiment.folder(*planned_run) / RESULT), False) is None
    ]
    experiment.left = Countdown(len(missing))
    results = [experiment.result(*planned_run) for planned_run in plan]
    return write_report(results, Path(options.output), sets.identity)


def _targets(options: DualOptions) -> tuple[str, ...]:
    """The targets; a pattern may match the source, which is none of them."""
    names = expand(options.targets)
    return tuple(n for n in names if n != options.source or n in options.targets)


def _without_target(data: DualData) -> DualData:
    return replace(data, unlabelled=[row for row in data.unlabelled if row[0] == 0])
