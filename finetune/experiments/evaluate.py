"""Plans the runs of an evaluation, does the missing ones, and reports all results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from finetune.data.registry import GROUPS, expand
from finetune.data.sets import DataSets, are_several
from finetune.experiments.report import Report
from finetune.experiments.runs import Make, Predictions, ResultStore, Run
from finetune.options import Device, EvaluateOptions
from finetune.settings import ALL, FitSettings, seeds, shots_of
from nerbert.errors import UserError
from nerbert.progress import Countdown


def evaluate(options: EvaluateOptions, settings: FitSettings) -> str:
    """Does the missing runs and writes the report; returns its first table.

    Raises:
        UserError: options contradict each other, or a model or data is missing.
    """
    are_several_sets = options.regime != "target" or are_several(options.data)
    sets = DataSets.of_options(options, are_several_sets)
    data = expand(options.data)
    grouped = {name for group in options.data for name in GROUPS.get(group, ())}
    missing = {name: why for name in data if name in grouped and (why := sets.lacks(name))}
    if data and set(missing) == set(data):
        raise UserError(next(iter(missing.values())), data[0])
    runs = planned([name for name in data if name not in missing], options, settings, sets)
    output = Path(options.output)
    store = ResultStore(output / "runs", sets)
    results = results_of(runs, store, lambda run: execute_run(run, sets, options))
    report = Report(results, store, options.check_contamination, missing)
    report.write(output)
    return report.table()


def planned(
    data: Sequence[str], options: EvaluateOptions, settings: FitSettings, sets: DataSets
) -> list[Run]:
    """All runs, in order. Their data is read once, so that errors are found before the first run.

    Args:
        data: target sets.
        options: options of the command.
        settings: settings of the fine-tuning.
        sets: data sets.

    Raises:
        UserError: options contradict each other, or data is missing.
    """
    source = tuple(expand(options.source))
    if options.regime in ("source-target", "joint") and not source:
        raise UserError(f"--regime {options.regime}: name the --source")
    if options.regime == "target":
        source = ()
    run_seeds: Sequence[int] = seeds(options.seeds, settings.seed)
    if options.regime == "zero-shot":
        if options.shots != (ALL,):
            raise UserError("--shots: zero-shot uses no target sentences for training")
        if not source:
            run_seeds = run_seeds[:1]  # nothing is trained, so all seeds give the same result
    for name in data:
        if options.regime != "zero-shot":
            sets.check_splits(name)
        sets.raw_sentences(name, "test")
    for name in source:
        sets.raw_sentences(name, "train")
    for text in options.shots:
        shots_of(text, 1)
    return [
        Run(model, name, replace(settings, seed=seed), options.regime, source, text, sets.view)
        for name in data
        for text in options.shots
        for model in options.models
        for seed in run_seeds
    ]


def results_of(
    plan: Sequence[Run],
    store: ResultStore,
    make: Make,
    where: Callable[[Run], str] = lambda run: "",
) -> list[dict[str, Any]]:
    """The results of a plan, in its order; the missing runs are done.

    Args:
        plan: the runs.
        store: keeps the results.
        make: does a run.
        where: what the log line of a run says beside its number.

    Raises:
        UserError: the model of a missing run cannot be loaded; no run has been done.
    """
    if missing := store.missing(plan):
        from finetune.experiments.execution import check_models  # loads torch

        check_models(run.model for run in missing)
    countdown = Countdown(len(missing))
    models = list(dict.fromkeys(run.model for run in plan))
    # What a model has learnt from a source is kept for its next target; other models follow later.
    order = sorted(
        range(len(plan)),
        key=lambda place: models.index(plan[place].model) if plan[place].source else 0,
    )
    results = {
        place: store.result(
            plan[place], make, f"{n} of {len(plan)}: {where(plan[place])}", countdown
        )
        for n, place in enumerate(order, start=1)
    }
    return [results[place] for place in range(len(plan))]


def execute_run(
    run: Run, sets: DataSets, placing: Device | None = None
) -> tuple[dict[str, Any], Predictions]:
    """Does a run; returns its scores and predictions."""
    from finetune.experiments.execution import execute  # loads torch; not needed if all is done

    return execute(run, sets, placing or Device())
