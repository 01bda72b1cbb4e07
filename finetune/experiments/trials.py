"""What a search tries: settings from texts such as "learning_rate=1e-5,1e-4", and their fits."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from transformers import TrainerCallback

from finetune.settings import FitSettings
from finetune.tagger.fitting import Work
from finetune.tagger.tagger import Tagger
from nerbert.commands.options import Option, options_of
from nerbert.commands.values import Given, build, near
from nerbert.digests import short_key
from nerbert.errors import UserError
from nerbert.storage.folders import made_whole
from nerbert.storage.places import Place
from nerbert.storage.records import seal, sealed
from nerbert.text.columns import Sentence
from pretrain.training.logs import FitProgress

_RANGE = ".."

Space = dict[str, BaseDistribution]
Values = dict[str, Any]


def parse(texts: Sequence[str]) -> Space:
    """The settings to try.

    Args:
        texts: `NAME=VALUE,VALUE` for a choice, `NAME=LOW..HIGH` for a range; ranges of floats are
            drawn by their logarithm.

    Raises:
        UserError: there is no such setting, or a value is wrong.
    """
    options = {entry.name: entry for entry in options_of(FitSettings)}
    space: Space = {}
    for text in texts:
        name, _, values = text.partition("=")
        name = name.replace("-", "_")
        if name not in options or not values:
            raise UserError(f"write NAME=VALUE,VALUE or NAME=LOW..HIGH{near(name, options)}", text)
        if _RANGE in values:
            space[name] = _range(options[name], values, text)
        else:
            choices = [_value(options[name], value, text) for value in values.split(",")]
            space[name] = CategoricalDistribution(choices)
    return space


def _range(entry: Option, values: str, text: str) -> BaseDistribution:
    low, high = (_value(entry, value, text) for value in values.split(_RANGE, 1))
    if isinstance(low, bool) or not isinstance(low, int | float) or not low < high:
        raise UserError("give the lower number first: LOW..HIGH", text)
    if isinstance(low, int):
        return IntDistribution(low, high)
    return FloatDistribution(low, high, log=low > 0)


def _value(entry: Option, value: str, text: str) -> Any:
    """The value of a setting.

    Raises:
        UserError: it is not one.
    """
    try:
        parsed_value = entry.parsed(value)
    except ValueError:
        raise UserError(f"{value} is no value of {entry.name}", text) from None
    build(FitSettings, {entry.name: Given(parsed_value, f"--space {entry.name}", value)})
    return parsed_value


def points(space: Space) -> list[Values]:
    """All points of a space of choices.

    Raises:
        UserError: one of its settings has a range.
    """
    axes = []
    for name, distribution in space.items():
        if not isinstance(distribution, CategoricalDistribution):
            raise UserError(f"--space {name}: a grid needs values; --method random takes ranges")
        axes.append([(name, value) for value in distribution.choices])
    return [dict(point) for point in itertools.product(*axes)]


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
        with made_whole(self._output / "model", _MARK) as folder:
            self._tagger.save(folder)
            seal(Place(folder / _MARK), {"settings": values, "dev_f1": f1})

    def has(self, values: Values) -> bool:
        """Whether the tagger that is kept is whole, and of these settings."""
        record = sealed(Place(self._output / "model" / _MARK))
        return record is not None and record.get("settings") == values

    def forget(self, values: Values) -> None:
        """Removes the checkpoint of a fine-tuning that will not go on."""
        shutil.rmtree(self._folder(values), ignore_errors=True)

    def _folder(self, values: Values) -> Path:
        key = short_key(repr(sorted(values.items())))
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
