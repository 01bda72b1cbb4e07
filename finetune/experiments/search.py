"""Runs a search: trials in optuna's study, which a later run of the command continues."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from finetune.data.registry import expand
from finetune.data.sets import DataSets, are_several
from finetune.experiments.runs import made_from
from finetune.experiments.search_report import write_report
from finetune.experiments.trials import Fits, Space, Values, parse, points
from finetune.options import SearchOptions
from finetune.settings import FitSettings
from nerbert.commands.process import only_run, quiet_libraries
from nerbert.errors import UserError
from nerbert.progress import Countdown
from nerbert.storage.records import check_same

RECORD = "search.json"
"""File that says what is searched."""

_LOGGER = logging.getLogger("nerbert")
_STUDY = "study.db"
_LAST = 3
"""Stage of the grid in which the best setting goes on until its dev F1 drops."""


def search(
    options: SearchOptions, settings: FitSettings, typed: Collection[str] = frozenset()
) -> str:
    """Does the missing trials, and writes the report; returns its table.

    Args:
        options: options of the search.
        settings: settings that are not searched.
        typed: names of the options that the user gave. They are not searched, unless `space` is
            among them; with `epochs`, no trial is longer.

    Raises:
        UserError: options contradict each other, data or model is missing, or the folder has
            another search.
    """
    space = _searched(parse(options.space), typed)
    grid = points(space) if options.method == "grid" else []
    names = expand(options.data)
    sets = DataSets.of_options(options, len(names) > 1 or are_several(names))
    rows = {split: sets.sentences(names, split) for split in ("train", "dev")}
    quiet_libraries()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    settings = replace(settings, seed=options.seed)
    goes_on = "epochs" not in typed
    record = {
        **made_from(options.base_model, sets, names),
        "method": options.method,
        "space": sorted(options.space),
        "stages": [options.partial_epochs, options.kept, goes_on] if grid else [],
        "settings": asdict(settings),
    }
    output = Path(options.output)
    with only_run(options.output):
        check_same(options.output, RECORD, record)
        fits = Fits(
            options.base_model, settings, rows["train"], rows["dev"], output, options.device
        )
        study = Study(output / _STUDY, space, options.seed, fits, options.time_budget)
        is_done = _tried(study, fits, grid, options, goes_on)
        best = study.best()
        if not fits.has(best.params):
            fits.fit(best.params)
            if best.user_attrs["stage"] == _LAST:
                fits.fit(best.params, until_drop=True)
            fits.keep(best.params, best.value or 0.0)
        if is_done:  # else the next run goes on where trainings have paused
            shutil.rmtree(output / "trials", ignore_errors=True)
        return write_report(output, study.done(), space, best, fits.settings_of(best.params))


def _searched(space: Space, typed: Collection[str]) -> Space:
    """The space without the settings that the user gave, if it is the default one.

    Raises:
        UserError: the user gave a setting and values of it to try.
    """
    for name in sorted(space.keys() & set(typed)) if "space" in typed else ():
        flag = name.replace("_", "-")
        raise UserError(f"--space {flag} tries other values than --{flag}; give one of them")
    return {name: values for name, values in space.items() if name not in typed}


def _tried(
    study: Study, fits: Fits, grid: Sequence[Values], options: SearchOptions, goes_on: bool
) -> bool:
    """Does the missing trials; returns whether the time budget was enough for all."""
    try:
        if grid:
            _grid(study, fits, grid, options, goes_on)
        else:
            _draws(study, options)
    except _SpentError:
        _LOGGER.info("--time-budget %g is spent; run it again to go on", options.time_budget)
        return False
    return True


class _SpentError(Exception):
    """The time budget of a search is spent."""


class Study:
    """The trials of a search, in a file of SQLite."""

    def __init__(
        self, path: Path, space: Space, seed: int, fits: Fits, minutes: float | None = None
    ) -> None:
        """Opens or makes the file.

        Args:
            path: path of the file.
            space: the settings to try.
            seed: seed of the choices.
            fits: fine-tunes.
            minutes: after them no trial begins, but the first one always does; None for no limit.

        Raises:
            UserError: it is no study.
        """
        self._space, self._seed, self._fits = space, seed, fits
        self._start, self._minutes = time.monotonic(), minutes
        self._left = Countdown(0)
        try:
            self._study = optuna.create_study(
                storage=f"sqlite:///{path.resolve()}",
                study_name="search",
                direction="maximize",
                load_if_exists=True,
            )
        except (SQLAlchemyError, optuna.exceptions.OptunaError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0][:100]
            raise UserError(f"{path}: no study of optuna ({reason}); move it away") from error

    def done(self) -> list[FrozenTrial]:
        """The finished trials, in order."""
        return self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))

    def of_stage(self, stage: int) -> list[FrozenTrial]:
        """The finished trials of a stage, the best one first."""
        trials = [trial for trial in self.done() if trial.user_attrs["stage"] == stage]
        return sorted(trials, key=lambda trial: (-(trial.value or 0.0), trial.number))

    def best(self) -> FrozenTrial:
        """The best finished trial of the last stage."""
        return self.of_stage(max(trial.user_attrs["stage"] for trial in self.done()))[0]

    def add(self, values: Values | None, method: str, stage: int, **how: Any) -> FrozenTrial:
        """Does a trial; keeps its tagger if it is the best one of its stage.

        Args:
            values: settings to try; None to let the method choose.
            method: "grid", "random" or "tpe".
            stage: stage of the grid; 1 for other methods.
            how: further arguments of `Fits.fit`.

        Raises:
            _SpentError: the time budget is spent.
        """
        gone = time.monotonic() - self._start
        if self._minutes is not None and self.done() and gone > 60 * self._minutes:
            raise _SpentError
        scores: list[float] = []
        if values is None:
            values = self._suggested(method)
            # A small space is drawn from twice; the same settings give the same weights.
            scores = [trial.value or 0.0 for trial in self.done() if trial.params == values][:1]
        scores = scores or self._fits.fit(values, **how)
        # As in T-NER, a training that pauses counts by what it has then.
        best = scores[-1] if how.get("pause") else max(scores)
        ahead = [trial.value or 0.0 for trial in self.of_stage(stage)]
        if not ahead or best > max(ahead):
            self._fits.keep(values, best)
        values_text = ", ".join(f"{name} {value}" for name, value in values.items())
        number = len(self.done())
        _LOGGER.info(
            "trial %d, stage %d: %s: dev F1 %.4f; best %.4f; %s",
            number,
            stage,
            values_text,
            best,
            max([best, *ahead]),
            self._left() or "the last",
        )
        # Written only now: a run that is stopped in a trial leaves no trace of it.
        facts = {
            "stage": stage,
            "evaluations": len(scores),
            "rising": scores[-1] > max(scores[:-1], default=-1.0),
        }
        self._study.add_trial(
            optuna.create_trial(
                params=dict(values), distributions=self._space, value=best, user_attrs=facts
            )
        )
        return self.done()[-1]

    def expect(self, trials: int) -> None:
        """Says how many more trials there are at least, for the time left."""
        self._left = Countdown(trials)

    def _suggested(self, method: str) -> Values:
        """The settings that a method tries next. They depend on the finished trials only."""
        done = self.done()
        kind = optuna.samplers.TPESampler if method == "tpe" else optuna.samplers.RandomSampler
        study = optuna.create_study(
            direction="maximize", sampler=kind(seed=(self._seed + len(done)) % (1 << 32))
        )
        study.add_trials(done)
        return study.ask(self._space).params


def _draws(study: Study, options: SearchOptions) -> None:
    study.expect(options.trials - len(study.done()))
    while len(study.done()) < options.trials:
        study.add(None, options.method, 1)


def _grid(
    study: Study, fits: Fits, grid: Sequence[Values], options: SearchOptions, goes_on: bool
) -> None:
    """All points for a few epochs, the best of them to the end, the best one until it drops.

    Source: T-NER 0.1 and later, GridSearcher.

    Args:
        study: the trials.
        fits: fine-tunes.
        grid: the points.
        options: options of the search.
        goes_on: whether there is the last stage.
    """
    n_finalists = min(options.kept, len(grid))
    done = len(study.of_stage(1)) + len(study.of_stage(2))
    study.expect(len(grid) + n_finalists - done)

    def missing(points: Sequence[Values], stage: int) -> list[Values]:
        tried = [trial.params for trial in study.of_stage(stage)]
        return [values for values in points if values not in tried]

    for values in missing(grid, 1):
        study.add(values, "grid", 1, pause=options.partial_epochs)
    best_points = [trial.params for trial in study.of_stage(1)[: options.kept]]
    for values in grid:
        if values not in best_points:
            fits.forget(values)
    for values in missing(best_points, 2):
        study.add(values, "grid", 2)
    best = study.of_stage(2)[0]
    # With a learning rate of zero, more epochs change nothing.
    constant = fits.settings_of(best.params).schedule.startswith("constant")
    rises = goes_on and constant and best.user_attrs["rising"]
    if rises and not study.of_stage(_LAST):
        study.add(best.params, "grid", _LAST, until_drop=True)
