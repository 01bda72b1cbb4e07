"""The fine-tunings of a search; one that pauses can go on."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from finetune.search.space import Values
from finetune.settings import FitSettings
from finetune.tagger.fitting import Work
from finetune.tagger.progress import FitProgress
from finetune.tagger.tagger import Tagger
from nerbert.storage.folders import made_whole, seal, sealed
from nerbert.text.columns import Sentence

_MARK = "trial.json"
_MANY = 10_000  # epochs: the training ends when the dev F1 drops


class Fits:
    """Fine-tunes with some settings, and keeps the best tagger."""

    def __init__(
        self,
        base: str,
        settings: FitSettings,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        output: Path,
        device: str,
    ) -> None:
        """Takes base model, settings that are not searched, data, folder of the search, device."""
        self._base, self._settings = base, settings
        self._train, self._dev = train, dev
        self._output, self._device = output, device

    def settings_of(self, values: Values) -> FitSettings:
        """All settings of a trial."""
        return replace(self._settings, **values)

    def fit(self, values: Values, pause: int = 0, until_drop: bool = False) -> list[float]:
        """Fine-tunes, or continues a fine-tuning that has paused.

        Args:
            values: the settings that are searched.
            pause: epochs after which the training pauses; 0 for none.
            until_drop: whether a finished training goes on until its dev F1 drops.

        Returns:
            The dev F1 of all evaluations, in order.
        """
        settings = self.settings_of(values)
        if until_drop:
            settings = replace(settings, epochs=_MANY)
        name = ", ".join(f"{key} {value}" for key, value in values.items())
        watching: list[TrainerCallback] = [FitProgress(name, lines=False)]
        watching += [_Pause(pause)] if pause else []
        watching += [_Drop()] if until_drop else []
        folder = self._folder(values)
        if pause:  # what a stopped run left of this trial is not continued: it may have paused
            self.forget(values)
        if until_drop:  # likewise; the finished training stays as it is
            finished, folder = folder, folder.with_name(f"{folder.name}-on")
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(finished, folder)
        work = Work(str(folder), watching, device=self._device)
        self._tagger = Tagger(self._base, settings).fit(self._train, self._dev, work=work)
        return [line["eval_f1"] for line in self._tagger.history if "eval_f1" in line]

    def keep(self, values: Values, f1: float) -> None:
        """Saves the last tagger as the best one, in `model`."""
        with made_whole(self._output / "model") as folder:
            self._tagger.save(folder)
            seal(str(folder / _MARK), {"settings": values, "dev_f1": f1})

    def has(self, values: Values) -> bool:
        """Whether the tagger that is kept is whole, and of these settings."""
        kept = sealed(str(self._output / "model" / _MARK))
        return kept is not None and kept.get("settings") == values

    def forget(self, values: Values) -> None:
        """Removes the checkpoint of a fine-tuning that will not go on."""
        shutil.rmtree(self._folder(values), ignore_errors=True)

    def _folder(self, values: Values) -> Path:
        key = blake2b(repr(sorted(values.items())).encode(), digest_size=8).hexdigest()
        return self._output / "trials" / key


class _Pause(TrainerCallback):
    """Ends a training at its first evaluation after some epochs."""

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_training_stop |= state.epoch >= self._epochs


class _Drop(TrainerCallback):
    """Ends a training at its first evaluation that is not better than all before."""

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any
    ) -> None:
        # The Trainer compares, and renews the best score, after this call.
        control.should_training_stop |= metrics["eval_f1"] <= (state.best_metric or 0.0)
